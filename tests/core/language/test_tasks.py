"""Rules A2, A3, I5, K6, K38: tasks in all their shapes, the workbook, what is never a template."""

from __future__ import annotations

import pytest

from noetl_core.load import digest, load
from noetl_core.problems import Severity
from noetl_core.scopes import Scope
from noetl_core.tools import BUILT_IN, ToolKind

HEAD = "metadata: {name: p}\nworkflow:\n- step: s\n  "


def playbook(body: str):
    (loaded,) = load(HEAD + body)
    assert loaded.playbook is not None, loaded.problems
    return loaded.playbook


def test_A3_unnamed_tasks_are_named_by_position() -> None:
    tasks = playbook("tool: [{kind: noop}, {name: own, kind: noop}, {kind: noop}]").workflow[0].tool
    assert [task.name for task in tasks] == ["task_0", "own", "task_2"]


def test_A3_a_single_object_is_named_after_its_step() -> None:
    assert [task.name for task in playbook("tool: {kind: noop}").workflow[0].tool] == ["s_task"]


def test_A3_its_name_does_not_depend_on_the_order_of_keys() -> None:
    (loaded,) = load("metadata: {name: p}\nworkflow:\n- tool: {kind: noop}\n  step: s\n")
    assert loaded.playbook == playbook("tool: {kind: noop}")


def test_A3_the_labelled_form_loads_with_a_warning_that_shows_the_rewrite(problem) -> None:
    (loaded,) = load(HEAD + "tool:\n  - fetch:\n      kind: http\n      url: '{{ workload.a }}'\n")
    warning = problem(loaded, "A3.labelled-task")
    assert warning.severity is Severity.WARNING
    assert (warning.path, warning.line, warning.column) == ("workflow[0].tool[0].fetch", 5, 5)
    assert warning.hint == 'write:\n  - name: fetch\n    kind: http\n    url: "{{ workload.a }}"'
    assert loaded.playbook == playbook("tool: [{name: fetch, kind: http, url: '{{ workload.a }}'}]")


def test_A3_paths_in_the_labelled_form_are_those_of_the_file(problem) -> None:
    (loaded,) = load(HEAD + "tool:\n  - fetch:\n      kind: http\n      ulr: x\n      url: x\n")
    found = problem(loaded, "A4.unknown-key")
    assert (found.path, found.line) == ("workflow[0].tool[0].fetch.ulr", 7)


def test_A3_a_mapping_of_labels_is_refused_with_the_list(problem) -> None:
    (loaded,) = load(HEAD + "tool: {a: {kind: noop}, b: {kind: noop}}")
    assert "- name: a\n    kind: noop\n  - name: b" in problem(loaded, "A3.labelled-map").hint


def test_A3_all_shapes_have_one_digest() -> None:
    shapes = [
        "tool: {kind: noop}",
        "tool: [{name: s_task, kind: noop}]",
        "tool: [{s_task: {kind: noop}}]",
        "tool: [{kind: noop, name: s_task, spec: {}}]",
    ]
    assert len({digest(playbook(shape)) for shape in shapes}) == 1


@pytest.mark.parametrize(
    ("tool", "path"),
    [
        ("{kind: http}", "tool.url"),
        ("{kind: postgres, command: x}", "tool.auth"),
        ("{kind: duckdb}", "tool.command"),
        ("{kind: python}", "tool.code"),
        ("{kind: playbook}", "tool.playbook"),
        ("{kind: workbook}", "tool.task"),
        ("{kind: secrets}", "tool.auth"),
        ("{name: a}", "tool.kind"),
    ],
)
def test_A2_what_a_kind_needs(problem, tool: str, path: str) -> None:
    (loaded,) = load(HEAD + f"tool: {tool}")
    assert problem(loaded, "A1.missing").path == f"workflow[0].{path}"


@pytest.mark.parametrize("tool", ["5", "[5]", "[[]]", "text"])
def test_A2_a_task_is_a_mapping(tool: str) -> None:
    (loaded,) = load(HEAD + f"tool: {tool}")
    assert [p.code for p in loaded.problems] == ["A2.type"]


def test_I1_fetch_is_a_closed_set(problem) -> None:
    (loaded,) = load(HEAD + "tool: {kind: postgres, auth: a, command: x, fetch: al}")
    found = problem(loaded, "I1.fetch")
    assert found.hint == "did you mean `all`?"


BOOKS = (
    "workbook:\n  clean: {kind: noop, result: {a: 1}}\n  load: {kind: python, code: x}\n",
    "workbook:\n- {name: clean, kind: noop, result: {a: 1}}\n"
    "- {name: load, kind: python, code: x}\n",
)


def test_I5_the_workbook_is_a_mapping_or_a_list() -> None:
    by_name, listed = (playbook(f"tool: {{kind: noop}}\n{book}") for book in BOOKS)
    assert by_name == listed
    assert digest(by_name) == digest(listed)
    assert by_name.workbook["clean"].inputs == {"result": {"a": 1}}


def test_I5_problems_of_the_workbook_have_their_places() -> None:
    for book, path in zip(BOOKS, ("workbook.load.cod", "workbook[1].cod"), strict=True):
        (loaded,) = load(HEAD + "tool: {kind: noop}\n" + book.replace("code: x", "cod: x, code: x"))
        assert [(p.code, p.path) for p in loaded.problems] == [("A4.unknown-key", path)]


def test_I5_two_tasks_of_one_name(problem) -> None:
    book = "workbook: [{name: a, kind: noop}, {name: a, kind: noop}]\n"
    (loaded,) = load(HEAD + "tool: {kind: noop}\n" + book)
    assert problem(loaded, "A5.duplicate-label").path == "workbook[1]"


def test_K38_the_keys_of_a_call_overlay_and_old_words_are_refused(problem) -> None:
    task = playbook("tool: {kind: workbook, task: clean, url: '{{ ctx.u }}'}").workflow[0].tool[0]
    assert task.inputs == {"task": "clean", "url": "{{ ctx.u }}"}
    (loaded,) = load(HEAD + "tool: {kind: workbook, task: clean, input: {a: 1}}")
    assert problem(loaded, "A5.post-v10-input").path == "workflow[0].tool.input"


def test_I_a_tool_that_plugs_in_judges_its_own_keys() -> None:
    kinds = {**BUILT_IN, "kafka": ToolKind("kafka", None)}
    (loaded,) = load(HEAD + "tool: {kind: kafka, topic: '{{ ctx.t }}', input: 1}", kinds)
    assert loaded.problems == []
    assert [use.path for use in loaded.reading.templates] == [("workflow", 0, "tool", 0, "topic")]


def test_K6_what_is_never_a_template() -> None:
    text = """\
metadata: {name: "{{ a }}", description: "{% x %}", labels: {a: "{{"}}
workload: {a: "{{ broken"}
workflow:
- step: s
  desc: "{{ broken"
  tool: {kind: python, code: "x = '{{ broken'", args: {"{{ key": 1}}
"""
    (loaded,) = load(text)
    assert loaded.problems == []
    assert loaded.reading.templates == []


def test_K6_what_is_a_template_and_in_which_scope() -> None:
    text = """\
metadata: {name: p}
executor: {spec: {result: "{{ ctx.r }}"}}
workflow:
- step: s
  spec: {policy: {admit: {rules: [{when: "{{ ctx.a }}", then: {allow: true}}]}}}
  loop:
    in: "{{ workload.l }}"
    iterator: i
    loop: {in: "{{ iter.i }}", iterator: j}
  tool:
  - kind: http
    url: "{{ workload.u }}"
    auth: "{{ ctx.entry }}"
    headers: {a: ["{{ keychain.k.v }}"]}
  - kind: noop
    result: "{{ _prev }}"
    spec:
      policy:
        rules: [{when: "{{ outcome.status }}", then: {do: retry, delay: "{{ outcome.d }}"}}]
  next: {arcs: [{step: s, when: "{{ event.name }}", args: {x: "{{ ctx.x }}"}}]}
"""
    (loaded,) = load(text)
    assert loaded.problems == []
    assert {use.template.source: use.scope for use in loaded.reading.templates} == {
        "{{ ctx.r }}": Scope.RESULT,
        "{{ ctx.a }}": Scope.ADMIT,
        "{{ workload.l }}": Scope.LOOP,
        "{{ iter.i }}": Scope.INNER_LOOP,
        "{{ workload.u }}": Scope.TASK,
        "{{ ctx.entry }}": Scope.TASK,
        "{{ keychain.k.v }}": Scope.TASK,
        "{{ _prev }}": Scope.TASK_STORED,
        "{{ outcome.status }}": Scope.POLICY,
        "{{ outcome.d }}": Scope.DELAY,
        "{{ event.name }}": Scope.ARC,
        "{{ ctx.x }}": Scope.ARC,
    }


def test_B6_a_wrong_template_is_reported_at_its_own_words(problem) -> None:
    (loaded,) = load(
        HEAD + "tool:\n    kind: http\n    url: http://a\n    body: |\n"
        "      one {{ ok() }}\n      two {{ ctx.a }} and {% if x %}\n"
    )
    call, statement = loaded.problems
    assert (call.code, call.path, call.line) == ("B6.call", "workflow[0].tool.body", 8)
    assert (statement.code, statement.line, statement.column) == ("B6.statement", 9, 27)


def test_B6_the_second_of_two_equal_words_has_its_own_place() -> None:
    (loaded,) = load(HEAD + "tool: {kind: noop, result: 'f() {{ f() }} {{ f() }}'}")
    assert [p.column for p in loaded.problems] == [38, 48]
