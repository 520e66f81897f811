"""Rules A1, A2, A4, K1, K2: documents, their two forms, what YAML means, every problem with its
place."""

from __future__ import annotations

import pytest

from noetl_core.load import Form, digest, dump, dump_resource, load, object_name
from noetl_core.problems import Severity

STEP = "workflow: [{step: a, tool: {kind: noop}}]\n"
DOCUMENT = "metadata: {name: p, path: team/p, version: 1.10, labels: {a: b}}\n" + STEP
RESOURCE = f"""\
apiVersion: noetl.io/v1
kind: Playbook
metadata: {{name: p, labels: {{a: b}}}}
spec:
  metadata: {{path: team/p, version: "1.10"}}
  {STEP}"""


def codes(text: str | bytes) -> list[str]:
    return [problem.code for loaded in load(text) for problem in loaded.problems]


def test_A1_both_forms_load_to_one_playbook(one) -> None:
    document, resource = one(DOCUMENT), one(RESOURCE)
    assert (document.form, resource.form) == (Form.DOCUMENT, Form.RESOURCE)
    assert document.playbook is not None
    assert document.playbook == resource.playbook
    assert document.playbook.metadata.version == "1.10"
    assert digest(document.playbook) == digest(resource.playbook)


def test_A1_a_name_that_kubernetes_does_not_allow_survives_the_resource_form(one) -> None:
    playbook = one("metadata: {name: My Playbook}\n" + STEP).playbook
    resource = dump_resource(playbook)
    assert resource["metadata"]["name"] == "my-playbook"
    import yaml

    assert one(yaml.safe_dump(resource)).playbook == playbook


@pytest.mark.parametrize("name", ["ÄÖ", "..", "-a-", "a..b", "x" * 300, "A_b.C"])
def test_K1_object_names_are_kubernetes_names(name: str) -> None:
    made = object_name(name)
    assert 0 < len(made) <= 253
    assert codes(RESOURCE.replace("name: p,", f"name: {made},")) == []


def test_A4_unknown_keys_name_their_path_and_the_nearest_key(problem, one) -> None:
    text = "metadata: {name: p}\nworkflow:\n- step: a\n  tool:\n  - kind: http\n    ulr: http://x\n"
    found = problem(one(text), "A4.unknown-key")
    assert (found.path, found.line, found.column) == ("workflow[0].tool[0].ulr", 6, 5)
    assert found.hint == "did you mean `url`?"
    resource = "apiVersion: noetl.io/v1\nkind: Playbook\nmetadata: {name: p}\nspec:\n  workflow:\n"
    resource += "  - step: a\n    tool:\n    - kind: http\n      ulr: http://x\n"
    found = problem(one(resource), "A4.unknown-key")
    assert (found.path, found.line, found.column) == ("spec.workflow[0].tool[0].ulr", 9, 7)


def test_A4_at_the_root(problem, one) -> None:
    found = problem(one("metadata: {name: p}\nworkflows: []\n" + STEP), "A4.unknown-key")
    assert (found.path, found.line, found.hint) == ("workflows", 2, "did you mean `workflow`?")


def test_A4_all_problems_are_reported_at_once(one) -> None:
    text = "metadata: {nam: p}\nworkflow:\n- stp: a\n  tool: {kind: htp}\n- step: 5\n  loop: {}\n"
    found = {(p.code, p.path) for p in one(text).problems}
    assert found >= {
        ("A4.unknown-key", "metadata.nam"),
        ("A1.missing", "metadata.name"),
        ("A4.unknown-key", "workflow[0].stp"),
        ("A1.missing", "workflow[0].step"),
        ("A5.unknown-kind", "workflow[0].tool.kind"),
        ("A2.type", "workflow[1].step"),
        ("A5.loop-without-in", "workflow[1].loop.in"),
        ("A5.loop-without-iterator", "workflow[1].loop.iterator"),
    }


def test_A4_the_problems_of_a_hostile_file_are_bounded(one) -> None:
    found = one("".join(f"k{i}: 1\n" for i in range(20_000))).problems
    assert len(found) <= 510
    assert [p.code for p in found].count("A4.too-many") == 1


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("metadata: {name: p}\n", "workflow"),
        (STEP, "metadata"),
        ("metadata: {}\n" + STEP, "metadata.name"),
        ("metadata:\n" + STEP, "metadata"),
        ("metadata: {name: p}\nworkflow: []\n", "workflow"),
        (RESOURCE.replace("apiVersion: noetl.io/v1\n", ""), "apiVersion"),
        (RESOURCE.replace("kind: Playbook\n", ""), "kind"),
        (RESOURCE.replace("name: p,", ""), "metadata.name"),
    ],
)
def test_A1_missing_sections_and_headers(problem, one, text: str, path: str) -> None:
    assert problem(one(text), "A1.missing").path == path


def test_K1_headers_are_ignored_in_document_form(one) -> None:
    text = "apiVersion: noetl.io/v2\nkind: Playbook\n" + DOCUMENT
    assert one(text).problems == []
    assert one(text).playbook == one(DOCUMENT).playbook


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("kind: Execution\n" + DOCUMENT, "K1.kind"),
        (RESOURCE.replace("kind: Playbook", "kind: Execution"), "K1.kind"),
        (RESOURCE.replace("noetl.io/v1", "noetl.io/v9"), "K1.api-version"),
        (RESOURCE.replace("name: p,", "name: A_b,"), "K1.resource-name"),
        (RESOURCE.replace("labels: {a: b}", "path: x"), "A4.unknown-key"),
        (RESOURCE + "workload: {}\n", "A4.unknown-key"),
        ("metadata: {name: p}\nworkflow: [{step: 1a, tool: {kind: noop}}]", "K1.name"),
        (
            f"metadata: {{name: p}}\nworkflow: [{{step: {'a' * 64}, tool: {{kind: noop}}}}]",
            "K1.name",
        ),
    ],
)
def test_K1_headers_and_names(one, problem, text: str, code: str) -> None:
    assert problem(one(text), code).severity is Severity.ERROR


def test_K2_several_documents_are_checked_each() -> None:
    first, second = load(DOCUMENT + "---\n" + RESOURCE.replace("noop", "nop"))
    assert first.problems == []
    assert [p.code for p in second.problems] == ["A5.unknown-kind"]
    assert second.problems[0].line > 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("# nothing\n---\n", "empty"),
        ("- a\n", "mapping"),
        ("just text", "mapping"),
        ("a: [", "not YAML"),
        ("a: 1\na: 2\n", "stands twice"),
        ("a: !custom 1\n", "tag !custom"),
        ("a: !!python/object:os.system x\n", "not allowed"),
        ("a:\n\t- b\n", "not YAML"),
        ("a: *b\n", "no anchor"),
        ("a: &a [*a]\n", "its own anchor"),
        ("a: \x00", "not allowed"),
        ("a: \ud800", "not allowed"),
        ('a: "\\ud800"', "not YAML"),
        (b"a: \xff", "UTF-8"),
        ("a: .inf", "no value in JSON"),
        ("a: 1e999", "too large"),
        ("a: 99999999999999999999", "64 bits"),
        ("a: " + "9" * 5000, "64 bits"),
        ("{[a]: 1}", "key must be text"),
        ("url: {{ x }}", "key must be text"),
    ],
)
def test_K2_what_is_not_a_playbook_in_yaml_is_an_error_with_its_place(
    text: str, words: str
) -> None:
    problems = [p for loaded in load(text) for p in loaded.problems if p.code == "A1.yaml"]
    assert words in problems[0].message
    assert problems[0].line >= 1
    assert problems[0].column >= 1


def test_K2_hints_for_tabs_and_braces(problem, one) -> None:
    assert "spaces" in problem(one("a:\n\tb: 1\n"), "A1.yaml").hint
    assert "quotes" in problem(one("a: {{ x }}"), "A1.yaml").hint


def test_K2_duplicate_keys_are_found_at_any_depth(problem, one) -> None:
    text = DOCUMENT + "workload:\n  a:\n  - b: 1\n    b: 2\n"
    found = problem(one(text), "A1.yaml")
    assert (found.path, found.line, found.column) == ("workload.a[0].b", 6, 5)
    assert found.hint == "first in line 5"


def test_K2_merge_keys_work_and_own_keys_win(one) -> None:
    text = (
        DOCUMENT + "workload:\n  base: &b {x: 1, z: 2}\n  more: {<<: *b, z: 3}\n"
        "  two: {<<: [*b, {w: 4, x: 9}]}\n"
    )
    workload = one(text).playbook.workload
    assert workload["more"] == {"x": 1, "z": 3}
    assert workload["two"] == {"x": 1, "z": 2, "w": 4}


def test_K2_yaml_1_1_booleans_and_octals_mean_what_kubernetes_reads_with_a_warning(one) -> None:
    loaded = one(DOCUMENT + "workload:\n  a: yes\n  b: off\n  c: 010\n  d: 'no'\n  on: 1\n")
    assert loaded.playbook.workload == {"a": True, "b": False, "c": 8, "d": "no", "true": 1}
    warned = [(p.code, p.path, p.line, p.severity) for p in loaded.problems]
    assert warned == [
        ("K2.surprise", f"workload.{key}", line, Severity.WARNING)
        for key, line in (("a", 4), ("b", 5), ("c", 6), ("on", 8))
    ]


def test_K2_y_and_n_are_names_and_worth_a_warning_only_in_resource_form(one) -> None:
    document = one(DOCUMENT + "workload: {x: 1, y: 2, n: 3}\n")
    assert document.playbook.workload == {"x": 1, "y": 2, "n": 3}
    assert document.problems == []
    resource = one(RESOURCE + "  workload: {y: 2}\n")
    assert [(p.code, p.severity) for p in resource.problems] == [("K2.surprise", Severity.WARNING)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-01-02", "2024-01-02"),
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
        ("12:30:00", "12:30:00"),
        ("0x1F", 31),
        ("1_000", 1000),
        ("-0b11", -3),
        ("0x_", "0x_"),
        ("1.50", 1.5),
        ("~", None),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("null", None),
        ("TRUE", True),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_K2_plain_scalars(one, text: str, value: object) -> None:
    assert one(DOCUMENT + f"workload: {{a: {text}}}\n").playbook.workload == {"a": value}


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_K2_line_ends_and_byte_order_marks(one, newline: str) -> None:
    text = "\ufeff" + "metadata:\n  name: p\nworkflow:\n- step: a\n  toool: {}\n".replace(
        "\n", newline
    )
    for data in (text, text.encode()):
        found = [(p.line, p.column) for p in one(data).problems if p.code == "A4.unknown-key"]
        assert found == [(5, 3)]


def test_A1_dump_leaves_defaults_out(one) -> None:
    assert dump(one("metadata: {name: p}\n" + STEP).playbook) == {
        "metadata": {"name": "p"},
        "workflow": [{"step": "a", "tool": [{"name": "a_task", "kind": "noop"}]}],
    }


def test_A1_executor_in_both_forms(one, problem) -> None:
    short, long = (
        one(DOCUMENT + f"executor: {written}\n").playbook for written in ("job", "{kind: job}")
    )
    assert short == long
    assert digest(short) == digest(long) != digest(one(DOCUMENT).playbook)
    found = problem(one(DOCUMENT + "executor: jbo\n"), "K3.executor-kind")
    assert (found.path, found.hint) == ("executor", "did you mean `job`?")


def test_A2_values_of_the_wrong_type(one) -> None:
    text = "metadata: x\nkeychain: {}\nworkload: []\nworkbook: 5\nexecutor: []\nworkflow: {}\n"
    assert {(p.code, p.path) for p in one(text).problems} == {
        ("A2.type", section)
        for section in ("metadata", "keychain", "workload", "workbook", "executor", "workflow")
    }
