"""The keychain before the first step (rule G3), and the start of the workflow after it.

A worker resolves all entries under a lease of its own; the control plane learns only whether that
worked, never a value.
"""

from __future__ import annotations

from noetl_core.engine import ids
from noetl_core.engine.draft import Draft
from noetl_core.engine.ending import fail
from noetl_core.engine.events import (
    Fact,
    KeychainResolved,
    Source,
    StepRedelivered,
    StepStarted,
    WorkflowStarted,
)
from noetl_core.engine.state import Lease, Reason
from noetl_core.engine.triggers import (
    EndStatus,
    Enqueue,
    Reported,
    Requeue,
    RunEnd,
    Verdict,
    WorkerLost,
)
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.values import Value

MAX_LOSSES = 3
"""How many lost workers the check survives."""


def request(draft: Draft) -> None:
    """Ask a worker to resolve all entries."""
    run_id = ids.keychain_run(draft.program.execution_id)
    draft.effect(Enqueue(lease_id=run_id, run_id=run_id, step=None, args={}))


def start_workflow(draft: Draft) -> None:
    """The first token: at the entry step (rule C1), or of a rerun where it goes on (K47)."""
    token = ids.entry_token(draft.program.execution_id)
    adopted = draft.state.adopted
    if adopted is None:
        fact = WorkflowStarted(step=draft.program.entry_step, run_id=token)
    else:
        fact = WorkflowStarted(
            step=adopted.step,
            run_id=token,
            args=adopted.args,
            event=adopted.event.as_json(),
        )
    draft.emit(fact, "started")


def reported(draft: Draft, report: Reported, lease: Lease) -> None:
    known = lease.reported
    if report.first > known:
        draft.answer(Verdict.AHEAD, f"facts from number {known} on are missing", known)
        return
    for fact in report.facts[known - report.first :]:
        if isinstance(fact, KeychainResolved):
            _resolved(draft, fact, Source.WORKER)
            return
        if not isinstance(fact, StepStarted):
            draft.answer(Verdict.REFUSED, f"{fact.name} does not belong to a keychain check", known)
            return
        _begun(draft, report, fact, known)
        known += 1
    if report.end is not None:
        _resolved(draft, _of_end(draft, report.end), Source.WORKER)


def _begun(draft: Draft, report: Reported, fact: Fact, ordinal: int) -> None:
    key = f"{report.lease_id}/{report.epoch}/{ordinal}"
    draft.emit(StepStarted(run_id=report.lease_id, worker=_worker(fact)), key, Source.WORKER)


def _worker(fact: Fact) -> str:
    return fact.worker if isinstance(fact, StepStarted) else ""


def _of_end(draft: Draft, end: RunEnd) -> KeychainResolved:
    error = None if end.error is None else end.error.as_json()
    if end.status is not EndStatus.OK and error is None:
        error = {"message": "the worker could not resolve the keychain and gave no reason"}
    return KeychainResolved(entries=entries(draft), error=error)


def entries(draft: Draft) -> list[str]:
    playbook = draft.program.playbook
    return [entry.name for entry in playbook.keychain] if playbook else []


def _resolved(draft: Draft, fact: KeychainResolved, source: Source) -> None:
    draft.emit(fact, "keychain", source)
    if fact.error:
        fail(draft, Reason.KEYCHAIN_ERROR, _message(fact.error))
    else:
        start_workflow(draft)


def _message(error: Value) -> str:
    found = error.get("message") if isinstance(error, dict) else error
    return found if isinstance(found, str) else "the keychain cannot be resolved"


def worker_lost(draft: Draft, lost: WorkerLost, lease: Lease) -> None:
    if lost.handed_back or (lease.redeliveries < MAX_LOSSES and not lost.nowhere):
        fact = StepRedelivered(
            run_id=lost.lease_id,
            epoch=lost.epoch,
            reason=lost.reason,
            counts=not lost.handed_back,
        )
        draft.emit(fact, f"{lost.lease_id}/redelivered/{lost.epoch}")
        draft.effect(Requeue(lost.lease_id, lost.epoch))
        return
    message = f"the keychain could not be checked: {_why(lost)}"
    error = TaskError(kind=ErrorKind.WORKER_LOST, code="WORKER_LOST", message=message)
    _resolved(
        draft, KeychainResolved(entries=entries(draft), error=error.as_json()), Source.CONTROL
    )


def _why(lost: WorkerLost) -> str:
    if lost.nowhere:
        return f"no worker could be had for it: {lost.reason}"
    return f"{MAX_LOSSES + 1} workers were lost over it"
