"""Ends over any policy: timeouts of the step and cancellation (rules D9, K22)."""

from __future__ import annotations

import pytest

from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.pipeline.requests import Emit, Interrupted, PipelineEnd, RunTask, Sleep
from noetl_core.pipeline.run import pipeline
from tests.support.driving import failed, plan_of, scope

ALWAYS = """
tool:
  kind: python
  code: x
  spec: {policy: {rules: [{when: true, then: {do: retry, attempts: 99}}]}}
"""
LATE = TaskError(kind=ErrorKind.TIMEOUT, code="STEP_TIMEOUT", message="5 s are over")


def interrupt_at(kind: type) -> tuple[list[str], PipelineEnd]:
    """Drive until a request of a kind, then interrupt there; the facts after it, and the end."""
    generator = pipeline(plan_of(ALWAYS), scope())
    request = next(generator)
    while not isinstance(request, kind):
        request = generator.send(failed() if isinstance(request, RunTask) else None)
    facts: list[str] = []
    try:
        request = generator.throw(Interrupted(LATE))
        while True:
            assert isinstance(request, Emit)
            facts.append(request.fact.name)
            request = generator.send(None)
    except StopIteration as stop:
        end = stop.value
    assert isinstance(end, PipelineEnd)
    return facts, end


def test_K22_a_task_at_work_is_reported_failed_and_no_policy_is_asked() -> None:
    facts, end = interrupt_at(RunTask)
    assert facts == ["task.failed"]
    assert (end.error, end.task) == (LATE, "s_task")


def test_K22_a_pipeline_that_sleeps_ends_at_once() -> None:
    facts, end = interrupt_at(Sleep)
    assert facts == []
    assert end.error == LATE


def test_K22_a_second_interruption_changes_nothing() -> None:
    generator = pipeline(plan_of(ALWAYS), scope())
    request = next(generator)
    while not isinstance(request, RunTask):
        request = generator.send(None)
    generator.throw(Interrupted(LATE))
    cancelled = TaskError(kind=ErrorKind.CANCELLED, message="stop")
    with pytest.raises(StopIteration) as stop:
        generator.throw(Interrupted(cancelled))
    assert stop.value.value.error == LATE
