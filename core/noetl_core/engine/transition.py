"""A decision as one step of the log: what a store commits, all or nothing.

Pure glue between `decide` and any store: it numbers the facts, derives their ids and dedup keys and
sorts the effects by what the store does with them. The router, the simulation and `verify` all go
through here, so that they cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from noetl_core.engine.deadlines import due_at
from noetl_core.engine.decide import decide
from noetl_core.engine.events import Event
from noetl_core.engine.ids import keychain_run
from noetl_core.engine.program import Program
from noetl_core.engine.state import State
from noetl_core.engine.triggers import (
    CancelChild,
    Continue,
    CreateChild,
    Decision,
    Effect,
    Enqueue,
    Lookup,
    Reported,
    Requeue,
    Revoke,
    StartChild,
    Stop,
    Store,
    TellParent,
    Trigger,
    WorkerLost,
)


@dataclass(frozen=True, slots=True)
class Fence:
    """A lease that must still be held under this epoch; it ends with the commit."""

    lease_id: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One execution's next step. Nothing of it happens unless all of it does."""

    execution_id: str
    expected: int
    """The `seq` that the execution must still stand at."""
    events: tuple[Event, ...]
    dedup_keys: tuple[str, ...]
    """One per event."""
    state: State
    due_at: str | None
    """When time alone changes something: the earliest deadline in the state."""
    held: tuple[Fence, ...] = ()
    """Leases that must still be held and stay so: those that reported facts."""
    ended: tuple[Fence, ...] = ()
    """Leases that must still be held and end here."""
    enqueue: tuple[Enqueue, ...] = ()
    requeue: tuple[Requeue, ...] = ()
    revoke: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    store: tuple[Store, ...] = ()
    outbox: tuple[CreateChild | CancelChild | TellParent, ...] = ()
    again: bool = False
    """Send a `Tick` once it is committed."""


def transition(
    program: Program, state: State, trigger: Trigger, now: str, lookup: Lookup
) -> tuple[Decision, Transition]:
    """Decide, and say what a store has to commit; without events there is nothing to commit."""
    decision = decide(program, state, trigger, now, lookup)
    return decision, transition_of(program, state, trigger, decision)


def transition_of(
    program: Program, state: State, trigger: Trigger, decision: Decision
) -> Transition:
    """A decision that was made, as a commit."""
    sorted_ = _Sorted()
    for effect in decision.effects:
        sorted_.add(effect)
    held, ended = _fences(trigger, decision)
    gone = {fence.lease_id for fence in ended}
    # What one decision both begins and cuts off was never there.
    revoked = set(sorted_.revoke)
    return Transition(
        execution_id=program.execution_id,
        expected=state.seq,
        events=decision.events,
        dedup_keys=decision.dedup_keys,
        state=decision.state,
        due_at=due_at(decision.state),
        held=held,
        ended=ended,
        enqueue=tuple(one for one in sorted_.enqueue if one.lease_id not in revoked),
        requeue=tuple(sorted_.requeue),
        revoke=tuple(lease for lease in sorted_.revoke if lease not in gone),
        stop=tuple(lease for lease in sorted_.stop if lease not in gone),
        store=tuple(sorted_.store),
        outbox=tuple(sorted_.outbox),
        again=sorted_.again,
    )


@dataclass(slots=True)
class _Sorted:
    """Effects by what a store does with them."""

    enqueue: list[Enqueue] = field(default_factory=list)
    requeue: list[Requeue] = field(default_factory=list)
    revoke: list[str] = field(default_factory=list)
    stop: list[str] = field(default_factory=list)
    store: list[Store] = field(default_factory=list)
    outbox: list[CreateChild | CancelChild | TellParent] = field(default_factory=list)
    again: bool = False

    def add(self, effect: Effect) -> None:
        match effect:
            case Enqueue():
                self.enqueue.append(effect)
            case Requeue():
                self.requeue.append(effect)
            case Revoke(lease_id):
                self.revoke.append(lease_id)
            case Stop(lease_id):
                self.stop.append(lease_id)
            case Store():
                self.store.append(effect)
            case CreateChild() | CancelChild() | TellParent():
                self.outbox.append(effect)
            case Continue():
                self.again = True


def _fences(trigger: Trigger, decision: Decision) -> tuple[tuple[Fence, ...], tuple[Fence, ...]]:
    """Which lease the sender must still hold, and whether it ends with the commit.

    A lease that is given to another worker is neither: the store checks it when it requeues.
    """
    if not decision.events or not isinstance(trigger, Reported | StartChild | WorkerLost):
        return (), ()
    fence = (Fence(trigger.lease_id, trigger.epoch),)
    if not _knows(decision.state, trigger.lease_id):
        return (), fence
    return ((), ()) if isinstance(trigger, WorkerLost) else (fence, ())


def _knows(state: State, lease_id: str) -> bool:
    """Whether a lease is still part of the execution."""
    if lease_id in state.leases or lease_id in state.runs:
        return True
    return state.keychain is not None and lease_id == keychain_run(state.execution_id)
