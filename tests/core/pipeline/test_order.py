"""Tasks in order, and the actions that change the order (rules D1, D3, D5, D8, K23)."""

from __future__ import annotations

import pytest

from noetl_core.values import Value
from tests.support.driving import Driver, failed, ok, plan_of, scope

THREE = """
tool:
  - {name: a, kind: python, code: x}
  - {name: b, kind: python, code: x}
  - {name: c, kind: python, code: x}
"""


def one_task(policy: str, label: str = "a") -> str:
    return f"tool:\n  - {{name: {label}, kind: python, code: x, spec: {{policy: {policy}}}}}\n"


def test_D1_tasks_run_in_order_and_each_is_reported_from_start_to_decision() -> None:
    driver = Driver(plan_of(THREE), {"a": [ok(1)], "b": [ok(2)], "c": [ok(3)]})
    end = driver.run()
    assert driver.labels == ["a", "b", "c"]
    assert driver.names == ["task.started", "task.done", "policy.task.evaluated"] * 3
    assert (end.ok, end.result) == (True, 3)
    first = driver.facts[0]
    assert (first.step, first.task, first.attempt, first.iteration) == ("s", "a", 1, None)


def test_D1_without_a_policy_an_error_fails_the_pipeline() -> None:
    driver = Driver(plan_of(THREE), {"a": [ok(1)], "b": [failed("auth", "who?", code="HTTP_401")]})
    end = driver.run()
    assert driver.labels == ["a", "b"]
    assert end.error is not None
    assert (end.task, end.error.kind, end.error.code) == ("b", "auth", "HTTP_401")
    assert driver.names[-2:] == ["task.failed", "policy.task.evaluated"]
    assert driver.payloads("policy.task.evaluated")[-1] == {
        "rule": "default",
        "action": "fail",
        "to": None,
        "delay": None,
    }


def test_D1_the_first_rule_that_matches_wins() -> None:
    plan = plan_of(
        one_task(
            "{rules: [{when: '{{ outcome.status == \"error\" }}', then: {do: break}},"
            " {when: true, then: {do: fail}}, {else: {then: {do: fail}}}]}"
        )
    )
    driver = Driver(plan, {"a": [failed()]})
    assert driver.run().ok
    assert driver.payloads("policy.task.evaluated")[0]["rule"] == 0


@pytest.mark.parametrize("outcome", [ok(7), failed()])
def test_D1_a_policy_without_a_match_continues(outcome: object) -> None:
    plan = plan_of(one_task("{rules: [{when: false, then: {do: fail}}]}"))
    driver = Driver(plan, {"a": [outcome]})  # type: ignore[list-item]
    assert driver.run().ok
    assert driver.payloads("policy.task.evaluated")[0]["rule"] == "none"


def test_D1_on_unmatched_fail_fails_with_the_tasks_error() -> None:
    plan = plan_of(one_task("{on_unmatched: fail, rules: [{when: false, then: {do: break}}]}"))
    end = Driver(plan, {"a": [failed("parse", "bad")]}).run()
    assert end.error is not None
    assert (end.error.kind, end.error.message) == ("parse", "bad")


def test_D1_on_unmatched_fail_fails_an_ok_outcome_by_policy() -> None:
    plan = plan_of(one_task("{on_unmatched: fail, rules: [{when: false, then: {do: break}}]}"))
    end = Driver(plan, {"a": [ok(1)]}).run()
    assert end.error is not None
    assert (end.error.kind, end.error.code) == ("policy", "POLICY_FAIL")


def test_D1_else_is_reported_by_its_name() -> None:
    plan = plan_of(
        one_task("{rules: [{when: false, then: {do: fail}}, {else: {then: {do: break}}}]}")
    )
    driver = Driver(plan, {"a": [failed()]})
    assert driver.run().ok
    assert driver.payloads("policy.task.evaluated")[0] == {
        "rule": "else",
        "action": "break",
        "to": None,
        "delay": None,
    }


def jumping(to: str, when: str) -> str:
    rules = f"[{{when: '{when}', then: {{do: jump, to: {to}}}}}]"
    return f"""
tool:
  - {{name: a, kind: python, code: x}}
  - {{name: b, kind: python, code: x, spec: {{policy: {{rules: {rules}}}}}}}
  - {{name: c, kind: python, code: x}}
"""


def test_D3_jump_goes_backwards() -> None:
    results = {"a": [ok(1), ok(1)], "b": [ok("again"), ok("on")], "c": [ok(3)]}
    driver = Driver(plan_of(jumping("a", '{{ outcome.result == "again" }}')), results)
    assert driver.run().result == 3
    assert driver.labels == ["a", "b", "a", "b", "c"]
    assert driver.payloads("policy.task.evaluated")[1]["to"] == "a"


def test_D3_jump_goes_forwards_and_leaves_out_what_is_between() -> None:
    body = THREE.replace(
        "{name: a, kind: python, code: x}",
        "{name: a, kind: python, code: x, spec: {policy: {rules: "
        "[{when: true, then: {do: jump, to: c}}]}}}",
    )
    driver = Driver(plan_of(body), {"a": [ok(1)], "c": [ok(3)]})
    driver.run()
    assert driver.labels == ["a", "c"]


def test_D3_break_ends_well_with_prev_and_fail_ends_badly() -> None:
    policy = "{rules: [{when: true, then: {do: %s}}]}"
    body = one_task(policy) + "  - {name: b, kind: noop}\n"
    driver = Driver(plan_of(body % "break"), {"a": [ok("early")]})
    end = driver.run()
    assert (end.result, driver.labels) == ("early", ["a"])
    end = Driver(plan_of(body % "fail"), {"a": [failed("timeout")]}).run()
    assert end.error is not None
    assert end.error.kind == "timeout"


def test_D3_K23_an_endless_jump_ends_at_max_task_runs() -> None:
    head = "executor: {kind: pool, spec: {policy: {limits: {max_task_runs: 7}}}}"
    driver = Driver(plan_of(one_task("{rules: [{when: true, then: {do: jump, to: a}}]}"), head))
    end = driver.run()
    assert len(driver.runs) == 7
    assert end.error is not None
    assert (end.error.kind, end.task) == ("limit", "a")
    assert not end.error.kind.retryable


def test_K23_retries_count_as_task_runs() -> None:
    head = "executor: {kind: pool, spec: {policy: {limits: {max_task_runs: 2}}}}"
    plan = plan_of(one_task("{rules: [{when: true, then: {do: retry, attempts: 9}}]}"), head)
    end = Driver(plan, {"a": [failed(), failed()]}).run()
    assert end.error is not None
    assert end.error.kind == "limit"


def test_D5_prev_is_the_result_of_the_last_task_that_ended_ok() -> None:
    body = """
tool:
  - {name: a, kind: python, code: x}
  - name: b
    kind: python
    code: x
    args: {got: "{{ _prev }}"}
    spec: {policy: {rules: [{when: true, then: {do: continue}}]}}
  - {name: c, kind: python, code: x, args: {got: "{{ _prev }}"}}
"""
    driver = Driver(plan_of(body), {"a": [ok({"n": 1})], "b": [failed()], "c": [ok(3)]})
    driver.run()
    assert driver.runs[1].inputs["args"] == {"got": {"n": 1}}
    assert driver.runs[2].inputs["args"] == {"got": {"n": 1}}


def test_D5_noop_passes_prev_unless_it_has_a_result() -> None:
    body = "tool:\n  - {name: a, kind: python, code: x}\n  - {name: b, kind: noop%s}\n"
    assert Driver(plan_of(body % ""), {"a": [ok([1, 2])]}).run().result == [1, 2]
    given = body % ", result: '{{ _prev | length }}'"
    assert Driver(plan_of(given), {"a": [ok([1, 2])]}).run().result == 2
    assert Driver(plan_of(body % ", result: null"), {"a": [ok([1, 2])]}).run().result is None


def test_D5_prev_is_null_before_any_task_and_iter_is_there_without_a_loop() -> None:
    body = "tool: {kind: python, code: x, args: {p: '{{ _prev }}', i: '{{ iter }}'}}"
    driver = Driver(plan_of(body), {"s_task": [failed("auth")]})
    assert driver.run().result is None
    assert driver.runs[0].inputs["args"] == {"p": None, "i": {}}


def test_C12_an_empty_pipeline_yields_null() -> None:
    plan = plan_of("next: {arcs: []}")
    assert Driver(plan).run().result is None


def test_B4_labels_task_and_attempt_are_names() -> None:
    body = """
tool:
  - {name: fetch, kind: python, code: x}
  - name: use
    kind: python
    code: x
    args: {d: "{{ fetch.data }}", t: "{{ _task }}", n: "{{ _attempt }}"}
    spec:
      policy:
        rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, delay: 0}}]
"""
    results = {"fetch": [ok({"data": 5})], "use": [failed(), ok(1)]}
    driver = Driver(plan_of(body), results)
    driver.run()
    seen: list[Value] = [run.inputs["args"] for run in driver.runs[1:]]
    assert seen == [{"d": 5, "t": "use", "n": 1}, {"d": 5, "t": "use", "n": 2}]


def test_B4_execution_and_bare_names() -> None:
    body = """
tool:
  kind: python
  code: x
  args:
    e: "{{ execution.name }}/{{ execution.namespace }}"
    i: "{{ execution_id == execution.id }}"
    w: "{{ api_url }}"
"""
    driver = Driver(
        plan_of(body, "workload: {api_url: ''}"), scope=scope(workload={"api_url": "http://x"})
    )
    driver.run()
    assert driver.runs[0].inputs["args"] == {"e": "nightly/etl", "i": True, "w": "http://x"}


def test_B5_what_was_rendered_is_not_rendered_again() -> None:
    body = "tool: {kind: python, code: x, args: {t: '{{ ctx.text }}'}}"
    driver = Driver(plan_of(body), scope=scope(ctx={"text": "{{ workload.secret }}"}))
    driver.run()
    assert driver.runs[0].inputs["args"] == {"t": "{{ workload.secret }}"}
