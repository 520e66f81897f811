"""What people and other executions ask for: suspend, resume, cancel, patch `ctx`, children."""

from __future__ import annotations

from noetl_core.engine import ids, leases
from noetl_core.engine.cancelling import cancel_all_children, cancel_now
from noetl_core.engine.draft import Draft
from noetl_core.engine.ending import end
from noetl_core.engine.events import (
    ChildFinished,
    ChildRequested,
    CtxPatched,
    ExecutionCancelled,
    ExecutionResumed,
    ExecutionSuspended,
)
from noetl_core.engine.evolve_parts import size_after
from noetl_core.engine.finishing import finish
from noetl_core.engine.leases import Held
from noetl_core.engine.sizes import larger_than
from noetl_core.engine.state import Phase, Reason
from noetl_core.engine.triggers import (
    Cancel,
    CancelMode,
    ChildEnded,
    CreateChild,
    Patch,
    Resume,
    StartChild,
    Suspend,
    Verdict,
)
from noetl_core.results import CTX_MAX_BYTES, INLINE_MAX_BYTES
from noetl_core.values import Value


def suspend(draft: Draft, wish: Suspend) -> None:
    """No token is judged and no iteration scheduled until `resume`; what runs goes on."""
    if draft.state.ending is not None:
        draft.answer(Verdict.REFUSED, "the execution is ending already")
        return
    if draft.state.suspended:
        draft.answer(Verdict.DUPLICATE)
        return
    fact = ExecutionSuspended(by=wish.by, reason=wish.reason)
    draft.emit(fact, f"suspended/{draft.state.seq + 1}")


def resume(draft: Draft, wish: Resume) -> None:
    if not draft.state.suspended:
        draft.answer(Verdict.DUPLICATE)
        return
    fact = ExecutionResumed(by=wish.by, reason=wish.reason)
    draft.emit(fact, f"resumed/{draft.state.seq + 1}")


def cancel(draft: Draft, wish: Cancel) -> None:
    """Graceful: runs are told to stop and `final_step` runs. Now: all of it ends here."""
    state = draft.state
    if wish.mode is CancelMode.GRACEFUL and state.ending is not None and not state.suspended:
        draft.answer(Verdict.DUPLICATE, "the execution is ending already")
        return
    cause = Reason.DEADLINE_EXCEEDED if wish.deadline else Reason.CANCELLED
    fact = ExecutionCancelled(
        mode=wish.mode.value, cause=cause.value, by=wish.by, reason=wish.reason
    )
    draft.emit(fact, f"cancelled/{wish.mode.value}")
    cancel_all_children(draft, wish.mode)
    message = _message(wish)
    if wish.mode is CancelMode.GRACEFUL:
        end(draft, Phase.CANCELLED, cause, message)
        return
    cancel_now(draft, message)
    ending = state.ending
    if ending is not None and ending.phase is not Phase.SUCCEEDED:
        # Someone is in a hurry with what ends anyway: that does not change why.
        finish(draft, ending.phase, ending.reason, ending.message)
    else:
        finish(draft, Phase.CANCELLED, cause, message)


def _message(wish: Cancel) -> str:
    what = "the time limit of the caller passed" if wish.deadline else "cancelled"
    by = f" by {wish.by}" if wish.by else ""
    why = f": {wish.reason}" if wish.reason else ""
    return f"{what}{by}{why}"


def patch(draft: Draft, wish: Patch) -> None:
    """`ctx` written from outside, once by id; large values are stored (rule K25)."""
    if wish.id in draft.state.patches:
        draft.answer(Verdict.DUPLICATE)
        return
    if larger_than(wish.set, CTX_MAX_BYTES):
        draft.answer(Verdict.TOO_LARGE, f"a patch may have {CTX_MAX_BYTES:,} bytes")
        return
    values = {key: draft.kept(value, INLINE_MAX_BYTES) for key, value in wish.set.items()}
    if size_after(draft.state, values) > CTX_MAX_BYTES:
        draft.answer(Verdict.TOO_LARGE, f"ctx would be larger than {CTX_MAX_BYTES:,} bytes")
        return
    fact = CtxPatched(set=values, by=wish.by, reason=wish.reason, patch_id=wish.id)
    draft.emit(fact, f"patch/{wish.id}")


def start_child(draft: Draft, wish: StartChild) -> None:
    """A child execution for a `playbook` task; asking again gives the same one (rule I4)."""
    held = leases.held(draft, wish.lease_id, wish.epoch)
    if held is None:
        draft.answer(Verdict.GONE, "the run is over or in other hands")
        return
    iteration = wish.iteration or held.lease.iteration
    child = ids.child_execution(
        draft.program.execution_id, held.run_id, iteration, wish.task, wish.task_run
    )
    draft.answer(Verdict.ACCEPTED, child)
    if child in draft.state.children:
        return
    refusal = _refusal(draft, held)
    if refusal is not None:
        draft.answer(Verdict.REFUSED, refusal)
        return
    fact = ChildRequested(
        step=held.run.step,
        run_id=held.run_id,
        iteration=iteration,
        task=wish.task,
        child=child,
        playbook=wish.playbook,
        wait=wish.wait,
    )
    draft.emit(fact, f"{child}/requested")
    _create(draft, wish, fact)


def _refusal(draft: Draft, held: Held) -> str | None:
    # `final_step` runs when the end is decided, and may still ask.
    ends = draft.state.ending is not None and not held.run.final
    if held.run.cancelling is not None or ends:
        return "the run is being cancelled"
    limit = max_depth(draft)
    if draft.state.depth + 1 > limit:
        return f"children nest at most {limit} deep (max_depth of the outermost execution)"
    return None


def max_depth(draft: Draft) -> int:
    """The limit of the outermost execution (rule K41)."""
    parent = draft.state.parent
    given = parent.get("max_depth") if isinstance(parent, dict) else None
    return given if isinstance(given, int) else draft.program.limits.max_depth


def _create(draft: Draft, wish: StartChild, fact: ChildRequested) -> None:
    depth = draft.state.depth + 1
    parent: dict[str, Value] = {
        "execution_id": draft.program.execution_id,
        "run_id": fact.run_id,
        "iteration": fact.iteration,
        "task": fact.task,
        "depth": depth,
        "max_depth": max_depth(draft),
    }
    draft.effect(
        CreateChild(
            child=fact.child,
            playbook=wish.playbook,
            workload=wish.workload,
            parent=parent,
            depth=depth,
        )
    )


def child_ended(draft: Draft, end_: ChildEnded) -> None:
    child = draft.state.children.get(end_.child)
    if child is None or child.finished:
        draft.answer(Verdict.DUPLICATE)
        return
    fact = ChildFinished(
        step=child.step,
        run_id=child.run_id,
        iteration=child.iteration,
        task=child.task,
        child=end_.child,
        phase=end_.phase,
        reason=end_.reason,
        message=end_.message,
        result=end_.result,
    )
    draft.emit(fact, f"{end_.child}/finished")
