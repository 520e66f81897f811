"""`noetl check`: the JSON contract, the exit codes, and what people see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import VALID, Noetl

Write = Callable[[str, str], str]
KEYS = {"code", "severity", "path", "line", "column", "message", "hint"}
WRONG = VALID.replace("kind: noop", "kind: noop\n        ulr: x")
LABELLED = VALID.replace("- name: say\n        kind: noop", "- say: {kind: noop}")


def test_a_valid_file_is_one_entry_with_its_digest(noetl: Noetl, valid: str) -> None:
    result = noetl("check", valid, "-o", "json")
    assert result.code == 0
    (entry,) = result.json
    assert entry == {"file": valid, "valid": True, "digest": entry["digest"], "problems": []}
    assert entry["digest"].startswith("sha256:")
    assert result.err == ""


def test_a_problem_has_every_field_of_the_contract(noetl: Noetl, file: Write) -> None:
    result = noetl("check", file("w.yaml", WRONG), "-o", "json")
    assert result.code == 1
    (entry,) = result.json
    assert (entry["valid"], entry["digest"]) == (False, None)
    (problem,) = entry["problems"]
    assert set(problem) == KEYS
    assert problem["severity"] == "error"
    assert problem["path"] == "workflow[0].tool[0].ulr"
    assert (problem["line"], problem["column"]) == (8, 9)


def test_several_files_and_documents_are_an_entry_each(noetl: Noetl, file: Write) -> None:
    two = file("two.yaml", VALID + "---\n" + WRONG)
    one = file("one.yaml", VALID)
    result = noetl("check", two, one, "-o", "json")
    assert [(e["file"], e["valid"]) for e in result.json] == [
        ("two.yaml", True),
        ("two.yaml", False),
        ("one.yaml", True),
    ]
    assert result.code == 1


def test_strict_makes_a_warning_fail_and_keeps_its_severity(noetl: Noetl, file: Write) -> None:
    name = file("l.yaml", LABELLED)
    lenient, strict = (
        noetl("check", name, "-o", "json"),
        noetl("check", name, "--strict", "-o", "json"),
    )
    assert (lenient.code, lenient.json[0]["valid"]) == (0, True)
    assert (strict.code, strict.json[0]["valid"]) == (1, False)
    assert [p["severity"] for p in strict.json[0]["problems"]] == ["warning"]
    assert strict.json[0]["digest"] == lenient.json[0]["digest"]


def test_stdin_is_a_file_named_by_a_dash(noetl: Noetl) -> None:
    result = noetl("check", "-", "-o", "json", stdin=VALID)
    assert (result.code, result.json[0]["file"]) == (0, "-")


def test_a_folder_stands_for_its_yaml_files(noetl: Noetl, file: Write, tmp_path: Path) -> None:
    (tmp_path / "books").mkdir()
    for name in ("books/b.yml", "books/a.yaml", "books/c.txt"):
        file(name, VALID)
    result = noetl("check", "books", "-o", "json")
    assert [e["file"] for e in result.json] == ["books/a.yaml", "books/b.yml"]


def test_K2_a_missing_file_is_exit_2_with_the_near_name(noetl: Noetl, valid: str) -> None:
    result = noetl("check", "smal.yaml")
    assert result.code == 2
    assert result.out == ""
    assert (
        result.err == "error: smal.yaml: there is no such file\nhint: did you mean `small.yaml`?\n"
    )


def test_K2_an_unreadable_file_with_json_is_an_error_document(noetl: Noetl, tmp_path: Path) -> None:
    result = noetl("check", "-o", "json", str(tmp_path / "no" / "such.yaml"))
    assert result.code == 2
    assert set(result.json) == {"error"}
    assert set(result.json["error"]) == {"message", "hint"}


@pytest.mark.parametrize("text", ["", "a: [", "- 1\n", "\tx: 1\n", "x: \x00\n"])
def test_K2_what_is_no_playbook_is_invalid_not_unreadable(
    noetl: Noetl, file: Write, text: str
) -> None:
    result = noetl("check", file("w.yaml", text), "-o", "json")
    assert result.code == 1
    assert result.json[0]["valid"] is False
    assert result.json[0]["problems"]


def test_a_problem_is_shown_with_its_line_and_a_caret(noetl: Noetl, file: Write) -> None:
    result = noetl("check", file("w.yaml", WRONG))
    lines = result.out.splitlines()
    assert lines[0] == "error[A4.unknown-key]: unknown key `ulr`"
    assert lines[1] == " --> w.yaml:8:9  (workflow[0].tool[0].ulr)"
    assert lines[2:5] == ["  |", "8 |         ulr: x", "  |         ^^^"]
    assert lines[5].startswith("  = hint: ")
    assert lines[-1] == "not valid: 1 error"


def test_quiet_leaves_the_summary_out(noetl: Noetl, valid: str, file: Write) -> None:
    assert noetl("check", valid, "-q").out == ""
    assert "not valid" not in noetl("-q", "check", file("w.yaml", WRONG)).out


def caret_column(out: str) -> tuple[str, int]:
    """The text above the first caret, and how many cells stand before it."""
    lines = out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.rstrip("^ ").endswith("|") and "^" in line)
    return lines[at - 1], lines[at].index("^")


def test_the_caret_stands_below_wide_characters_and_tabs(noetl: Noetl, file: Write) -> None:
    text = 'metadata: {name: x, labels: {"日本": a,\t"é": b}, nmae: y}\n' + VALID.split("\n", 2)[2]
    above, caret = caret_column(noetl("check", file("w.yaml", text)).out)
    from rich.cells import cell_len

    assert caret == cell_len(above[: above.index("nmae")])


def test_a_long_line_is_cut_around_the_caret(noetl: Noetl, file: Write) -> None:
    long = (
        "metadata: {name: x, labels: {a: '"
        + "y" * 5000
        + "'}, nmae: y, description: '"
        + "z" * 900
        + "'}\n"
    )
    out = noetl("check", file("w.yaml", long + VALID.split("\n", 2)[2])).out
    above, caret = caret_column(out)
    assert max(len(line) for line in out.splitlines()) < 130
    assert above[caret:].startswith("nmae")


def test_control_characters_never_reach_the_terminal(noetl: Noetl, file: Write) -> None:
    hostile = "\u202eevil\u2066"
    text = VALID + f'"\\e[31m{hostile}": 1\n' + f"x{hostile}: [bold]hi[/bold]\n"
    result = noetl("check", file("w.yaml", text))
    assert result.code == 1
    shown = result.out + result.err
    assert not set("\x1b\u202e\u2066") & set(shown)
    assert "\\u202e" in shown
    assert "[bold]hi[/bold]" in shown


def test_a_raw_escape_in_the_file_is_a_problem_and_shown_escaped(noetl: Noetl, file: Write) -> None:
    result = noetl("check", file("w.yaml", VALID + "x: \x1b[2J\n"))
    assert result.code == 1
    assert "\x1b" not in result.out


EXPLAINED = """\
metadata: {name: layered}
executor: {kind: pool, spec: {timeout: 30}}
workflow:
  - step: fetch
    spec: {timeout: 20}
    tool:
      - {name: get, kind: http, url: "http://x", spec: {retry_statuses: [503]}}
"""


def test_F1_explain_says_which_scope_gave_a_value(noetl: Noetl, file: Write) -> None:
    name = file("e.yaml", EXPLAINED)
    result = noetl("check", name, "--explain", "fetch.get", "-o", "json")
    assert result.code == 0
    given = {v["path"]: (v["value"], v["scope"]) for v in result.json[0]["explain"]}
    assert given["timeout"] == (20, "step.spec")
    assert given["retry_statuses"] == ([503], "task.spec")
    text = noetl("check", name, "--explain", "fetch.get").out
    assert "timeout" in text
    assert "step.spec" in text


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ("ftch.get", "did you mean `fetch`?"),
        ("fetch.got", "its tasks: get"),
        ("fetch", "for example --explain fetch.get"),
    ],
)
def test_F1_explain_of_what_is_not_there_is_wrong_usage(
    noetl: Noetl, file: Write, wanted: str, hint: str
) -> None:
    result = noetl("check", file("e.yaml", EXPLAINED), "--explain", wanted)
    assert result.code == 2
    assert hint in result.err


def test_a_huge_file_is_refused_quickly(noetl: Noetl, file: Write) -> None:
    result = noetl("check", file("w.yaml", "x" * (9 * 1024 * 1024)), "-o", "json")
    assert result.code == 1
    assert "larger than" in result.json[0]["problems"][0]["message"]
