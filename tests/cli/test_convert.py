"""`noetl convert`: both ways, comments kept, refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.conftest import VALID, Noetl

Write = Callable[[str, str], str]


def test_A1_a_document_becomes_a_resource_and_comes_back(noetl: Noetl, file: Write) -> None:
    text = "# mine\n" + VALID.replace("name: small", "name: small # the name\n  path: a/b")
    there = noetl("convert", file("d.yaml", text), "--to", "resource")
    assert there.code == 0
    assert there.err == ""
    assert there.out.startswith("# mine\napiVersion: noetl.io/v1\nkind: Playbook\nmetadata:\n")
    back = noetl("convert", "-", "--to", "document", stdin=there.out)
    assert back.out == text


@pytest.mark.parametrize("to", ["document", "resource"])
def test_A1_the_wanted_form_is_printed_as_it_is(noetl: Noetl, file: Write, to: str) -> None:
    text = noetl("convert", file("d.yaml", VALID), "--to", to).out
    assert noetl("convert", file("e.yaml", text), "--to", to).out == text


def test_json_prints_the_object(noetl: Noetl, valid: str) -> None:
    result = noetl("convert", valid, "--to", "resource", "-o", "json")
    assert result.json["kind"] == "Playbook"
    assert result.json["spec"]["workflow"][0]["step"] == "only"


def test_an_invalid_playbook_is_exit_1_with_its_problems_on_stderr(
    noetl: Noetl, file: Write
) -> None:
    result = noetl("convert", file("w.yaml", VALID + "vars: {}\n"), "--to", "resource")
    assert (result.code, result.out) == (1, "")
    assert "w.yaml:8:1" in result.err
    assert result.err.splitlines()[-1].startswith("error: w.yaml: not a valid playbook")


def test_an_invalid_playbook_with_json_is_a_document_too(noetl: Noetl, file: Write) -> None:
    result = noetl(
        "convert", file("w.yaml", VALID + "vars: {}\n"), "--to", "resource", "-o", "json"
    )
    assert result.code == 1
    assert set(result.json) == {"error", "problems"}
    assert result.json["problems"][0]["line"] == 8


def test_a_layout_that_can_not_be_kept_is_said_unless_quiet(noetl: Noetl, file: Write) -> None:
    flow = "{metadata: {name: x}, workflow: [{step: a, tool: {kind: noop}}]} # why\n"
    result = noetl("convert", file("f.yaml", flow), "--to", "resource")
    assert result.code == 0
    assert result.err.startswith("warning: the file's layout can't be kept")
    assert result.out.startswith("# why\n")
    assert noetl("convert", "f.yaml", "--to", "resource", "-q").err == ""
