"""What a rerun takes over from an earlier log (rule K47).

Called by whoever starts a rerun, with the events of the old execution; `Start` takes the answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from noetl_core.engine.events import (
    Event,
    JoinFilled,
    LoopDone,
    NextEvaluated,
    StepDone,
    WorkflowStarted,
)
from noetl_core.engine.evolve import evolve
from noetl_core.engine.state import State, Token
from noetl_core.engine.triggers import Adopted
from noetl_core.values import Value


def adopted(events: Iterable[Event], step: str) -> Adopted | None:
    """The token that first reached a step, with `ctx` and the results of that moment.

    None where no token ever did. A join is reached when its tokens have become one.
    """
    state = State()
    done: list[Value] = []
    for event in events:
        evolve(state, event)
        fact = event.fact
        if isinstance(fact, StepDone | LoopDone):
            done.append({"step": fact.step, "run_id": fact.run_id, "result": fact.result})
        token = _arrived(state, event, step)
        if token is not None:
            return Adopted(
                execution_id=event.execution_id,
                from_step=step,
                args=token.args,
                ctx=dict(state.ctx),
                event=token.event,
                steps=tuple(done),
            )
    return None


def _arrived(state: State, event: Event, step: str) -> Token | None:
    """The token that an event brought before a step, if it did."""
    if not isinstance(event.fact, WorkflowStarted | NextEvaluated | JoinFilled):
        return None
    return next((token for token in state.pending.values() if token.step == step), None)
