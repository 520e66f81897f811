"""Loops as the control plane runs them: lists are opened, windows kept full, ends put together.

Levels with `exec: distributed`, from the outermost on, are scheduled here, one lease per iteration
of the deepest of them; everything below runs inside the worker that holds the lease (rule E3). The
cost of one iteration does not depend on how many there are.
"""

from __future__ import annotations

from noetl_core.engine import gather, ids, lists, runs
from noetl_core.engine.cancelling import cancel_children, cancel_run, revoke, stop_leases
from noetl_core.engine.clock import earliest, later
from noetl_core.engine.draft import Draft
from noetl_core.engine.events import (
    IterationDone,
    IterationScheduled,
    LoopOpened,
    LoopStarted,
)
from noetl_core.engine.program import LoopPlan
from noetl_core.engine.state import Frame, LoopState, Run
from noetl_core.engine.triggers import Enqueue
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.values import Value


def begin(draft: Draft, run_id: str) -> None:
    """`loop.started`, and as many iterations as may run at once."""
    run = draft.state.runs[run_id]
    plan = draft.program.steps[run.step]
    loop = plan.loop
    assert loop is not None
    try:
        opened = lists.evaluate(draft, loop.levels[0], draft.scope(run.args))
        _check_limit(draft, len(opened.items) if len(loop.levels) == 1 else 0)
    except lists.LoopError as bad:
        fail(draft, run_id, bad.error, None)
        return
    items = draft.kept(list(opened.items), lists.ITEMS_MAX_BYTES)
    timeout = later(draft.now, plan.timeout_s) if plan.timeout_s and loop.leased else None
    fact = LoopStarted(
        step=run.step,
        run_id=run_id,
        total=len(opened.items),
        items=items,
        exec="distributed" if loop.leased else "local",
        window=opened.window,
        deadline_at=timeout,
        levels=len(loop.levels),
        leased=loop.leased,
        parallel=loop.parallel,
        best_effort=loop.best_effort,
    )
    draft.emit(fact, f"{run_id}/loop")
    if not opened.items:
        gather.complete(draft, run_id)
    elif loop.leased:
        fill(draft, run_id, "")
    else:
        draft.effect(
            Enqueue(
                lease_id=run_id,
                run_id=run_id,
                step=run.step,
                args=run.args,
                items=items,
                window=opened.window,
                deadline_at=run.deadline_at,
                timeout_s=plan.timeout_s,
            )
        )


def _check_limit(draft: Draft, total: int) -> None:
    """Rules K18, K41."""
    limit = draft.program.limits.max_iterations
    if total > limit:
        message = f"the loop has {total:,} iterations, and max_iterations is {limit:,}"
        raise lists.LoopError(
            TaskError(kind=ErrorKind.LIMIT, code="MAX_ITERATIONS", message=message, source="loop")
        )


def fail(draft: Draft, run_id: str, error: TaskError, iteration: str | None) -> None:
    """The loop cannot go on: the step fails, and whoever works on it is fenced off."""
    run = draft.state.runs[run_id]
    if run.loop is not None:
        revoke(draft, run)
    known = error.as_json()
    runs.failed(draft, run_id, known if iteration is None else {**known, "iteration": iteration})


def refill(draft: Draft, run_id: str) -> None:
    """Look at every open list of a loop: after a pause, or when a decision was full."""
    run = draft.state.runs.get(run_id)
    for path in list(run.loop.frames) if run and run.loop else []:
        if not fill(draft, run_id, path):
            return


def fill(draft: Draft, run_id: str, path: str) -> bool:
    """Schedule elements of an open list while its window has room.

    Answers whether the loop still runs; one whose last list ends here is completed.
    """
    while (frame := _open_frame(draft, run_id, path)) is not None:
        if frame.next >= frame.total or frame.open >= frame.window:
            break
        if not draft.may_start():
            return True
        if not _next_element(draft, run_id, path, frame):
            return False
    return not _complete_if_over(draft, run_id)


def _open_frame(draft: Draft, run_id: str, path: str) -> Frame | None:
    """The list at a path, while elements of it may still begin."""
    run = draft.state.runs.get(run_id)
    if run is None or run.loop is None or draft.state.suspended:
        return None
    if run.cancelling is not None or run.loop.stopping is not None:
        return None
    return run.loop.frames.get(path)


def _complete_if_over(draft: Draft, run_id: str) -> bool:
    run = draft.state.runs.get(run_id)
    if run is None or run.loop is None:
        return True
    if not is_over(run.loop) or run.loop.stopping is not None:
        return False
    gather.complete(draft, run_id)
    return True


def is_over(loop: LoopState) -> bool:
    """Of a loop that the control plane schedules: every element has ended."""
    frame = loop.frames.get("")
    return frame is not None and frame.next >= frame.total and frame.open == 0


def _next_element(draft: Draft, run_id: str, path: str, frame: Frame) -> bool:
    """Begin the next element of a list: an iteration to lease, or a list inside."""
    run = draft.state.runs[run_id]
    loop = draft.program.steps[run.step].loop
    assert loop is not None
    inner = f"{path}.{frame.next}" if path else str(frame.next)
    depth = ids.parts(inner)
    try:
        iters = _iters(draft, run, loop, inner)
        opened = None
        if depth < len(loop.levels):
            scope = {**draft.scope(run.args), "iter": nested(iters)}
            opened = lists.evaluate(draft, loop.levels[depth], scope)
            innermost = len(opened.items) if depth + 1 == len(loop.levels) else 0
            _check_limit(draft, run.loop.total + innermost if run.loop else 0)
    except lists.LoopError as bad:
        fail(draft, run_id, bad.error, inner)
        return False
    if depth < loop.leased:
        assert opened is not None
        _open_list(draft, run_id, inner, opened)
        return fill(draft, run_id, inner) if opened.items else True
    _lease(draft, run_id, inner, iters, opened)
    return True


def _open_list(draft: Draft, run_id: str, path: str, opened: lists.Opened) -> Value:
    items = draft.kept(list(opened.items), lists.ITEMS_MAX_BYTES)
    fact = LoopOpened(
        step=draft.state.runs[run_id].step,
        run_id=run_id,
        iteration=path,
        total=len(opened.items),
        items=items,
        window=opened.window,
    )
    draft.emit(fact, f"{run_id}/{path}/opened")
    return items


def _lease(
    draft: Draft,
    run_id: str,
    path: str,
    iters: tuple[dict[str, Value], ...],
    opened: lists.Opened | None,
) -> None:
    """One iteration for any worker; `opened` is the first list that runs inside it, if any."""
    run = draft.state.runs[run_id]
    draft.emit(
        IterationScheduled(step=run.step, run_id=run_id, iteration=path),
        f"{run_id}/{path}/scheduled",
    )
    items = None if opened is None else _open_list(draft, run_id, path, opened)
    if opened is not None and not opened.items:
        fact = IterationDone(step=run.step, run_id=run_id, iteration=path, result=[])
        draft.emit(fact, f"{run_id}/{path}/end")
        return
    draft.effect(
        Enqueue(
            lease_id=ids.iteration_lease(run_id, path),
            run_id=run_id,
            step=run.step,
            iteration=path,
            args=run.args,
            iters=iters,
            items=items,
            window=opened.window if opened else 1,
            deadline_at=earliest((run.deadline_at, run.loop.deadline_at if run.loop else None)),
        )
    )


def _iters(draft: Draft, run: Run, plan: LoopPlan, path: str) -> tuple[dict[str, Value], ...]:
    """`iter` of the element at a path and of those around it, outermost first (rule E2)."""
    assert run.loop is not None
    found: list[dict[str, Value]] = []
    outer = ""
    for level, index in zip(plan.levels, map(int, path.split(".")), strict=False):
        frame = run.loop.frames[outer]
        items = draft.resolved(frame.items)
        assert isinstance(items, list)
        found.append({level.iterator: items[index], "index": index, "total": frame.total})
        outer = f"{outer}.{index}" if outer else str(index)
    return tuple(found)


def nested(iters: tuple[dict[str, Value], ...]) -> Value:
    """`iter` with `iter.parent` inside (rule E4)."""
    found: Value = None
    for one in iters:
        found = one if found is None else {**one, "parent": found}
    return found


def iteration_ended(draft: Draft, run_id: str, path: str) -> None:
    """An iteration of a distributed loop ended; what follows for the loop."""
    run = draft.state.runs[run_id]
    loop = run.loop
    assert loop is not None
    cancel_children(draft, run_id, path)
    if loop.stopping is not None and run.cancelling is None:
        stop_leases(draft, run_id, "another iteration failed")
    if loop.stopping is not None or run.cancelling is not None:
        if_stopped(draft, run_id)
        return
    outer = path.rpartition(".")[0]
    while outer and outer not in loop.frames:
        outer = outer.rpartition(".")[0]
    fill(draft, run_id, outer)


def if_stopped(draft: Draft, run_id: str) -> None:
    """A loop that stops ends once its last iteration has answered (rules C7, E5)."""
    run = draft.state.runs[run_id]
    loop = run.loop
    assert loop is not None
    if run.leases:
        return
    if loop.stopping is not None:
        assert isinstance(loop.stopping, dict)
        runs.failed(draft, run_id, loop.stopping)
    elif is_over(loop):
        gather.complete(draft, run_id)
    elif run.cancelling is not None:
        cancel_run(draft, run_id, run.cancelling)
