"""Retries: counters, delays and what happens when they are used up (rules D2, K19–K21)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl_core.model import Backoff
from noetl_core.pipeline.backoff import BadDelay, wait
from noetl_core.values import Value
from tests.support.driving import Driver, failed, ok, plan_of, scope


def retrying(then: str, when: str = '{{ outcome.status == "error" }}') -> str:
    rule = f"{{when: '{when}', then: {{do: retry, {then}}}}}"
    return f"tool:\n  - {{name: a, kind: python, code: x, spec: {{policy: {{rules: [{rule}]}}}}}}\n"


def test_D2_attempts_count_every_run_and_three_is_the_default() -> None:
    driver = Driver(
        plan_of(retrying("delay: 0")), {"a": [failed(message=str(n)) for n in range(3)]}
    )
    end = driver.run()
    assert [run.attempt for run in driver.runs] == [1, 2, 3]
    assert end.error is not None
    assert (end.error.kind, end.error.message) == ("connection", "2")
    assert [n for n in driver.names if n.startswith("task.") and n != "task.started"] == [
        "task.attempt.failed",
        "task.attempt.failed",
        "task.failed",
    ]
    actions = [p["action"] for p in driver.payloads("policy.task.evaluated")]
    assert actions == ["retry", "retry", "fail"]


def test_D2_success_after_a_retry_goes_on() -> None:
    driver = Driver(plan_of(retrying("attempts: 5")), {"a": [failed(), ok("fine")]})
    assert driver.run().result == "fine"
    assert driver.sleeps == [1.0]


@pytest.mark.parametrize(
    ("then", "sleeps"),
    [
        ("attempts: 5", [1.0, 1.0, 1.0, 1.0]),
        ("attempts: 5, delay: 2", [2, 2, 2, 2]),
        ("attempts: 5, delay: 2, backoff: linear", [2, 4, 6, 8]),
        ("attempts: 5, delay: 2, backoff: exponential", [2, 4, 8, 16]),
        ("attempts: 5, delay: 2, backoff: exponential, max_delay: 5", [2, 4, 5, 5]),
        ("attempts: 3, delay: 400", [300, 300]),
        ("attempts: 3, delay: '{{ _attempt * 10 }}'", [10, 20]),
        ("attempts: 3, delay: '{{ ctx.pause }}', backoff: linear", [0.5, 1.0]),
        ("attempts: 3, delay: 0", []),
    ],
)
def test_D2_backoff(then: str, sleeps: list[float]) -> None:
    many = {"a": [failed() for _ in range(5)]}
    driver = Driver(plan_of(retrying(then)), many, scope=scope(ctx={"pause": 0.5}))
    driver.run()
    assert driver.sleeps == sleeps


@pytest.mark.parametrize(("retry_after", "slept"), [(0.2, 1.0), (7.0, 7.0), (10_000.0, 300.0)])
def test_D2_K21_retry_after_wins_where_longer_and_is_capped(
    retry_after: float, slept: float
) -> None:
    error = failed("rate_limit", retry_after=retry_after)
    driver = Driver(plan_of(retrying("attempts: 2")), {"a": [error, ok()]})
    driver.run()
    assert driver.sleeps == [slept]
    assert driver.payloads("policy.task.evaluated")[0]["delay"] == slept


def test_D2_the_counter_starts_afresh_when_the_task_is_entered_again() -> None:
    body = """
tool:
  - name: a
    kind: python
    code: x
    spec:
      policy:
        rules:
          - {when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 2, delay: 0}}
  - name: b
    kind: python
    code: x
    spec: {policy: {rules: [{when: "{{ outcome.result == 'again' }}", then: {do: jump, to: a}}]}}
"""
    results = {"a": [failed(), ok(1), failed(), ok(2)], "b": [ok("again"), ok("end")]}
    driver = Driver(plan_of(body), results)
    assert driver.run().result == "end"
    assert [(r.label, r.attempt) for r in driver.runs] == [
        ("a", 1),
        ("a", 2),
        ("b", 1),
        ("a", 1),
        ("a", 2),
        ("b", 1),
    ]


def test_K20_one_counter_for_all_retry_rules_each_with_its_own_attempts() -> None:
    body = """
tool:
  - name: a
    kind: python
    code: x
    spec:
      policy:
        rules:
          - when: "{{ outcome.error.kind == 'timeout' }}"
            then: {do: retry, attempts: 2, delay: 0}
          - {when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 4, delay: 0}}
"""
    results = [failed("auth"), failed("auth"), failed("timeout", "late")]
    driver = Driver(plan_of(body), {"a": results})
    end = driver.run()
    assert len(driver.runs) == 3
    assert end.error is not None
    assert end.error.message == "late"


def test_K20_an_ok_outcome_may_be_retried_and_is_done_each_time() -> None:
    plan = plan_of(retrying("attempts: 5, delay: 3", '{{ outcome.result.state != "ready" }}'))
    results = [ok({"state": "new"}), ok({"state": "new"}), ok({"state": "ready"})]
    driver = Driver(plan, {"a": results})
    assert driver.run().result == {"state": "ready"}
    assert driver.names.count("task.done") == 3
    assert driver.sleeps == [3, 3]


def test_K20_an_ok_outcome_whose_retries_are_used_up_fails_by_policy() -> None:
    plan = plan_of(retrying("attempts: 2, delay: 0", "{{ true }}"))
    end = Driver(plan, {"a": [ok(1), ok(2)]}).run()
    assert end.error is not None
    assert (end.error.kind, end.error.code) == ("policy", "RETRY_EXHAUSTED")
    assert end.task == "a"


@pytest.mark.parametrize(
    "delay", ["{{ -1 }}", '{{ "5" }}', "{{ ctx.no }}", "{{ true }}", "{{ [] }}"]
)
def test_K21_a_delay_that_is_no_length_of_time_is_a_template_error(delay: str) -> None:
    driver = Driver(plan_of(retrying(f"delay: '{delay}'")), {"a": [failed(), ok()]})
    end = driver.run()
    assert end.error is not None
    assert end.error.kind == "template"
    assert "delay" in end.error.message
    assert len(driver.runs) == 1
    assert driver.names[-2:] == ["task.failed", "policy.task.evaluated"]


def test_K21_the_delay_of_a_used_up_retry_is_not_asked_for() -> None:
    plan = plan_of(retrying("attempts: 1, delay: '{{ ctx.no }}'"))
    end = Driver(plan, {"a": [failed("auth")]}).run()
    assert end.error is not None
    assert end.error.kind == "auth"


def test_K45_the_keychain_is_visible_in_a_delay() -> None:
    plan = plan_of(
        retrying("delay: '{{ keychain.db.pause }}'"), "keychain: [{name: db, kind: secret}]"
    )
    driver = Driver(plan, {"a": [failed(), ok()]}, scope=scope(keychain={"db": {"pause": 4}}))
    driver.run()
    assert driver.sleeps == [4]


delays = st.floats(0, 1e308) | st.integers(0, 10**400)


@given(
    st.sampled_from(Backoff),
    delays,
    st.integers(1, 100_000),
    st.floats(0, 1e9),
    st.none() | st.floats(0, 1e308),
)
def test_D2_K21_no_wait_is_longer_than_max_delay_or_shorter_than_asked(
    backoff: Backoff, delay: Value, attempt: int, max_delay: float, after: float | None
) -> None:
    slept = wait(backoff, delay, attempt, max_delay, after)
    assert 0 <= slept <= max_delay
    assert math.isfinite(slept)
    if after is not None:
        assert slept >= min(after, max_delay)
    assert slept >= min(_as_float(delay), max_delay)


@given(st.sampled_from(Backoff), st.floats(0, 1000), st.integers(1, 60))
def test_D2_the_table_of_backoffs(backoff: Backoff, delay: float, n: int) -> None:
    factor = {Backoff.NONE: 1, Backoff.LINEAR: n, Backoff.EXPONENTIAL: 2 ** (n - 1)}[backoff]
    assert wait(backoff, delay, n, 300.0, None) == min(delay * factor, 300.0)


@given(st.none() | st.booleans() | st.text() | st.floats(max_value=-1e-9) | st.just(math.nan))
def test_K21_everything_else_is_no_delay(delay: Value) -> None:
    with pytest.raises(BadDelay):
        wait(Backoff.NONE, delay, 1, 300.0, None)


def _as_float(delay: Value) -> float:
    assert isinstance(delay, int | float)
    try:
        return float(delay)
    except OverflowError:
        return math.inf
