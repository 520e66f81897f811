"""Which settings a task runs with, and who gave them: rules F1, H1, I5, K5, K38, K42."""

from __future__ import annotations

from noetl_core.check import check_text
from noetl_core.layers import effective_spec, explain, resolved_task
from noetl_core.model import Playbook, Step, Task
from noetl_core.values import Value


def played(text: str) -> tuple[Playbook, Step, Task]:
    (checked,) = check_text("metadata: {name: x}\n" + text)
    assert checked.playbook is not None, checked.problems
    step = checked.playbook.workflow[0]
    return checked.playbook, step, step.tool[0]


def effective(text: str) -> dict[str, Value]:
    return effective_spec(*played(text))


def scopes(text: str) -> dict[str, tuple[Value, str]]:
    return {one.path: (one.value, one.scope) for one in explain(*played(text))}


LAYERS = """
executor:
  spec:
    timeout: {connect: 1, read: 1}
    retry_statuses: [500, 502]
workflow:
  - step: a
    spec:
      timeout: {connect: 2}
      numeric: text
      result: {inline_max_bytes: 10, select: {a: $.a}}
    loop:
      in: [1]
      iterator: x
      spec: {retry_statuses: [503], timeout: {read: 3}}
      loop:
        in: [1]
        iterator: y
        spec: {timeout: {read: 4}}
    tool:
      kind: http
      url: http://localhost
      spec: {result: {select: {b: $.b}}}
"""


def test_F1_inner_scalars_win_maps_merge_and_lists_replace() -> None:
    assert effective(LAYERS) == {
        "timeout": {"connect": 2, "read": 4},
        "retry_statuses": [503],
        "numeric": "text",
        "result": {"inline_max_bytes": 10, "select": {"a": "$.a", "b": "$.b"}},
    }


def test_F1_every_effective_value_names_the_scope_that_gave_it() -> None:
    assert scopes(LAYERS) == {
        "timeout.connect": (2, "step.spec"),
        "timeout.read": (4, "loop.loop.spec"),
        "retry_statuses": ([503], "loop.spec"),
        "numeric": ("text", "step.spec"),
        "result.inline_max_bytes": (10, "step.spec"),
        "result.select.a": ("$.a", "step.spec"),
        "result.select.b": ("$.b", "task.spec"),
    }


def test_F1_a_scalar_replaces_a_map_and_a_map_a_scalar() -> None:
    text = """
executor: {spec: {timeout: 7}}
workflow: [{step: a, tool: {kind: http, url: u%s}}]
"""
    assert effective(text % "")["timeout"] == 7
    assert scopes(text % "")["timeout"] == (7, "executor.spec")
    inner = text % ", spec: {timeout: {read: 2}}"
    assert effective(inner)["timeout"] == {"read": 2}
    assert scopes(inner)["timeout.read"] == (2, "task.spec")
    assert "timeout" not in scopes(inner)


def test_F1_where_nothing_is_said_the_kind_decides() -> None:
    text = "workflow: [{step: a, tool: {kind: http, url: u}}]"
    assert scopes(text)["timeout.connect"] == (10, "kind defaults")
    assert scopes(text)["retry_statuses"] == ([], "kind defaults")
    assert effective(text)["result"] == {"inline_max_bytes": 64 * 1024}


def test_F1_an_empty_list_replaces() -> None:
    text = """
executor: {spec: {retry_statuses: [500]}}
workflow: [{step: a, tool: {kind: http, url: u, spec: {retry_statuses: []}}}]
"""
    assert scopes(text)["retry_statuses"] == ([], "task.spec")


def test_F1_what_belongs_to_its_scope_does_not_layer() -> None:
    text = """
executor: {spec: {entry_step: a, result: "{{ ctx.x }}"}}
workflow:
  - step: a
    spec: {policy: {lifecycle: {timeout_s: 3}}}
    loop: {in: [1], iterator: x, spec: {mode: parallel, max_in_flight: 2}}
    tool: {kind: noop}
"""
    assert effective(text) == {"result": {"inline_max_bytes": 64 * 1024}}


def test_K42_the_executors_default_timeout_is_the_weakest_the_author_gives() -> None:
    text = """
executor: {spec: {%spolicy: {defaults: {timeouts: {task: 5, step: 9}}}}}
workflow: [{step: a, tool: {kind: http, url: u}}]
"""
    assert scopes(text % "")["timeout"] == (5, "executor.spec.policy.defaults")
    assert scopes(text % "timeout: 6, ")["timeout"] == (6, "executor.spec")


def test_K5_results_are_kept_as_the_executor_says_unless_a_task_says_more() -> None:
    text = """
executor: {spec: {policy: {results: {inline_max_bytes: 100, reference_first: true}}}}
workflow:
  - step: a
    tool: {kind: noop, spec: {result: {select: {x: x}}}}
"""
    assert scopes(text) == {
        "result.inline_max_bytes": (100, "executor.spec.policy.results"),
        "result.reference_first": (True, "executor.spec.policy.results"),
        "result.select.x": ("x", "task.spec"),
    }


WORKBOOK = """
workbook:
  fetch:
    kind: http
    url: http://localhost/a
    headers: {A: "1", B: "2"}
    params: {list: [1, 2]}
    spec:
      timeout: {connect: 1, read: 2}
      policy: {rules: [{else: {then: {do: continue}}}]}
workflow:
  - step: a
    tool:
      - name: mine
        kind: workbook
        task: fetch
        headers: {B: "3"}
        params: {list: [3]}
        spec: {timeout: {read: 9}%s}
"""


def test_K38_the_callers_keys_overlay_the_workbooks_task() -> None:
    playbook, _, task = played(WORKBOOK % "")
    resolved = resolved_task(playbook, task)
    assert (resolved.name, resolved.kind) == ("mine", "http")
    assert resolved.inputs == {
        "url": "http://localhost/a",
        "headers": {"A": "1", "B": "3"},
        "params": {"list": [3]},
    }
    assert resolved.spec.timeout == {"connect": 1, "read": 9}
    assert resolved.spec.policy == playbook.workbook["fetch"].spec.policy


def test_K38_the_callers_policy_replaces_as_a_whole() -> None:
    own = ", policy: {rules: [{when: \"{{ outcome.status == 'error' }}\", then: {do: fail}}]}"
    playbook, _, task = played(WORKBOOK % own)
    assert resolved_task(playbook, task).spec.policy == task.spec.policy


def test_K38_explain_tells_the_workbook_from_the_caller() -> None:
    found = scopes(WORKBOOK % "")
    assert found["timeout.connect"] == (1, "workbook.fetch.spec")
    assert found["timeout.read"] == (9, "task.spec")
    assert found["retry_statuses"] == ([], "kind defaults")


def test_K38_the_workbook_itself_stays_as_it_is() -> None:
    playbook, step, task = played(WORKBOOK % "")
    resolved_task(playbook, task)
    effective_spec(playbook, step, task)
    assert playbook.workbook["fetch"].inputs["headers"] == {"A": "1", "B": "2"}
