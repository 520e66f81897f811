"""The end of a loop: the ordered list of results, and what reducers make of the writes.

What iterations ended with stands in the log and not in the state; it is read once, here.
"""

from __future__ import annotations

from noetl_core.engine import ids
from noetl_core.engine.draft import Draft
from noetl_core.engine.events import IterationDone, IterationFailed, LoopOpened
from noetl_core.engine.program import LoopPlan
from noetl_core.engine.reducers import reduced
from noetl_core.engine.state import LoopState
from noetl_core.engine.triggers import IterationEnd, Needed
from noetl_core.results import INLINE_MAX_BYTES
from noetl_core.values import Value


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
