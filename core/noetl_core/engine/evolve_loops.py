"""What the events of loops do to a state (sections E, K26–K29).

Called by `evolve` only. A loop's state holds its open lists, the leases in flight and counters; an
iteration that ended leaves nothing but a count, so that the size does not grow with the work.
"""

from __future__ import annotations

from noetl_core.engine import events as ev
from noetl_core.engine import ids
from noetl_core.engine.evolve_parts import forget_children, with_leases
from noetl_core.engine.replacing import replace
from noetl_core.engine.state import (
    MAX_FAILURES,
    Frame,
    Lease,
    LoopState,
    Run,
    State,
    Written,
)
from noetl_core.values import Value


def started(state: State, fact: ev.LoopStarted, event: ev.Event) -> None:
    run_id, run = _run(state, fact)
    outermost = {"": Frame(fact.total, fact.items, fact.window)} if fact.leased else {}
    innermost = fact.total if fact.levels == 1 else 0
    loop = LoopState(
        frames=outermost,
        outermost=fact.total,
        levels=fact.levels,
        leased=fact.leased,
        parallel=fact.parallel,
        best_effort=fact.best_effort,
        deadline_at=fact.deadline_at,
        total=innermost,
    )
    # A distributed loop is leased by iteration and not as a whole.
    leases = {} if fact.leased else run.leases
    state.runs[run_id] = replace(run, loop=loop, leases=leases)


def opened(state: State, fact: ev.LoopOpened, event: ev.Event) -> None:
    run_id, run = _run(state, fact)
    loop, path = run.loop, fact.iteration
    assert loop is not None
    assert path is not None
    depth = ids.parts(path)
    if depth < loop.leased:
        frames = _entered(loop, path)
        if fact.total:
            frames[path] = Frame(fact.total, fact.items, fact.window)
        else:
            _leave(frames, path)
        loop = replace(loop, frames=frames)
    if depth + 1 == loop.levels:
        loop = replace(loop, total=loop.total + fact.total)
        run = _counted(run, run_id, path, loop, total=fact.total)
    state.runs[run_id] = replace(run, loop=loop)


def scheduled(state: State, fact: ev.IterationScheduled, event: ev.Event) -> None:
    run_id, run = _run(state, fact)
    loop, path = run.loop, fact.iteration
    assert loop is not None
    assert path is not None
    lease_id = ids.iteration_lease(run_id, path)
    leases = {**run.leases, lease_id: Lease(path)}
    loop = replace(loop, frames=_entered(loop, path))
    state.runs[run_id] = replace(run, loop=loop, leases=leases)
    state.leases[lease_id] = run_id


def done(state: State, fact: ev.IterationDone, event: ev.Event) -> None:
    run_id, run = _run(state, fact)
    loop, path = run.loop, fact.iteration
    assert loop is not None
    assert path is not None
    depth = ids.parts(path)
    if depth == loop.levels:
        loop = replace(loop, done=loop.done + 1)
        run = _counted(run, run_id, path, loop, done=1)
    run = replace(run, loop=loop)
    if depth == loop.leased:
        run = _lease_ended(state, run, run_id, path)
    state.runs[run_id] = run
    if state.children and depth == loop.leased:
        forget_children(state, run_id, path)


def failed(state: State, fact: ev.IterationFailed, event: ev.Event) -> None:
    run_id, run = _run(state, fact)
    loop, path = run.loop, fact.iteration
    assert loop is not None
    assert path is not None
    depth = ids.parts(path)
    if depth == loop.levels:
        loop = _with_failure(loop, fact, 1)
        run = _counted(run, run_id, path, loop, failed=1)
    elif depth == loop.leased:
        loop = _lease_failed(loop, fact, run.leases[ids.iteration_lease(run_id, path)])
    if depth == loop.leased and not loop.best_effort and loop.stopping is None:
        loop = replace(loop, stopping=_with_place(fact))
    run = replace(run, loop=loop)
    if depth == loop.leased:
        run = _lease_ended(state, run, run_id, path)
    state.runs[run_id] = run
    if state.children and depth == loop.leased:
        forget_children(state, run_id, path)


def cancelled(state: State, fact: ev.IterationCancelled, event: ev.Event) -> None:
    run_id, run = _run(state, fact)
    assert fact.iteration is not None
    state.runs[run_id] = _lease_ended(state, run, run_id, fact.iteration)


def forget(state: State, run_id: str | None, lease: Lease) -> int:
    """A lease that covers a local loop begins anew: what it had counted is counted again.

    Answers the iterations that stay known: the control plane made the list of the first local
    level, the worker makes those inside it again.
    """
    run = None if run_id is None else state.runs.get(run_id)
    if run_id is None or run is None or run.loop is None or run.loop.levels == run.loop.leased:
        return 0
    loop = run.loop
    kept = lease.total if loop.levels == loop.leased + 1 else 0
    inside = "" if lease.iteration is None else f"{lease.iteration}."
    state.runs[run_id] = replace(
        run,
        loop=replace(
            loop,
            total=loop.total - lease.total + kept,
            done=loop.done - lease.done,
            failed=loop.failed - lease.failed,
            failures=tuple(o for o in loop.failures if not _iteration(o).startswith(inside)),
        ),
    )
    return kept


def note_writes(state: State, fact: ev.CtxPatched, values: dict[str, Value]) -> None:
    """Remember who wrote which key inside a parallel loop: write-once (rule E7)."""
    run = None if fact.run_id is None else state.runs.get(fact.run_id)
    if run is None or fact.run_id is None or run.loop is None or not run.loop.parallel:
        return
    if fact.iteration is None:
        return
    by = ids.outer(fact.iteration, run.loop.parallel)
    writes = dict(run.loop.writes)
    for key, value in values.items():
        old = writes.get(key)
        writes[key] = Written(value, by if old is None or old.by == by else None)
    state.runs[fact.run_id] = replace(run, loop=replace(run.loop, writes=writes))


def add_failures(state: State, fact: ev.LoopDone) -> None:
    """Failures that a best-effort loop took in its stride are handled (rules C7, K26)."""
    listed = fact.loop.get("failures")
    known = listed if isinstance(listed, list) else []
    count = fact.loop.get("failed")
    room = MAX_FAILURES - len(state.failures)
    shown: list[Value] = [
        {"step": fact.step, "handled": True, **one} for one in known[:room] if isinstance(one, dict)
    ]
    state.failures = (*state.failures, *shown)
    state.unlisted += (count if isinstance(count, int) else 0) - len(shown)


def _run(state: State, fact: ev.Fact) -> tuple[str, Run]:
    assert fact.run_id is not None
    return fact.run_id, state.runs[fact.run_id]


def _entered(loop: LoopState, path: str) -> dict[str, Frame]:
    """The open lists once the element at a path has begun."""
    outer = path.rpartition(".")[0]
    frame = loop.frames[outer]
    begun = Frame(frame.total, frame.items, frame.window, frame.next + 1, frame.open + 1)
    return {**loop.frames, outer: begun}


def _leave(frames: dict[str, Frame], path: str) -> None:
    """The element at a path has ended; a list whose last one it was ends with it."""
    while path:
        path = path.rpartition(".")[0]
        frame = frames[path]
        frames[path] = Frame(frame.total, frame.items, frame.window, frame.next, frame.open - 1)
        if frame.open > 1 or frame.next < frame.total or not path:
            return
        del frames[path]


def _lease_ended(state: State, run: Run, run_id: str, path: str) -> Run:
    lease_id = ids.iteration_lease(run_id, path)
    leases = dict(run.leases)
    del leases[lease_id]
    del state.leases[lease_id]
    loop = run.loop
    assert loop is not None
    frames = dict(loop.frames)
    _leave(frames, path)
    return with_leases(replace(run, loop=replace(loop, frames=frames)), leases)


def _counted(
    run: Run,
    run_id: str,
    path: str,
    loop: LoopState,
    total: int = 0,
    done: int = 0,
    failed: int = 0,
) -> Run:
    """Counts of a local loop are kept by lease too: a lost one gives them back."""
    if loop.levels == loop.leased:
        return run
    lease_id = run_id
    if loop.leased:
        lease_id = ids.iteration_lease(run_id, ids.outer(path, loop.leased))
    lease = run.leases.get(lease_id)
    if lease is None:
        return run
    counted = replace(
        lease,
        total=lease.total + total,
        done=lease.done + done,
        failed=lease.failed + failed,
    )
    return with_leases(run, {**run.leases, lease_id: counted})


def _lease_failed(loop: LoopState, fact: ev.IterationFailed, lease: Lease) -> LoopState:
    """A lease with a local loop inside failed: so did what it leaves undone (rule K26)."""
    if loop.best_effort:
        return _with_failure(loop, fact, max(1, lease.total - lease.done - lease.failed))
    return loop if lease.failed else _with_failure(loop, fact, 1)


def _with_place(fact: ev.IterationFailed) -> Value:
    """The error that `step.failed` will carry (rule C12)."""
    error = fact.error if isinstance(fact.error, dict) else {}
    return {"task": fact.task, "iteration": fact.iteration, **error}


def _with_failure(loop: LoopState, fact: ev.IterationFailed, count: int) -> LoopState:
    failures = loop.failures
    if len(failures) < MAX_FAILURES:
        failure: Value = {"iteration": fact.iteration, "task": fact.task, "error": fact.error}
        failures = (*failures, failure)
    return replace(loop, failed=loop.failed + count, failures=failures)


def _iteration(failure: Value) -> str:
    found = failure.get("iteration") if isinstance(failure, dict) else None
    return found if isinstance(found, str) else ""
