"""Time: what is due, and what happens then (rules D9, K17, K22, K46).

Time is looked at with every decision; `due_at` says when to look next if nothing else happens.
"""

from __future__ import annotations

from collections.abc import Iterator

from noetl_core.engine import operations, runs
from noetl_core.engine.cancelling import cancel_run, revoke
from noetl_core.engine.clock import earliest, later
from noetl_core.engine.draft import Draft
from noetl_core.engine.state import Run, State, Token
from noetl_core.engine.triggers import Cancel, CancelMode
from noetl_core.outcomes import ErrorKind, TaskError


def due_at(state: State) -> str | None:
    """When time alone changes something."""
    if state.phase.is_final:
        return None
    return earliest(_times(state))


def _times(state: State) -> Iterator[str | None]:
    if state.ending is None:
        yield state.deadline_at
    for run in state.runs.values():
        yield run.deadline_at
        if run.loop is not None:
            yield run.loop.deadline_at
    if not state.suspended:
        for token in state.waiting.values():
            yield token.deadline_at


def enforce(draft: Draft) -> None:
    """End what is past its time."""
    state, now = draft.state, draft.now
    if state.phase.is_final:
        return
    if state.deadline_at is not None and state.deadline_at <= now and state.ending is None:
        operations.cancel(draft, Cancel(mode=CancelMode.GRACEFUL, deadline=True))
        return
    for run_id, run in list(state.runs.items()):
        if run_id in state.runs:
            _enforce_run(draft, run_id, run)
    if not state.suspended:
        for token in list(state.waiting.values()):
            if token.id in state.waiting and token.deadline_at and token.deadline_at <= now:
                _enforce_gate(draft, token)


def _enforce_run(draft: Draft, run_id: str, run: Run) -> None:
    plan = draft.program.steps[run.step]
    loop_ends_at = run.loop.deadline_at if run.loop else None
    if run.deadline_at is not None and run.deadline_at <= draft.now:
        limit = plan.lifecycle.deadline_s
        error = _timeout("STEP_DEADLINE", f"the step did not end within {limit} s (deadline_s)")
    elif loop_ends_at is not None and loop_ends_at <= draft.now:
        message = f"the step ran longer than {plan.timeout_s} s (timeout_s)"
        error = _timeout("STEP_TIMEOUT", message)
    else:
        return
    revoke(draft, run)
    cancelling = draft.state.runs[run_id].cancelling
    if cancelling is not None:
        cancel_run(draft, run_id, cancelling)
    else:
        runs.failed(draft, run_id, error.as_json())


def _enforce_gate(draft: Draft, token: Token) -> None:
    plan = draft.program.steps[token.step]
    limit = plan.admit.deadline_s if plan.admit else None
    gate_ends_at = None if limit is None else later(token.arrived_at, limit)
    if gate_ends_at is not None and gate_ends_at <= draft.now:
        message = f"admission did not allow it within {limit} s (admit.deadline_s)"
        runs.failed_at_gate(draft, token, _timeout("ADMIT_DEADLINE", message))
        return
    limit = plan.lifecycle.deadline_s
    message = f"the step did not end within {limit} s (deadline_s)"
    runs.failed_at_gate(draft, token, _timeout("STEP_DEADLINE", message))


def _timeout(code: str, message: str) -> TaskError:
    return TaskError(kind=ErrorKind.TIMEOUT, code=code, message=message, source="control")
