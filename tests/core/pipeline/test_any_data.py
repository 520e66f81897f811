"""Whatever tasks yield, a pipeline ends; it never raises for data."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.pipeline.requests import PipelineEnd
from noetl_core.values import Value
from tests.support.driving import Driver, plan_of, scope

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=10,
)
errors = st.builds(
    TaskError,
    kind=st.sampled_from(ErrorKind),
    message=st.text(max_size=20) | st.just("x" * 50_000),
    retry_after=st.none() | st.floats(0, 1e9),
)
outcomes = st.builds(Outcome, result=values) | st.builds(Outcome, error=errors)

PLAN = plan_of(
    """
tool:
  - name: a
    kind: python
    code: x
    args: {p: "{{ _prev }}", c: "{{ ctx }}", i: "{{ iter.seen | default([]) }}"}
    spec:
      result: {inline_max_bytes: 16}
      policy:
        rules:
          - when: "{{ outcome.error.retryable }}"
            then: {do: retry, delay: "{{ outcome.error.retry_after | default(1, true) }}"}
          - when: "{{ outcome.result.x or outcome.result is mapping }}"
            then: {do: jump, to: b, set_ctx: {x: "{{ outcome.result }}"}}
          - when: "{{ outcome.result > 5 }}"
            then: {do: fail, message: "{{ outcome.result }} is more"}
          - else: {then: {do: continue, set_iter: {seen: "{{ outcome.result }}"}}}
  - name: b
    kind: noop
    result: "{{ ctx.x.y | default(a) | default(_prev) }}"
    spec:
      result: {select: {n: x.y}}
      policy:
        rules:
          - when: "{{ outcome.result.n and _attempt < 2 }}"
            then: {do: jump, to: a}
"""
)


@given(st.lists(outcomes, min_size=1, max_size=6), values)
def test_a_pipeline_ends_whatever_its_tasks_yield(made: list[Outcome], before: Value) -> None:
    left = list(made)

    def next_outcome(_: object) -> Outcome:
        return left.pop() if left else Outcome(error=TaskError(kind=ErrorKind.AUTH, message="end"))

    given_scope = scope(ctx={"x": before})
    driver = Driver(PLAN, {"a": next_outcome}, scope=given_scope)
    end = driver.run()
    assert isinstance(end, PipelineEnd)
    started, ended = driver.names.count("task.started"), 0
    for name in ("task.done", "task.failed", "task.attempt.failed"):
        ended += driver.names.count(name)
    assert started == ended == driver.names.count("policy.task.evaluated")
    assert all(0 <= slept <= 300 for slept in driver.sleeps)
    assert end.error is None or len(end.error.message) <= 16 * 1024
