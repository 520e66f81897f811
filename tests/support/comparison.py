"""The end of an execution beside what the reference says: all that no order can change."""

from __future__ import annotations

from collections import Counter

from noetl_core.engine import events as ev
from noetl_core.engine.events import Event
from noetl_core.engine.state import State
from noetl_core.values import Value
from tests.support.generated import Made
from tests.support.reference import End, Failure


def compare(made: Made, state: State, log: list[Event]) -> None:
    end = made.end
    if end.ambiguous:
        return
    assert (state.phase.value, state.reason) == (end.phase, end.reason)
    if end.cut:
        return
    _compare_ctx(end, state)
    _compare_counts(end, state)
    _compare_runs(end, log)
    _compare_failures(end, state)
    _compare_loops(end, log)
    if end.phase == "Succeeded" and (
        made.is_line or made.playbook.executor.spec.result is not None
    ):
        assert state.result == end.result


def _compare_ctx(end: End, state: State) -> None:
    def settled(ctx: dict[str, Value]) -> dict[str, Value]:
        return {key: value for key, value in ctx.items() if key not in end.uncertain}

    assert settled(state.ctx) == settled(end.ctx)


def _compare_counts(end: End, state: State) -> None:
    counts = state.steps
    told = {"total": counts.total, "done": counts.done, "failed": counts.failed}
    assert told == {name: end.counts[name] for name in told}
    assert counts.skipped == end.counts["skipped"]
    assert counts.cancelled == 0


def _compare_runs(end: End, log: list[Event]) -> None:
    runs = Counter(e.fact.step for e in log if isinstance(e.fact, ev.StepScheduled))
    assert runs == end.runs


def _compare_failures(end: End, state: State) -> None:
    told: Counter[tuple[Value, Value]] = Counter()
    for one in state.failures:
        assert isinstance(one, dict)
        told[one["step"], one["handled"]] += 1  # type: ignore[index]
        assert any(_fits(one, failure) for failure in end.failures), one
    assert told == Counter((failure.step, failure.handled) for failure in end.failures)


def _fits(told: dict[str, Value], failure: Failure) -> bool:
    error = told["error"]
    assert isinstance(error, dict)
    named = (told.get("task"), told.get("iteration"), error["kind"])
    return told["step"] == failure.step and named in failure.options


def _compare_loops(end: End, log: list[Event]) -> None:
    def counts(loop: dict[str, Value]) -> tuple[Value, ...]:
        return loop["total"], loop["done"], loop["failed"]

    told = [(e.fact.step, repr(e.fact.result), counts(e.fact.loop))
            for e in log if isinstance(e.fact, ev.LoopDone)]  # fmt: skip
    wanted = [(step, repr(result), counts(loop)) for step, result, loop in end.loops]
    assert Counter(told) == Counter(wanted)
