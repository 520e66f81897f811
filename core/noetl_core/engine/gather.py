"""The end of a loop: the ordered list of results, and what reducers make of the writes.

What iterations ended with stands in the log and not in the state; it is read once, here.
"""

from __future__ import annotations

from noetl_core.engine import ids, runs
from noetl_core.engine.draft import Draft
from noetl_core.engine.events import CtxPatched, IterationDone, IterationFailed, LoopOpened
from noetl_core.engine.evolve_parts import size_after
from noetl_core.engine.lists import LoopError
from noetl_core.engine.program import LoopPlan, StepPlan
from noetl_core.engine.reducers import NotReducible, reduced
from noetl_core.engine.state import LoopState
from noetl_core.engine.triggers import IterationEnd, Needed
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.results import CTX_MAX_BYTES, INLINE_MAX_BYTES
from noetl_core.values import Value


def complete(draft: Draft, run_id: str) -> None:
    """All iterations ended: reducers write, and `loop.done` carries the list (rules E6, E7)."""
    run = draft.state.runs[run_id]
    loop = run.loop
    assert loop is not None
    plan = draft.program.steps[run.step]
    assert plan.loop is not None
    ends = ends_of(draft, run_id, loop.levels) if loop.outermost else {}
    totals = totals_of(draft, run_id, loop) if loop.outermost else {"": 0}
    try:
        _reduce(draft, run_id, plan.loop, ends, totals)
    except LoopError as bad:
        runs.failed(draft, run_id, bad.error.as_json())
        return
    result = _kept_result(draft, plan, result_of(ends, totals, loop.levels))
    counts = runs.loop_counts(draft, run_id)
    assert counts is not None
    runs.loop_done(draft, run_id, result, counts)


def _reduce(
    draft: Draft,
    run_id: str,
    plan: LoopPlan,
    ends: dict[str, IterationEnd],
    totals: dict[str, int],
) -> None:
    """One `ctx.patched` with what all writes to keys with a reducer come to (rule K29)."""
    if not plan.reducers:
        return
    try:
        writes = writes_of(draft, plan, ends, paths(totals, len(plan.levels)))
    except NotReducible as problem:
        raise _error(ErrorKind.SCHEMA, "REDUCER", str(problem)) from None
    if not writes:
        return
    if size_after(draft.state, writes) > CTX_MAX_BYTES:
        message = f"ctx would be larger than {CTX_MAX_BYTES:,} bytes after the reducers"
        raise _error(ErrorKind.LIMIT, "CTX_SIZE", message)
    step = draft.state.runs[run_id].step
    fact = CtxPatched(step=step, run_id=run_id, set=writes, by=step, reason="reducers")
    draft.emit(fact, f"{run_id}/reducers")


def _error(kind: ErrorKind, code: str, message: str) -> LoopError:
    return LoopError(TaskError(kind=kind, code=code, message=message, source="loop"))


def _kept_result(draft: Draft, plan: StepPlan, result: Value) -> Value:
    limit = min(plan.inline_max_bytes, draft.program.limits.max_payload_bytes // 2)
    return draft.kept(result, -1 if draft.program.reference_first else limit)


def ends_of(draft: Draft, run_id: str, levels: int) -> dict[str, IterationEnd]:
    """The ends of all innermost iterations by path; of two ends the later stands."""
    logged = draft.lookup.iterations(run_id)
    if logged is None:
        raise Needed(loop=run_id)
    found = {end.iteration: end for end in logged if ids.parts(end.iteration) == levels}
    for event in draft.events:
        fact = event.fact
        if fact.run_id != run_id or fact.iteration is None:
            continue
        if ids.parts(fact.iteration) != levels:
            continue
        if isinstance(fact, IterationDone):
            end = IterationEnd(fact.iteration, fact.result, False, fact.writes)
        elif isinstance(fact, IterationFailed):
            end = IterationEnd(fact.iteration, None, True, fact.writes)
        else:
            continue
        found[fact.iteration] = end
    return found


def totals_of(draft: Draft, run_id: str, loop: LoopState) -> dict[str, int]:
    """How many elements each list had, by the path of its outer iteration."""
    totals = {"": loop.outermost}
    if loop.levels == 1:
        return totals
    logged = draft.lookup.frames(run_id)
    if logged is None:
        raise Needed(loop=run_id)
    totals.update(logged)
    for event in draft.events:
        fact = event.fact
        if isinstance(fact, LoopOpened) and fact.run_id == run_id and fact.iteration is not None:
            totals[fact.iteration] = fact.total
    return totals


def paths(totals: dict[str, int], levels: int) -> list[str]:
    """The innermost iterations in order."""
    found = [""]
    for _ in range(levels):
        found = [
            f"{path}.{index}" if path else str(index)
            for path in found
            for index in range(totals.get(path, 0))
        ]
    return found


def result_of(ends: dict[str, IterationEnd], totals: dict[str, int], levels: int) -> Value:
    """The results in order, nested as the loops are; a failed slot is null (rules E6, K26, K27)."""
    return _list(ends, totals, "", levels)


def _list(
    ends: dict[str, IterationEnd], totals: dict[str, int], path: str, levels: int
) -> list[Value]:
    found: list[Value] = []
    for index in range(totals.get(path, 0)):
        inner = f"{path}.{index}" if path else str(index)
        if levels > 1:
            found.append(_list(ends, totals, inner, levels - 1))
            continue
        end = ends.get(inner)
        found.append(None if end is None or end.failed else end.result)
    return found


def writes_of(
    draft: Draft, plan: LoopPlan, ends: dict[str, IterationEnd], in_order: list[str]
) -> dict[str, Value]:
    """What reducers write to `ctx` at the end of the loop, by key."""
    found: dict[str, Value] = {}
    for key, reducer in plan.reducers.items():
        written = [ends[path].writes or {} for path in in_order if path in ends]
        values = [writes[key] for writes in written if key in writes]
        if not values:
            continue
        start = draft.resolved(draft.state.ctx.get(key))
        found[key] = draft.kept(reduced(key, reducer, start, values), INLINE_MAX_BYTES)
    return found
