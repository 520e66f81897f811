"""Who may speak for a run: triggers of workers are matched with what they hold.

A lease is known by its id and epoch. One that is not the current one, or whose run is over, has no
say any more: whatever it sends changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from noetl_core.engine import ids
from noetl_core.engine.draft import Draft
from noetl_core.engine.state import Lease, Run


@dataclass(frozen=True, slots=True)
class Held:
    """A lease and the run it belongs to."""

    lease_id: str
    lease: Lease
    run_id: str
    run: Run


def keychain_held(draft: Draft, lease_id: str, epoch: int) -> Lease | None:
    """The lease on the keychain check, if this is it."""
    lease = draft.state.keychain
    if lease is None or lease_id != ids.keychain_run(draft.program.execution_id):
        return None
    return lease if epoch == lease.epoch + 1 else None


def held(draft: Draft, lease_id: str, epoch: int) -> Held | None:
    """The run that a lease belongs to, if it is still current."""
    state = draft.state
    run_id = lease_id if lease_id in state.runs else state.leases.get(lease_id)
    if run_id is None:
        return None
    run = state.runs[run_id]
    lease = run.leases.get(lease_id)
    if lease is None or epoch != lease.epoch + 1:
        return None
    return Held(lease_id, lease, run_id, run)
