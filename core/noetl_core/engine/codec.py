"""State as JSON data and back, exactly: what a store keeps beside the log.

`encode_state` gives what a JSON library makes of the dataclasses by itself. `decode_state` ignores
what it does not know and gives defaults to what is missing, so that replicas of two versions can
work side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TypeAlias, TypeVar

from noetl_core.engine.state import (
    Boundary,
    Child,
    Counts,
    Ending,
    Frame,
    Lease,
    LoopState,
    Phase,
    Reason,
    Run,
    State,
    Token,
    Written,
)
from noetl_core.values import Value

T = TypeVar("T")
Decode: TypeAlias = Callable[[Value], object]


def encode_state(state: State) -> dict[str, Value]:
    """A state as JSON data."""
    encoded = _plain(state)
    assert isinstance(encoded, dict)
    return encoded


def _plain(value: object) -> Value:
    if isinstance(value, Enum):
        found: Value = value.value
        return found
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    assert value is None or isinstance(value, bool | int | float | str), type(value)
    return value


def decode_state(data: Mapping[str, Value]) -> State:
    """The state that was encoded."""
    return _build(State, _STATE, data)


def _build(kind: type[T], special: Mapping[str, Decode], data: Mapping[str, Value]) -> T:
    given: dict[str, object] = {}
    for name in _names(kind):
        if name in data:
            value = data[name]
            decode = special.get(name)
            given[name] = value if decode is None or value is None else decode(value)
    return kind(**given)


_NAMES: dict[type, tuple[str, ...]] = {}


def _names(kind: type) -> tuple[str, ...]:
    found = _NAMES.get(kind)
    if found is None:
        found = tuple(field.name for field in fields(kind))
        _NAMES[kind] = found
    return found


def _one(kind: type[T], **special: Decode) -> Callable[[Value], T]:
    def decode(value: Value) -> T:
        assert isinstance(value, dict)
        return _build(kind, special, value)

    return decode


def _by_key(decode: Callable[[Value], T]) -> Callable[[Value], dict[str, T]]:
    def decode_all(value: Value) -> dict[str, T]:
        assert isinstance(value, dict)
        return {key: decode(one) for key, one in value.items()}

    return decode_all


def _every(decode: Callable[[Value], T]) -> Callable[[Value], list[T]]:
    def decode_all(value: Value) -> list[T]:
        assert isinstance(value, list)
        return [decode(one) for one in value]

    return decode_all


def _tuple(value: Value) -> tuple[Value, ...]:
    assert isinstance(value, list)
    return tuple(value)


def _phase(value: Value) -> Phase:
    return Phase(str(value))


def _reason(value: Value) -> Reason:
    return Reason(str(value))


_boundary = _one(Boundary)
_token = _one(Token, event=_boundary)
_lease = _one(Lease)
_loop = _one(
    LoopState,
    frames=_by_key(_one(Frame)),
    failures=_tuple,
    writes=_by_key(_one(Written)),
)
_run = _one(Run, leases=_by_key(_lease), loop=_loop)

_STATE: dict[str, Decode] = {
    "phase": _phase,
    "keychain": _lease,
    "adopted": _token,
    "pending": _by_key(_token),
    "waiting": _by_key(_token),
    "places": _by_key(_by_key(_every(_token))),
    "runs": _by_key(_run),
    "children": _by_key(_one(Child)),
    "patches": _tuple,
    "steps": _one(Counts),
    "failures": _tuple,
    "ending": _one(Ending, phase=_phase, reason=_reason),
    "last": _boundary,
}
