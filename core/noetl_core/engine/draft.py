"""A decision while it is made: the facts so far, the effects, and the state after them.

Made by `decide`, handed to all rooms of the engine. Whoever adds a fact sees its consequences in
`state` at once, because the same `evolve` runs here as over a log.
"""

from __future__ import annotations

from noetl_core.engine import ids
from noetl_core.engine.events import Event, Fact, Source
from noetl_core.engine.evolve import evolve
from noetl_core.engine.program import Program
from noetl_core.engine.state import Boundary, State
from noetl_core.engine.triggers import (
    Continue,
    Decision,
    Effect,
    Lookup,
    Needed,
    ResultGone,
    Store,
    Unreadable,
    Verdict,
)
from noetl_core.results import canonical, is_ref, reference
from noetl_core.values import Value

MAX_STARTS = 500
"""Step-runs and iterations that one decision may start; the rest waits for the next one."""


class Draft:
    """Collects one decision about one execution."""

    __slots__ = (
        "effects",
        "events",
        "expected",
        "keys",
        "lookup",
        "message",
        "now",
        "program",
        "starts",
        "state",
        "stored",
        "verdict",
    )

    def __init__(self, program: Program, state: State, now: str, lookup: Lookup) -> None:
        self.program = program
        self.state = state
        self.now = now
        self.lookup = lookup
        self.events: list[Event] = []
        self.keys: list[str] = []
        self.effects: list[Effect] = []
        self.starts = MAX_STARTS
        """How many more starts fit into this decision."""
        self.stored: dict[str, Value] = {}
        """What this decision keeps as results, by key."""
        self.verdict = Verdict.ACCEPTED
        self.message: str | None = None
        self.expected = 0

    def emit(self, fact: Fact, key: str, source: Source = Source.CONTROL) -> None:
        """Add a fact; `key` names its cause, so that the same cause gives it once."""
        execution_id = self.program.execution_id
        event_id = ids.event_id(execution_id, key)
        seq = self.state.seq + 1
        event = Event(event_id, execution_id, seq, self.now, source.value, fact)
        evolve(self.state, event)
        self.events.append(event)
        self.keys.append(key)

    def effect(self, effect: Effect) -> None:
        self.effects.append(effect)

    def may_start(self) -> bool:
        """Take one start; when none is left, ask to be called again."""
        if self.starts <= 0:
            if Continue() not in self.effects[-1:]:
                self.effect(Continue())
            return False
        self.starts -= 1
        return True

    def answer(self, verdict: Verdict, message: str | None = None, expected: int = 0) -> None:
        """What whoever sent the trigger is told."""
        self.verdict = verdict
        self.message = message
        self.expected = expected

    def decision(self) -> Decision:
        return Decision(
            tuple(self.events),
            tuple(self.keys),
            tuple(self.effects),
            self.state,
            self.verdict,
            self.message,
            self.expected,
        )

    def scope(self, args: dict[str, Value], event: Boundary | None = None) -> dict[str, Value]:
        """What a template of the control plane may read (rule B4)."""
        scope = self.program.scope(self.state.ctx, args)
        if event is not None:
            scope["event"] = event.as_json()
        return scope

    def kept(self, value: Value, limit: int) -> Value:
        """A value as events carry it: itself, or beyond the limit a reference (rule H1)."""
        content = canonical(value)
        if len(content) <= limit:
            return value
        ref = reference(content, value)
        key = ref["key"]
        assert isinstance(key, str)
        if key not in self.stored:
            self.stored[key] = value
            self.effect(Store(key, content))
        return ref

    def resolved(self, value: Value) -> Value:
        """A value, or what a reference stands for; raises `ResultGone`."""
        if not is_ref(value):
            return value
        key = value["key"]
        assert isinstance(key, str)
        if key in self.stored:
            return self.stored[key]
        if value.get("size") == 4 and value.get("preview") == "null":
            return None
        found = self.lookup.result(key)
        if found is None:
            raise Needed(result=key)
        if isinstance(found, Unreadable):
            raise ResultGone(found.message)
        return found
