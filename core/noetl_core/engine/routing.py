"""Routing: which arcs a boundary event fires, and what their tokens carry (rules C4–C6, K10)."""

from __future__ import annotations

from dataclasses import dataclass, field

from noetl_core.engine import ids, joins
from noetl_core.engine.draft import Draft
from noetl_core.engine.events import NextEvaluated
from noetl_core.engine.program import ArcPlan, StepPlan
from noetl_core.engine.sizes import larger_than
from noetl_core.engine.state import Boundary
from noetl_core.templates import TemplateError, render
from noetl_core.values import Value


class Unroutable(Exception):
    """An arc cannot be evaluated; the execution fails (rule K8)."""

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


@dataclass(slots=True)
class Routed:
    """What `next.evaluated` will say."""

    matched: list[int] = field(default_factory=list)
    fired: list[ArcPlan] = field(default_factory=list)
    args: list[Value] = field(default_factory=list)


def route(draft: Draft, plan: StepPlan, event: Boundary, args: dict[str, Value]) -> Routed:
    """The arcs that fire; `args` are those of the run that ended. Changes nothing."""
    routed = Routed()
    if not plan.arcs:
        return routed
    scope = draft.scope(args, event)
    for arc in plan.arcs:
        if not _matches(plan, arc, event, scope):
            continue
        routed.matched.append(arc.index)
        routed.fired.append(arc)
        routed.args.append(_args(plan, arc, scope))
        if not plan.inclusive:
            break
    limit = draft.program.limits.max_payload_bytes
    if larger_than(routed.args, limit):
        message = (
            f"step {plan.name}: args of its arcs are larger than max_payload_bytes ({limit:,})"
        )
        raise Unroutable(message, too_large=True)
    return routed


def _matches(plan: StepPlan, arc: ArcPlan, event: Boundary, scope: dict[str, Value]) -> bool:
    if arc.guard is None:
        return event.status == "ok"
    try:
        return arc.guard.truth(scope)
    except TemplateError as error:
        raise Unroutable(f"{_place(plan, arc)}, when: {error}") from None


def _args(plan: StepPlan, arc: ArcPlan, scope: dict[str, Value]) -> Value:
    if not arc.arc.args:
        return {}
    try:
        return render(arc.arc.args, scope)
    except TemplateError as error:
        raise Unroutable(f"{_place(plan, arc)}, args: {error}") from None


def _place(plan: StepPlan, arc: ArcPlan) -> str:
    return f"step {plan.name}, arc {arc.index} to {arc.arc.step}"


def fire(draft: Draft, plan: StepPlan, run_id: str, routed: Routed) -> None:
    """Say what was decided; tokens now stand before their steps, or in the places of joins."""
    if not plan.routes:
        return
    tokens = [ids.arc_token(run_id, arc.index) for arc in routed.fired]
    places: list[Value] = [arc.place for arc in routed.fired]
    fired: list[dict[str, Value]] = [
        {"arc": arc.index, "step": arc.arc.step, "run_id": token}
        for arc, token in zip(routed.fired, tokens, strict=True)
    ]
    fact = NextEvaluated(
        step=plan.name,
        run_id=run_id,
        mode=plan.mode,
        matched=routed.matched,
        fired=fired,
        args=routed.args if any(routed.args) else None,
        places=places if any(places) else None,
    )
    draft.emit(fact, f"{run_id}/next")
    for arc, token in zip(routed.fired, tokens, strict=True):
        if arc.place is not None:
            joins.fill(draft, draft.program.steps[arc.arc.step], token)
