"""The end of an execution: half full joins, the result, `final_step`, `workflow.finished`.

Asked after every decision; acts only when nothing runs, waits or is about to (rule C8).
"""

from __future__ import annotations

from noetl_core.engine import ids, joins, scheduling
from noetl_core.engine.draft import Draft
from noetl_core.engine.ending import fail
from noetl_core.engine.events import ExecutionEnding, WorkflowFinished
from noetl_core.engine.sizes import larger_than
from noetl_core.engine.state import Phase, Reason
from noetl_core.engine.triggers import TellParent
from noetl_core.results import INLINE_MAX_BYTES
from noetl_core.templates import TemplateError, render
from noetl_core.values import Value

_WITHOUT_FINAL_STEP = frozenset({Reason.KEYCHAIN_ERROR, Reason.INVALID_PLAYBOOK})


def is_over(draft: Draft) -> bool:
    """Nothing is left to do but to end."""
    state = draft.state
    if state.phase.is_final or not state.is_quiet:
        return False
    if state.started_at is None:
        return state.ending is not None
    return not state.suspended


def judge_end(draft: Draft) -> bool:
    """Decide how the execution ends; answers whether that brought something to run first."""
    state = draft.state
    if state.ending is None and joins.at_end(draft):
        return True
    if state.ending is None and state.unhandled is not None:
        fail(draft, Reason.STEP_FAILED, state.unhandled)
    result = state.result if state.ending is not None else _succeed(draft)
    if state.final_run is None and _wants_final_step(draft):
        _run_final_step(draft)
        return True
    phase, reason, message = _outcome(draft)
    finish(draft, phase, reason, message, result if phase is Phase.SUCCEEDED else None)
    return False


def _succeed(draft: Draft) -> Value:
    """The result is rendered on success only (rules C11, K15)."""
    try:
        result = _result(draft)
    except TemplateError as error:
        fail(draft, Reason.RESULT_ERROR, f"executor.spec.result: {error}")
        return None
    if draft.program.final_step is not None:
        reason = _success(draft).value
        phase = Phase.SUCCEEDED.value
        fact = ExecutionEnding(phase=phase, reason=reason, message="", result=result)
        draft.emit(fact, "ending")
    return result


def _result(draft: Draft) -> Value:
    last = draft.state.last
    if draft.program.result is None:
        return last.result if last else None
    args = last.args if last and isinstance(last.args, dict) else {}
    found = render(draft.program.result, draft.scope(args, last))
    return draft.kept(found, INLINE_MAX_BYTES)


def _success(draft: Draft) -> Reason:
    handled = draft.state.failures or draft.state.unlisted
    return Reason.SUCCEEDED_WITH_HANDLED_FAILURES if handled else Reason.SUCCEEDED


def _wants_final_step(draft: Draft) -> bool:
    """Rule K14. What was cancelled before its first step has nothing to clean up."""
    state = draft.state
    if draft.program.final_step is None or state.started_at is None:
        return False
    return state.ending is None or state.ending.reason not in _WITHOUT_FINAL_STEP


def _run_final_step(draft: Draft) -> None:
    state = draft.state
    name = draft.program.final_step
    assert name is not None
    assert state.ending is not None
    args: dict[str, Value] = {
        "phase": state.ending.phase.value,
        "reason": state.ending.reason.value,
        "result": state.result,
        "steps": state.steps.as_json(),
        "failures": _failures(draft),
    }
    run_id = ids.final_run(draft.program.execution_id)
    plan = draft.program.steps[name]
    scheduling.run(draft, plan, run_id, args, draft.now, final=True)


def _outcome(draft: Draft) -> tuple[Phase, Reason, str | None]:
    state = draft.state
    ending = state.ending
    broken = state.final_failure
    if broken is not None:
        before = ending.message if ending else ""
        message = f"{broken}; before that: {before}" if before else broken
        return Phase.FAILED, Reason.FINAL_STEP_FAILED, message
    if ending is None:
        return Phase.SUCCEEDED, _success(draft), None
    return ending.phase, ending.reason, ending.message or None


def finish(
    draft: Draft, phase: Phase, reason: Reason, message: str | None, result: Value = None
) -> None:
    """`workflow.finished`, and a word to the parent."""
    state = draft.state
    fact = WorkflowFinished(
        phase=phase.value,
        reason=reason.value,
        message=message,
        result=result,
        steps=state.steps.as_json(),
        failures=_failures(draft),
    )
    draft.emit(fact, "finished")
    if isinstance(state.parent, dict):
        draft.effect(TellParent(state.parent))


def _failures(draft: Draft) -> list[Value]:
    """The failures, as many as one event may carry (rule K33)."""
    shown = list(draft.state.failures)
    while larger_than(shown, draft.program.limits.max_payload_bytes // 2):
        shown = shown[: len(shown) // 2]
    return shown
