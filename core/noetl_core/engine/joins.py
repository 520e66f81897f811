"""Joins: steps that wait for one token on each inbound arc (rules C9, K12)."""

from __future__ import annotations

from noetl_core.engine import ids
from noetl_core.engine.draft import Draft
from noetl_core.engine.ending import fail
from noetl_core.engine.events import JoinDropped, JoinFilled
from noetl_core.engine.program import StepPlan
from noetl_core.engine.sizes import larger_than
from noetl_core.engine.state import Reason, Token
from noetl_core.model import AtEnd
from noetl_core.values import Value


def fill(draft: Draft, plan: StepPlan, arrived: str) -> None:
    """A token reached one place of a join; with a full set they become one token.

    Tokens that one router sends to several places stand there all at once, and one of them may find
    its place taken by an earlier token: then the set goes without it, and the last of those in it
    counts as the one that came last.
    """
    places = draft.state.places.get(plan.name, {})
    if all(place in places for place in plan.places):
        tokens = _first_tokens(draft, plan)
        if all(token.id != arrived for token in tokens):
            arrived = max(tokens, key=lambda token: token.arrived_at).id
        _fire(draft, plan, arrived, None)


def at_end(draft: Draft) -> bool:
    """Nothing else can happen: the first half full join in workflow order is judged.

    Answers whether there was one, so that it is looked again once that has played out.
    """
    for plan in draft.program.steps.values():
        if plan.name not in draft.state.places:
            continue
        if plan.at_end is AtEnd.FIRE:
            latest = max(_first_tokens(draft, plan), key=lambda token: token.arrived_at)
            _fire(draft, plan, latest.id, _missing(draft, plan))
        elif plan.at_end is AtEnd.DROP:
            _drop(draft, plan)
        elif draft.state.unhandled is not None:
            # A branch failed before: the join lacks its tokens because of that.
            continue
        else:
            arcs = ", ".join(_missing(draft, plan))
            message = f"step {plan.name} waits for all its arcs, and no token came by {arcs}"
            fail(draft, Reason.JOIN_INCOMPLETE, message)
        return True
    return False


def _fire(draft: Draft, plan: StepPlan, last: str, missing: list[str] | None) -> None:
    tokens = _first_tokens(draft, plan)
    args: dict[str, Value] = {}
    for token in tokens:
        args.update(token.args)
    limit = draft.program.limits.max_payload_bytes
    if larger_than(args, limit):
        message = f"step {plan.name}: the args of its tokens are larger than max_payload_bytes"
        fail(draft, Reason.LIMIT_EXCEEDED, f"{message} ({limit:,})")
        return
    consumed = [token.id for token in tokens]
    run_id = ids.join_run(draft.program.execution_id, plan.name, tuple(consumed))
    fact = JoinFilled(
        step=plan.name, run_id=run_id, tokens=consumed, args=args, by=last, missing=missing
    )
    draft.emit(fact, f"{run_id}/filled")


def _first_tokens(draft: Draft, plan: StepPlan) -> list[Token]:
    """The token that came first in each place, in the order of the arcs."""
    places = draft.state.places[plan.name]
    return [places[place][0] for place in plan.places if place in places]


def _drop(draft: Draft, plan: StepPlan) -> None:
    places = draft.state.places[plan.name]
    tokens = [token.id for place in plan.places for token in places.get(place, ())]
    fact = JoinDropped(step=plan.name, tokens=tokens)
    draft.emit(fact, f"{plan.name}/dropped/{tokens[0]}")


def _missing(draft: Draft, plan: StepPlan) -> list[str]:
    places = draft.state.places[plan.name]
    return [place for place in plan.places if place not in places]
