"""Workers that were lost, or gave a run back: another one gets it, or it fails (rules K13, K24)."""

from __future__ import annotations

from noetl_core.engine import keychain, leases, loops, runs
from noetl_core.engine.cancelling import cancel_iteration, cancel_run
from noetl_core.engine.draft import Draft
from noetl_core.engine.events import Source, StepRedelivered
from noetl_core.engine.leases import Held
from noetl_core.engine.reports import fail_iteration
from noetl_core.engine.triggers import EndStatus, Requeue, RunEnd, Verdict, WorkerLost
from noetl_core.model import OnWorkerLost
from noetl_core.outcomes import ErrorKind, TaskError


def worker_lost(draft: Draft, lost: WorkerLost) -> None:
    lease = leases.keychain_held(draft, lost.lease_id, lost.epoch)
    if lease is not None:
        keychain.worker_lost(draft, lost, lease)
        return
    held = leases.held(draft, lost.lease_id, lost.epoch)
    if held is None:
        draft.answer(Verdict.DUPLICATE, "the lease is known to have ended")
    elif not _was_stopping(draft, held):
        if _may_have_another(draft, held, lost):
            _redeliver(draft, held, lost)
        else:
            _fail(draft, held, lost)


def _was_stopping(draft: Draft, held: Held) -> bool:
    """What was told to stop has stopped, one way or the other."""
    run, path = held.run, held.lease.iteration
    reason = run.cancelling
    if reason is None and run.loop is not None and run.loop.stopping is not None:
        reason = "another iteration failed"
    if reason is None:
        return False
    if path is None:
        cancel_run(draft, held.run_id, reason)
    else:
        cancel_iteration(draft, held.run_id, path, reason)
        loops.if_stopped(draft, held.run_id)
    return True


def _may_have_another(draft: Draft, held: Held, lost: WorkerLost) -> bool:
    lifecycle = draft.program.steps[held.run.step].lifecycle
    if lost.handed_back or lost.nowhere:
        return lost.handed_back
    if lifecycle.on_worker_lost is OnWorkerLost.FAIL:
        return False
    return held.lease.redeliveries < lifecycle.max_redeliveries


def _redeliver(draft: Draft, held: Held, lost: WorkerLost) -> None:
    fact = StepRedelivered(
        step=held.run.step,
        run_id=held.run_id,
        iteration=held.lease.iteration,
        epoch=lost.epoch,
        reason=lost.reason,
        counts=not lost.handed_back,
    )
    draft.emit(fact, f"{lost.lease_id}/redelivered/{lost.epoch}")
    draft.effect(Requeue(lost.lease_id, lost.epoch))


def _fail(draft: Draft, held: Held, lost: WorkerLost) -> None:
    times = held.lease.redeliveries
    before = f" (after {times} redeliveries)" if times else ""
    what = "no worker could be had for it" if lost.nowhere else "the worker was lost"
    message = f"{what}{before}: {lost.reason}"
    error = TaskError(
        kind=ErrorKind.WORKER_LOST, code="WORKER_LOST", message=message, source="control"
    )
    if held.lease.iteration is None:
        runs.failed(draft, held.run_id, error.as_json())
    else:
        end = RunEnd(status=EndStatus.ERROR)
        fail_iteration(draft, held, error, end, Source.CONTROL)
