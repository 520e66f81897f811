"""Replays the log of an execution and compares: sequence, hash chain, stored state.

The fold is the engine's own; what is stored must be exactly what the log adds up to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from noetl_core.engine.codec import encode_state
from noetl_core.engine.evolve import evolve
from noetl_core.engine.state import State
from noetl_core.values import Value

if TYPE_CHECKING:
    from noetl_operator.store.reading import Head, Reading, Stored


@dataclass(frozen=True, slots=True)
class Difference:
    """The first thing that is not as it should be."""

    seq: int | None
    path: str
    message: str

    def as_json(self) -> dict[str, Value]:
        return {"seq": self.seq, "path": self.path, "message": self.message}


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of it."""

    events: int
    difference: Difference | None


async def verify(reading: Reading, execution_id: str) -> Verified:
    """Check the log as it stood when the execution's own row was read."""
    head = await reading.head(execution_id)
    state = State(execution_id=execution_id)
    before, count = b"", 0
    try:
        async for row in reading.stored(execution_id):
            if count == head.seq:
                break
            difference = _row(row, before, count + 1) or _folded(state, row)
            if difference is not None:
                return Verified(count, difference)
            before, count = row.hash, count + 1
    except (ValueError, KeyError, TypeError) as error:
        broken = f"the event can't be read: {type(error).__name__}: {error}"
        return Verified(count, Difference(count + 1, "event", broken))
    return Verified(count, _end(head, state, before, count))


def _row(row: Stored, before: bytes, expected: int) -> Difference | None:
    seq = row.event.seq
    if seq != expected:
        missing = f"event {expected} is missing: the next one is {seq}"
        return Difference(expected, "seq", missing)
    if row.linked(before) != row.hash:
        changed = f"event {seq} ({row.event.fact.name}) does not match its hash"
        return Difference(seq, "hash", changed)
    return None


def _folded(state: State, row: Stored) -> Difference | None:
    try:
        evolve(state, row.event)
    except (AssertionError, LookupError, TypeError, ValueError, AttributeError) as error:
        said = f"event {row.event.seq} does not follow from those before it: {error!r}"
        return Difference(row.event.seq, "event", said)
    return None


def _end(head: Head, state: State, last: bytes, count: int) -> Difference | None:
    if count != head.seq:
        lost = f"the execution stands at event {head.seq}, and the log has {count}"
        return Difference(count + 1, "seq", lost)
    if head.head != last:
        return Difference(count, "hash", "the last event is not the one the execution remembers")
    path = _different(encode_state(head.state), encode_state(state), "state")
    if path is not None:
        return Difference(None, path[0], f"{path[0]} is {path[1]}, and the log says {path[2]}")
    if head.phase != state.phase.value:
        return Difference(None, "phase", f"the phase is {head.phase}, the log says {state.phase}")
    return None


def _different(stored: Value, replayed: Value, path: str) -> tuple[str, str, str] | None:
    """The first place where two values differ."""
    if isinstance(stored, dict) and isinstance(replayed, dict):
        for key in [*replayed, *(key for key in stored if key not in replayed)]:
            found = _different(stored.get(key), replayed.get(key), f"{path}.{key}")
            if found is not None:
                return found
        return None
    if isinstance(stored, list) and isinstance(replayed, list) and len(stored) == len(replayed):
        pairs = zip(stored, replayed, strict=True)
        each = (_different(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(pairs))
        return next((found for found in each if found is not None), None)
    if stored == replayed and type(stored) is type(replayed):
        return None
    return path, _short(stored), _short(replayed)


def _short(value: Value) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
