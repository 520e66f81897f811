"""`noetl schema`: draft 2020-12 schemas that take what is right and refuse what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from noetl_cli.schemas import execution_schema, playbook_schema
from tests.cli.conftest import VALID, Noetl

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("kind", ["playbook", "execution"])
@pytest.mark.parametrize("output", ["text", "json"])
def test_the_schema_is_one_document_of_draft_2020_12(noetl: Noetl, kind: str, output: str) -> None:
    result = noetl("schema", kind, "-o", output)
    assert (result.code, result.err) == (0, "")
    assert result.json["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(result.json)


@pytest.fixture(scope="module")
def playbook() -> Draft202012Validator:
    return Draft202012Validator(playbook_schema())


@pytest.fixture(scope="module")
def execution() -> Draft202012Validator:
    return Draft202012Validator(execution_schema())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_every_example_passes_in_both_forms(
    playbook: Draft202012Validator, noetl: Noetl, path: Path
) -> None:
    for text in (path.read_text(), noetl("convert", str(path), "--to", "resource").out):
        for document in yaml.safe_load_all(text):
            assert [e.message for e in playbook.iter_errors(document)] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("workflow:", "workflw:"),
        ("name: small", "nmae: small"),
        ("kind: noop", "kind: http"),
        ("kind: noop", "kind: noop\n        ulr: x"),
        ("- step: only", "- step: only\n    when: x"),
        ("- step: only", "- step: only\n    next: [other]"),
        ("- step: only", "- step: 7 days"),
    ],
)
def test_a_wrong_playbook_fails(playbook: Draft202012Validator, old: str, new: str) -> None:
    assert not list(playbook.iter_errors(yaml.safe_load(VALID)))
    assert list(playbook.iter_errors(yaml.safe_load(VALID.replace(old, new))))


def resource(**spec: object) -> dict[str, object]:
    return {
        "apiVersion": "noetl.io/v1",
        "kind": "Execution",
        "metadata": {"name": "run-1"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    "spec",
    [
        {"playbookRef": {"name": "hello"}},
        {"playbookRef": {"name": "hello"}, "workload": {"a": 1}, "cancel": "Graceful"},
        {"playbook": {"workflow": [{"step": "a", "tool": {"kind": "noop"}}]}},
        {"playbookRef": {"name": "x"}, "ctxPatches": [{"id": "1", "set": {"ok": True}}]},
    ],
)
def test_a_right_execution_passes(execution: Draft202012Validator, spec: dict[str, object]) -> None:
    assert [e.message for e in execution.iter_errors(resource(**spec))] == []


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"playbookRef": {"name": "x"}, "playbook": {"workflow": [{"step": "a"}]}},
        {"playbookRef": {"nmae": "x"}},
        {"playbookRef": {"name": "x"}, "cancel": "Later"},
        {"playbookRef": {"name": "x"}, "activeDeadlineSeconds": 0},
        {"playbook": {"workflow": []}},
    ],
)
def test_a_wrong_execution_fails(execution: Draft202012Validator, spec: dict[str, object]) -> None:
    assert list(execution.iter_errors(resource(**spec)))
