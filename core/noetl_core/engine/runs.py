"""How step-runs end: the boundary event, its arcs, and a failure that no arc takes.

Whatever ends a run comes through here: reports, lost workers, deadlines, loops.
"""

from __future__ import annotations

from noetl_core.engine import routing
from noetl_core.engine.cancelling import cancel_children
from noetl_core.engine.draft import Draft
from noetl_core.engine.ending import fail
from noetl_core.engine.events import Fact, LoopDone, Source, StepDone, StepFailed
from noetl_core.engine.evolve_parts import failure_text
from noetl_core.engine.program import StepPlan
from noetl_core.engine.state import Boundary, Reason, Token
from noetl_core.outcomes import TaskError
from noetl_core.values import Value


def done(draft: Draft, run_id: str, result: Value, source: Source) -> None:
    """`step.done`."""
    run = draft.state.runs[run_id]
    fact = StepDone(step=run.step, run_id=run_id, result=result)
    event = Boundary(fact.name, run.step, run_id, "ok", result, None, None, run.args)
    _ended(draft, fact, event, source)


def loop_done(draft: Draft, run_id: str, result: Value, counts: dict[str, Value]) -> None:
    """`loop.done`."""
    run = draft.state.runs[run_id]
    fact = LoopDone(step=run.step, run_id=run_id, result=result, loop=counts)
    event = Boundary(fact.name, run.step, run_id, "ok", result, None, counts, run.args)
    _ended(draft, fact, event, Source.CONTROL)


def failed(
    draft: Draft, run_id: str, error: dict[str, Value], source: Source = Source.CONTROL
) -> None:
    """`step.failed`; `error` has `task` where one failed and, in a loop, `iteration` (C12)."""
    run = draft.state.runs[run_id]
    error = {"task": None, **error}
    counts = loop_counts(draft, run_id)
    event = Boundary("step.failed", run.step, run_id, "error", None, error, counts, run.args)
    _failed(draft, event, source)


def failed_at_gate(draft: Draft, token: Token, error: TaskError) -> None:
    """`step.failed` of a token whose wait ended (rule K17)."""
    known: Value = {"task": None, **error.as_json()}
    event = Boundary("step.failed", token.step, token.id, "error", None, known, None, token.args)
    _failed(draft, event, Source.CONTROL)


def loop_counts(draft: Draft, run_id: str) -> dict[str, Value] | None:
    """`event.loop` of a loop step (rules E5, K26)."""
    loop = draft.state.runs[run_id].loop
    if loop is None:
        return None
    return {
        "total": max(loop.total, loop.done + loop.failed),
        "done": loop.done,
        "failed": loop.failed,
        "failures": list(loop.failures),
    }


def _ended(draft: Draft, fact: Fact, event: Boundary, source: Source) -> None:
    """A run ended well: its arcs are evaluated, unless nothing may follow any more."""
    run_id = event.run_id
    assert run_id is not None
    run = draft.state.runs[run_id]
    follows = not run.final and draft.state.ending is None
    plan = draft.program.steps[run.step]
    cancel_children(draft, run_id)
    draft.emit(fact, f"{run_id}/end", source)
    if not follows:
        return
    try:
        routed = routing.route(draft, plan, event, run.args)
    except routing.Unroutable as error:
        _unroutable(draft, error)
    else:
        routing.fire(draft, plan, run_id, routed)


def _failed(draft: Draft, event: Boundary, source: Source) -> None:
    """A run failed: an arc may take it (rule C7). Whether one does stands in the fact."""
    step, run_id = event.step, event.run_id
    assert step is not None
    assert run_id is not None
    run = draft.state.runs.get(run_id)
    args = event.args if isinstance(event.args, dict) else {}
    plan = draft.program.steps[step]
    routed, problem = routing.Routed(), None
    follows = draft.state.ending is None and not (run and run.final)
    if follows:
        try:
            routed = routing.route(draft, plan, event, args)
        except routing.Unroutable as error:
            problem = error
    cancel_children(draft, run_id)
    fact = StepFailed(
        step=step,
        run_id=run_id,
        error=event.error,
        loop=event.loop,
        args=None if run else event.args,
        handled=bool(routed.fired),
    )
    draft.emit(fact, f"{run_id}/end", source)
    if not follows:
        return
    if problem is not None:
        _unroutable(draft, problem)
        return
    routing.fire(draft, plan, run_id, routed)
    if not routed.fired:
        _unhandled(draft, plan, event.error)


def _unhandled(draft: Draft, plan: StepPlan, error: Value) -> None:
    if not plan.best_effort:
        fail(draft, Reason.STEP_FAILED, failure_text(plan.name, error))


def _unroutable(draft: Draft, error: routing.Unroutable) -> None:
    reason = Reason.LIMIT_EXCEEDED if error.too_large else Reason.TEMPLATE_ERROR
    fail(draft, reason, str(error))
