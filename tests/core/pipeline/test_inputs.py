"""What a tool is given: rendered inputs, the effective spec, names for its call (B3, F1, K6 …)."""

from __future__ import annotations

from uuid import UUID

import pytest

from noetl_core.outcomes import Outcome
from noetl_core.pipeline.requests import RunTask
from noetl_core.pipeline.scopes import Iteration
from noetl_core.values import Value
from tests.support.driving import Driver, failed, ok, plan_of, scope


def test_D6_an_input_that_cannot_be_rendered_is_an_error_of_the_task() -> None:
    driver = Driver(plan_of("tool: {kind: http, url: 'http://x/{{ ctx.id }}'}"))
    end = driver.run()
    assert driver.runs == []
    assert end.error is not None
    assert (end.error.kind, end.error.source) == ("template", "http")
    assert "ctx.id" in end.error.message
    assert "url" in end.error.message
    assert driver.names == ["task.started", "task.failed", "policy.task.evaluated"]


def test_D6_the_policy_judges_a_template_error_like_any_other() -> None:
    body = """
tool:
  - name: a
    kind: http
    url: "{{ ctx.url }}"
    spec:
      policy:
        rules:
          - when: "{{ outcome.error.kind == 'template' and not outcome.error.retryable }}"
            then: {do: continue}
"""
    assert Driver(plan_of(body)).run().ok


def test_D6_outcome_as_rules_see_it() -> None:
    body = """
tool:
  - name: a
    kind: http
    url: x
    spec: {policy: {rules: [{when: true, then: {do: continue, set_ctx: {seen: "{{ outcome }}"}}}]}}
"""
    driver = Driver(
        plan_of(body), {"a": [ok({"status": 200}, http={"status": 200, "headers": {}})]}
    )
    driver.run()
    assert driver.scope.ctx.value["seen"] == {
        "http": {"status": 200, "headers": {}},
        "status": "ok",
        "result": {"status": 200},
        "error": None,
        "meta": {"attempt": 1, "duration_ms": 0.0, "started_at": None, "ended_at": None},
    }


def test_K6_code_of_python_is_never_a_template() -> None:
    driver = Driver(plan_of("tool: {kind: python, code: 'result = \"{{ ctx.no }}\"'}"))
    driver.run()
    assert driver.runs[0].inputs == {"code": 'result = "{{ ctx.no }}"'}


@pytest.mark.parametrize("kind", ["postgres", "duckdb"])
def test_K6_sql_is_handed_to_its_tool_with_the_scope_to_bind_it(kind: str) -> None:
    auth = ", auth: db" if kind == "postgres" else ""
    sql = "command: 'select {{ ctx.n }}', params: ['{{ ctx.n }}']"
    body = f"tool: {{kind: {kind}{auth}, {sql}}}"
    head = "keychain: [{name: db, kind: postgres_credential}]"
    given = scope(ctx={"n": 5}, keychain={"db": {"password": "pw"}})
    driver = Driver(plan_of(body, head), scope=given)
    driver.run()
    (run,) = driver.runs
    assert run.inputs["command"] == "select {{ ctx.n }}"
    assert run.inputs["params"] == [5]
    assert run.scope["ctx"] == {"n": 5}
    assert run.scope["keychain"] == {"db": {"password": "pw"}}


def test_K6_auth_may_be_a_template() -> None:
    body = "tool: {kind: http, url: x, auth: '{{ ctx.who }}'}"
    driver = Driver(plan_of(body), scope=scope(ctx={"who": "api"}))
    driver.run()
    assert driver.runs[0].inputs["auth"] == "api"


def test_K45_the_keychain_is_visible_in_inputs_and_refreshed_while_the_run_goes_on() -> None:
    body = """
tool:
  - {name: a, kind: http, url: x, headers: {T: "{{ keychain.api.token }}"}}
  - {name: b, kind: http, url: x, headers: {T: "{{ keychain.api.token }}"}}
"""
    keychain: dict[str, Value] = {"api": {"token": "one"}}

    def refreshing(_: RunTask) -> Outcome:
        keychain["api"] = {"token": "two"}
        return ok()

    plan = plan_of(body, "keychain: [{name: api, kind: bearer}]")
    driver = Driver(plan, {"a": refreshing}, scope=scope(keychain=keychain))
    driver.run()
    assert [r.inputs["headers"] for r in driver.runs] == [{"T": "one"}, {"T": "two"}]


def test_K45_what_is_stored_or_sent_to_a_child_is_rendered_without_the_keychain() -> None:
    body = "tool: {kind: noop, result: '{{ [1, workload] }}'}"
    given = scope(workload={"keychain": "plain"}, keychain={"db": {"password": "pw"}})
    plan = plan_of(body)
    driver = Driver(plan, scope=given)
    assert driver.run().result == [1, {"keychain": "plain"}]
    assert plan.tasks[0].inputs.written == {}
    child = plan_of("tool: {kind: playbook, playbook: other, workload: {n: '{{ ctx.n }}'}}")
    assert child.tasks[0].stored.written == {"workload": {"n": "{{ ctx.n }}"}}


def test_F1_K42_the_spec_of_a_task_is_layered_and_has_its_timeout() -> None:
    head = "executor: {kind: pool, spec: {policy: {defaults: {timeouts: {task: 30}}}}}"
    body = """
spec: {timeout: {read: 5}}
tool:
  - {name: a, kind: http, url: x, spec: {timeout: {connect: 1}}}
"""
    plan = plan_of(body, head)
    timeout = plan.tasks[0].spec["timeout"]
    assert isinstance(timeout, dict)
    assert (timeout["connect"], timeout["read"]) == (1, 5)
    plain = plan_of("tool: {kind: python, code: x}", head)
    driver = Driver(plain)
    driver.run()
    assert driver.runs[0].spec["timeout"] == 30


def test_I5_K38_a_workbook_task_is_in_its_place_under_the_callers_label() -> None:
    head = """
workbook:
  get:
    kind: http
    url: "http://x/{{ ctx.id }}"
    headers: {A: a}
    spec: {policy: {rules: [{when: true, then: {do: fail}}]}}
"""
    body = """
tool:
  - name: mine
    kind: workbook
    task: get
    headers: {B: b}
    spec: {policy: {rules: [{when: true, then: {do: continue}}]}}
"""
    driver = Driver(plan_of(body, head), {"mine": [failed()]}, scope=scope(ctx={"id": 9}))
    assert driver.run().ok
    (run,) = driver.runs
    assert (run.label, run.kind) == ("mine", "http")
    assert run.inputs == {"url": "http://x/9", "headers": {"A": "a", "B": "b"}}


KEYS = """
tool:
  - name: a
    kind: python
    code: x
    args: {k: "{{ execution.idempotency_key }}"}
    spec:
      policy:
        rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, delay: 0}}]
  - name: b
    kind: python
    code: x
    args: {k: "{{ execution.idempotency_key }}"}
    spec: {policy: {rules: [{when: "{{ outcome.result == 'again' }}", then: {do: jump, to: b}}]}}
"""


def keys(driver: Driver) -> list[str]:
    driver.run()
    found = [run.inputs["args"] for run in driver.runs]
    return [str(args["k"]) for args in found if isinstance(args, dict)]


def test_B4_the_idempotency_key_is_one_for_all_attempts_and_another_for_every_entry() -> None:
    results = {"a": [failed(), ok()], "b": [ok("again"), ok("end")]}
    a1, a2, b1, b2 = keys(Driver(plan_of(KEYS), results))
    assert a1 == a2
    assert len({a1, b1, b2}) == 3
    assert UUID(a1).version == 5


def test_B4_a_redelivered_run_finds_the_same_keys_whatever_was_retried_before() -> None:
    first = keys(Driver(plan_of(KEYS), {"a": [failed(), failed(), ok()], "b": [ok("end")]}))
    again = keys(Driver(plan_of(KEYS), {"a": [ok()], "b": [ok("end")]}))
    assert set(first) == set(again)


def test_B4_iterations_have_keys_of_their_own() -> None:
    results = {"a": [ok()], "b": [ok("end")]}
    one = keys(Driver(plan_of(KEYS), results, iteration=Iteration("0", {"index": 0})))
    other = keys(Driver(plan_of(KEYS), results, iteration=Iteration("1", {"index": 1})))
    assert not set(one) & set(other)


def test_task_run_counts_the_runs_of_each_task_by_itself() -> None:
    results = {"a": [failed(), ok()], "b": [ok("again"), ok("end")]}
    driver = Driver(plan_of(KEYS), results)
    driver.run()
    assert [(r.label, r.task_run) for r in driver.runs] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
