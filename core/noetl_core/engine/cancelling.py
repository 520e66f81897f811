"""Taking back what is under way: tokens, leases, runs, children.

A command that nobody has begun is revoked at once. Whoever works on one is told to stop, and its
run stays until it answers (or is lost), so that nothing is cut off between two facts.
"""

from __future__ import annotations

from noetl_core.engine import ids
from noetl_core.engine.draft import Draft
from noetl_core.engine.events import IterationCancelled, StepCancelled, StepSkipped
from noetl_core.engine.state import Run
from noetl_core.engine.triggers import CancelChild, CancelMode, Revoke, Stop


def cancel_all(draft: Draft, reason: str) -> None:
    """No token goes on, no run either (rule C7)."""
    drop_tokens(draft, reason)
    for run_id in list(draft.state.runs):
        stop_run(draft, run_id, reason)


def drop_tokens(draft: Draft, reason: str) -> None:
    state = draft.state
    for token in (*state.pending.values(), *state.waiting.values()):
        fact = StepSkipped(step=token.step, run_id=token.id, reason=reason)
        draft.emit(fact, f"{token.id}/skipped")


def stop_run(draft: Draft, run_id: str, reason: str) -> None:
    """Revoke what has not begun, stop what has; without any of that the run is over."""
    stop_leases(draft, run_id, reason)
    if_stopped(draft, run_id, reason)


def stop_leases(draft: Draft, run_id: str, reason: str) -> None:
    run = draft.state.runs[run_id]
    for lease_id, lease in run.leases.items():
        if lease.started:
            draft.effect(Stop(lease_id))
            continue
        draft.effect(Revoke(lease_id))
        if lease.iteration is not None:
            cancel_iteration(draft, run_id, lease.iteration, reason)


def if_stopped(draft: Draft, run_id: str, reason: str) -> None:
    """The run is cancelled once none of its leases is in a worker's hands."""
    run = draft.state.runs[run_id]
    if any(lease.started for lease in run.leases.values()):
        return
    cancel_run(draft, run_id, reason)


def cancel_run(draft: Draft, run_id: str, reason: str) -> None:
    """The run is over, whoever may still think to hold it."""
    run = draft.state.runs[run_id]
    cancel_children(draft, run_id)
    fact = StepCancelled(step=run.step, run_id=run_id, reason=reason)
    draft.emit(fact, f"{run_id}/end")


def cancel_iteration(draft: Draft, run_id: str, iteration: str, reason: str) -> None:
    run = draft.state.runs[run_id]
    fact = IterationCancelled(step=run.step, run_id=run_id, iteration=iteration, reason=reason)
    draft.emit(fact, f"{run_id}/{iteration}/end")


def revoke(draft: Draft, run: Run) -> None:
    """Fence off everyone who works on a run."""
    for lease_id in run.leases:
        draft.effect(Revoke(lease_id))


def cancel_now(draft: Draft, reason: str) -> None:
    """Everything ends here, without waiting for anyone."""
    drop_tokens(draft, reason)
    for run_id, run in list(draft.state.runs.items()):
        revoke(draft, run)
        cancel_run(draft, run_id, reason)
    if draft.state.keychain is not None:
        draft.effect(Revoke(ids.keychain_run(draft.program.execution_id)))


def cancel_children(draft: Draft, run_id: str, iteration: str | None = None) -> None:
    """Children that a run, or an iteration of it, waits for do not outlive it (rule I4)."""
    for child_id, child in draft.state.children.items():
        if child.run_id != run_id or not child.wait or child.finished:
            continue
        if iteration is None or f"{child.iteration}.".startswith(f"{iteration}."):
            _cancel_child(draft, child_id, CancelMode.GRACEFUL)


def cancel_all_children(draft: Draft, mode: CancelMode) -> None:
    for child_id, child in draft.state.children.items():
        if not child.finished:
            _cancel_child(draft, child_id, mode)


def _cancel_child(draft: Draft, child_id: str, mode: CancelMode) -> None:
    told = (e.child for e in draft.effects if isinstance(e, CancelChild))
    if child_id not in told:
        draft.effect(CancelChild(child_id, mode))
