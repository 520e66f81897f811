"""What a log adds up to: `evolve(state, event)` writes one event into the state it is given.

The only place where state changes. It knows no playbook and no clock: what it needs stands in the
event. `decide` calls it for each fact it makes, a store's replay for each event it reads, so that
both always agree. Tokens and loops have rooms of
their own (`evolve_tokens`, `evolve_loops`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from noetl_core.engine import events as ev
from noetl_core.engine import evolve_loops as loops
from noetl_core.engine import evolve_tokens as tokens
from noetl_core.engine.evolve_parts import (
    add_failure,
    boundary_of,
    drop_run,
    failure_text,
    lease_of,
    set_lease,
    take_token,
    write_ctx,
)
from noetl_core.engine.replacing import replace
from noetl_core.engine.state import (
    Boundary,
    Child,
    Counts,
    Ending,
    Lease,
    Phase,
    Reason,
    State,
    Token,
    reported,
)

F = TypeVar("F", bound=ev.Fact)


def fold(events: Iterable[ev.Event], state: State | None = None) -> State:
    """The state after a whole log, or after more of it."""
    state = State() if state is None else state
    for event in events:
        evolve(state, event)
    return state


def evolve(state: State, event: ev.Event) -> State:
    """Write one event into a state; answers the same state."""
    fact = event.fact
    apply = _APPLY.get(type(fact))
    if apply is not None:
        apply(state, fact, event)
    if event.source == "worker":
        _count(state, fact)
    state.seq = event.seq
    if not state.phase.is_final:
        state.phase = _phase(state)
    return state


def _phase(state: State) -> Phase:
    if state.suspended:
        return Phase.SUSPENDED
    if state.started_at is None:
        return Phase.PENDING
    if state.waiting and not state.runs and not state.pending:
        return Phase.WAITING
    return Phase.RUNNING


def _count(state: State, fact: ev.Fact) -> None:
    """A fact of a worker is the next of those that its lease has reported."""
    found = lease_of(state, fact)
    if found is not None:
        lease_id, lease = found
        set_lease(state, lease_id, reported(lease))


def _requested(state: State, fact: ev.ExecutionRequested, event: ev.Event) -> None:
    state.execution_id = event.execution_id
    state.digest = fact.digest
    state.parent = fact.parent
    state.depth = fact.depth
    state.deadline_at = fact.deadline_at


def _evaluated(state: State, fact: ev.RequestEvaluated, event: ev.Event) -> None:
    state.keychain = Lease() if fact.keychain else None


def _keychain_resolved(state: State, fact: ev.KeychainResolved, event: ev.Event) -> None:
    state.keychain = None


def _adopted(state: State, fact: ev.StepsAdopted, event: ev.Event) -> None:
    write_ctx(state, fact.ctx)
    assert fact.step is not None
    origin = boundary_of(fact.event) if fact.event else Boundary("workflow.started")
    state.adopted = Token("", fact.step, fact.args or {}, origin, event.timestamp)


def _started(state: State, fact: ev.WorkflowStarted, event: ev.Event) -> None:
    assert fact.run_id is not None
    assert fact.step is not None
    state.started_at = event.timestamp
    state.adopted = None
    args = fact.args if isinstance(fact.args, dict) else {}
    origin = boundary_of(fact.event) if fact.event else Boundary(fact.name)
    state.pending[fact.run_id] = Token(fact.run_id, fact.step, args, origin, event.timestamp)


def _redelivered(state: State, fact: ev.StepRedelivered, event: ev.Event) -> None:
    found = lease_of(state, fact)
    assert found is not None
    lease_id, old = found
    known = loops.forget(state, fact.run_id, old)
    redeliveries = old.redeliveries + fact.counts
    set_lease(state, lease_id, Lease(old.iteration, fact.epoch, redeliveries, total=known))


def _done(state: State, fact: ev.StepDone, event: ev.Event) -> None:
    run = drop_run(state, fact.run_id)
    c = state.steps
    state.steps = Counts(c.total, c.done + 1, c.failed, c.skipped, c.cancelled)
    if not run.final:
        state.last = Boundary(
            fact.name, fact.step, fact.run_id, "ok", fact.result, None, None, run.args
        )


def _loop_done(state: State, fact: ev.LoopDone, event: ev.Event) -> None:
    run = drop_run(state, fact.run_id)
    state.steps = replace(state.steps, done=state.steps.done + 1)
    loops.add_failures(state, fact)
    if not run.final:
        state.last = Boundary(
            fact.name, fact.step, fact.run_id, "ok", fact.result, None, fact.loop, run.args
        )


def _failed(state: State, fact: ev.StepFailed, event: ev.Event) -> None:
    at_gate = fact.run_id not in state.runs
    if at_gate:
        # Its wait ended: it never ran, yet it counts as a run that failed (rule K17).
        take_token(state, fact.run_id)
        state.steps = replace(state.steps, total=state.steps.total + 1)
    run = None if at_gate else drop_run(state, fact.run_id)
    state.steps = replace(state.steps, failed=state.steps.failed + 1)
    add_failure(state, fact.step, fact.error, fact.handled)
    if run is not None and run.final:
        state.final_failure = failure_text(fact.step, fact.error)
        return
    if not fact.handled and state.ending is None and state.unhandled is None:
        state.unhandled = failure_text(fact.step, fact.error)
    args = fact.args if run is None else run.args
    state.last = Boundary(
        fact.name, fact.step, fact.run_id, "error", None, fact.error, fact.loop, args
    )


def _cancelled(state: State, fact: ev.StepCancelled, event: ev.Event) -> None:
    drop_run(state, fact.run_id)
    state.steps = replace(state.steps, cancelled=state.steps.cancelled + 1)


def _child_requested(state: State, fact: ev.ChildRequested, event: ev.Event) -> None:
    assert fact.run_id is not None
    assert fact.step is not None
    assert fact.task is not None
    state.children[fact.child] = Child(fact.run_id, fact.step, fact.task, fact.iteration, fact.wait)


def _child_finished(state: State, fact: ev.ChildFinished, event: ev.Event) -> None:
    child = state.children[fact.child]
    if child.run_id in state.runs and lease_of(state, fact) is not None:
        # Whoever asked for it may be lost, and then another one asks again.
        state.children[fact.child] = replace(child, finished=True)
    else:
        del state.children[fact.child]


def _ctx_patched(state: State, fact: ev.CtxPatched, event: ev.Event) -> None:
    deferred = fact.deferred or ()
    now = {key: value for key, value in fact.set.items() if key not in deferred}
    if now:
        write_ctx(state, now)
        loops.note_writes(state, fact, now)
    if fact.patch_id is not None:
        state.patches = (*state.patches, fact.patch_id)


def _suspended(state: State, fact: ev.ExecutionSuspended, event: ev.Event) -> None:
    state.suspended = True


def _resumed(state: State, fact: ev.ExecutionResumed, event: ev.Event) -> None:
    state.suspended = False


def _execution_cancelled(state: State, fact: ev.ExecutionCancelled, event: ev.Event) -> None:
    # What is to end must not wait for someone to resume it.
    state.suspended = False


def _ending(state: State, fact: ev.ExecutionEnding, event: ev.Event) -> None:
    state.ending = Ending(Phase(fact.phase), Reason(fact.reason), fact.message)
    state.result = fact.result
    state.keychain = None
    # Tokens in places of joins are not in motion: with the end they are gone.
    state.places = {}
    for run_id, run in state.runs.items():
        state.runs[run_id] = replace(run, cancelling=fact.message)


def _finished(state: State, fact: ev.WorkflowFinished, event: ev.Event) -> None:
    state.phase = Phase(fact.phase)
    state.reason = fact.reason
    state.message = fact.message
    state.result = fact.result
    state.finished_at = event.timestamp
    state.keychain = None
    state.suspended = False
    state.places = {}


_APPLY: dict[type[ev.Fact], Callable[[State, ev.Fact, ev.Event], None]] = {}


def _on(kind: type[F], apply: Callable[[State, F, ev.Event], None]) -> None:
    _APPLY[kind] = apply  # type: ignore[assignment]  # looked up by the fact's own type


_on(ev.ExecutionRequested, _requested)
_on(ev.RequestEvaluated, _evaluated)
_on(ev.KeychainResolved, _keychain_resolved)
_on(ev.StepsAdopted, _adopted)
_on(ev.WorkflowStarted, _started)
_on(ev.AdmitEvaluated, tokens.admit)
_on(ev.StepScheduled, tokens.scheduled)
_on(ev.StepSkipped, tokens.skipped)
_on(ev.StepRedelivered, _redelivered)
_on(ev.StepDone, _done)
_on(ev.StepFailed, _failed)
_on(ev.StepCancelled, _cancelled)
_on(ev.LoopStarted, loops.started)
_on(ev.LoopOpened, loops.opened)
_on(ev.IterationScheduled, loops.scheduled)
_on(ev.IterationDone, loops.done)
_on(ev.IterationFailed, loops.failed)
_on(ev.IterationCancelled, loops.cancelled)
_on(ev.LoopDone, _loop_done)
_on(ev.NextEvaluated, tokens.routed)
_on(ev.JoinFilled, tokens.join_filled)
_on(ev.JoinDropped, tokens.join_dropped)
_on(ev.ChildRequested, _child_requested)
_on(ev.ChildFinished, _child_finished)
_on(ev.CtxPatched, _ctx_patched)
_on(ev.ExecutionSuspended, _suspended)
_on(ev.ExecutionResumed, _resumed)
_on(ev.ExecutionCancelled, _execution_cancelled)
_on(ev.ExecutionEnding, _ending)
_on(ev.WorkflowFinished, _finished)
