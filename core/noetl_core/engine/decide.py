"""What follows from a trigger: `decide(program, state, trigger, now, lookup) -> Decision`.

Pure. The trigger is recorded first; then everything that has become possible happens, until nothing
moves any more: time limits, tokens, loops, the end. Raises `Needed` when it has to read something
that is not at hand, and nothing else for any data.
"""

from __future__ import annotations

from typing import assert_never

from noetl_core.engine import (
    admission,
    deadlines,
    ending,
    finishing,
    loops,
    lost,
    operations,
    reports,
    starting,
)
from noetl_core.engine.draft import Draft
from noetl_core.engine.program import Program
from noetl_core.engine.state import Reason, State
from noetl_core.engine.triggers import (
    Cancel,
    ChildEnded,
    Decision,
    Lookup,
    Patch,
    Reported,
    ResultGone,
    Resume,
    Start,
    StartChild,
    Suspend,
    Tick,
    Trigger,
    Verdict,
    WorkerLost,
)


def decide(program: Program, state: State, trigger: Trigger, now: str, lookup: Lookup) -> Decision:
    """The events and effects that a trigger has; `state` is left as it is."""
    draft = Draft(program, state.copy(), now, lookup)
    early = _too_early_or_late(state, trigger)
    if early is not None:
        draft.answer(*early)
        return draft.decision()
    try:
        _happen(draft, trigger)
    except ResultGone as gone:
        # The items of a loop, or what a reducer starts from: without them there is no way on.
        draft = Draft(program, state.copy(), now, lookup)
        ending.fail(draft, Reason.RESULT_ERROR, str(gone))
        _settle(draft, trigger)
    return draft.decision()


def _happen(draft: Draft, trigger: Trigger) -> None:
    _react(draft, trigger)
    if draft.events or isinstance(trigger, Tick):
        # What changed nothing sets nothing in motion: a late report must not commit anything.
        _settle(draft, trigger)


def _too_early_or_late(state: State, trigger: Trigger) -> tuple[Verdict, str] | None:
    """Nothing happens before the start, and nothing after the end."""
    if isinstance(trigger, Start):
        return (Verdict.DUPLICATE, "the execution has started") if state.seq else None
    if not state.seq:
        return Verdict.REFUSED, "the execution has not started"
    if not state.phase.is_final:
        return None
    match trigger:
        case Reported() | StartChild():
            return Verdict.GONE, "the execution is finished"
        case Patch() if trigger.id not in state.patches:
            return Verdict.REFUSED, "the execution is finished"
        case _:
            return Verdict.DUPLICATE, "the execution is finished"


def _react(draft: Draft, trigger: Trigger) -> None:
    match trigger:
        case Reported():
            reports.reported(draft, trigger)
        case Tick():
            pass
        case WorkerLost():
            lost.worker_lost(draft, trigger)
        case Patch():
            operations.patch(draft, trigger)
        case ChildEnded():
            operations.child_ended(draft, trigger)
        case StartChild():
            operations.start_child(draft, trigger)
        case Start():
            starting.start(draft, trigger)
        case Suspend():
            operations.suspend(draft, trigger)
        case Resume():
            operations.resume(draft, trigger)
        case Cancel():
            operations.cancel(draft, trigger)
        case _:
            assert_never(trigger)


def _settle(draft: Draft, trigger: Trigger) -> None:
    """Let everything happen that can."""
    if isinstance(trigger, Tick):
        deadlines.enforce(draft)
    if isinstance(trigger, Tick | Resume):
        for run_id in list(draft.state.runs):
            loops.refill(draft, run_id)
    admission.admit_tokens(draft)
    while finishing.is_over(draft) and finishing.judge_end(draft):
        admission.admit_tokens(draft)
