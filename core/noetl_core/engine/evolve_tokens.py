"""What becomes of tokens: judged, scheduled, skipped, routed, joined (section C).

Called by `evolve` only.
"""

from __future__ import annotations

from noetl_core.engine import events as ev
from noetl_core.engine.evolve_parts import take_token
from noetl_core.engine.replacing import replace
from noetl_core.engine.state import Counts, Lease, Run, State, Token


def admit(state: State, fact: ev.AdmitEvaluated, event: ev.Event) -> None:
    assert fact.run_id is not None
    holder = state.pending if fact.run_id in state.pending else state.waiting
    token = holder[fact.run_id]
    judged = replace(
        token,
        deadline_at=fact.deadline_at,
        judged=token.judged + 1,
        ctx_version=state.ctx_version,
    )
    if fact.waits:
        state.pending.pop(token.id, None)
        state.waiting[token.id] = judged
    else:
        holder[token.id] = judged


def scheduled(state: State, fact: ev.StepScheduled, event: ev.Event) -> None:
    assert fact.run_id is not None
    assert fact.step is not None
    take_token(state, fact.run_id)
    state.runs[fact.run_id] = Run(
        fact.step,
        fact.args,
        event.timestamp,
        {fact.run_id: Lease()},
        None,
        fact.deadline_at,
        fact.final,
    )
    c = state.steps
    state.steps = Counts(c.total + 1, c.done, c.failed, c.skipped, c.cancelled)
    if fact.final:
        state.final_run = fact.run_id


def skipped(state: State, fact: ev.StepSkipped, event: ev.Event) -> None:
    take_token(state, fact.run_id)
    state.steps = replace(state.steps, skipped=state.steps.skipped + 1)


def routed(state: State, fact: ev.NextEvaluated, event: ev.Event) -> None:
    origin = state.last
    assert origin is not None
    assert origin.run_id == fact.run_id, "arcs are evaluated right after their boundary event"
    carried = fact.args or []
    places = fact.places or []
    for index, fired in enumerate(fact.fired):
        token_id, step = fired["run_id"], fired["step"]
        assert isinstance(token_id, str)
        assert isinstance(step, str)
        args = carried[index] if index < len(carried) else None
        own = args if isinstance(args, dict) else {}
        token = Token(token_id, step, own, origin, event.timestamp)
        place = places[index] if index < len(places) else None
        if isinstance(place, str):
            state.places.setdefault(step, {}).setdefault(place, []).append(token)
        else:
            state.pending[token_id] = token


def join_filled(state: State, fact: ev.JoinFilled, event: ev.Event) -> None:
    assert fact.run_id is not None
    assert fact.step is not None
    last = _take_from_places(state, fact.step, fact.tokens)[fact.by]
    state.pending[fact.run_id] = Token(
        fact.run_id, fact.step, fact.args, last.event, event.timestamp
    )


def join_dropped(state: State, fact: ev.JoinDropped, event: ev.Event) -> None:
    assert fact.step is not None
    _take_from_places(state, fact.step, fact.tokens)


def _take_from_places(state: State, step: str, tokens: list[str]) -> dict[str, Token]:
    wanted = set(tokens)
    taken: dict[str, Token] = {}
    places = state.places[step]
    for place, held in list(places.items()):
        taken.update((token.id, token) for token in held if token.id in wanted)
        places[place] = [token for token in held if token.id not in wanted]
        if not places[place]:
            del places[place]
    if not places:
        del state.places[step]
    return taken
