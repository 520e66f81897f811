"""Filters on mappings: their keys and values, parts of them, several put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetl_core.templates.data import weigh
from noetl_core.templates.errors import TemplateError
from noetl_core.templates.filters.common import charge_sort, sort_keys
from noetl_core.templates.frame import ENTRY, LIST, SLOT, Frame
from noetl_core.templates.operators import key_error
from noetl_core.templates.registry import filters
from noetl_core.values import type_name

if TYPE_CHECKING:
    from noetl_core.values import Value

GROUP = "Mappings"


@filters(GROUP, ("{'a': 1, 'b': 2} | keys", ["a", "b"]))
def keys(frame: Frame, value: dict[str, Value]) -> list[str]:
    """The keys, in their order."""
    frame.items(len(value))
    return list(value)


@filters(GROUP, ("{'a': 1, 'b': 2} | values", [1, 2]))
def values(frame: Frame, value: dict[str, Value]) -> list[Value]:
    """The values, in the order of their keys."""
    frame.items(len(value))
    return list(value.values())


@filters(GROUP, ("{'a': 1, 'b': 2} | items", [["a", 1], ["b", 2]]))
def items(frame: Frame, value: dict[str, Value]) -> list[Value]:
    """The entries as pairs `[key, value]`."""
    return _pairs(frame, list(value.items()))


def _pairs(frame: Frame, entries: list[tuple[str, Value]]) -> list[Value]:
    frame.items(len(entries) * 2)
    frame.memory(len(entries) * (LIST + 2 * SLOT))
    return [[key, one] for key, one in entries]


@filters(
    GROUP,
    ("[['a', 1], ['b', 2]] | from_items", {"a": 1, "b": 2}),
    ("{'a': 1} | items | from_items", {"a": 1}),
)
def from_items(frame: Frame, value: list[Value]) -> dict[str, Value]:
    """The mapping of a list of pairs `[key, value]`; of two equal keys the later one stands."""
    _charge_entries(frame, len(value))
    built: dict[str, Value] = {}
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            raise TemplateError(f"from_items takes pairs, not {type_name(pair)}")
        key, one = pair
        if not isinstance(key, str):
            raise key_error(key)
        built[key] = one
    return built


def _charge_entries(frame: Frame, count: int) -> None:
    frame.work(count * 2 + 1)
    frame.memory(count * ENTRY + LIST)


@filters(
    GROUP,
    ("{'b': 1, 'A': 2} | dictsort", [["A", 2], ["b", 1]]),
    ("{'a': 2, 'b': 1} | dictsort(by='value')", [["b", 1], ["a", 2]]),
)
def dictsort(
    frame: Frame,
    value: dict[str, Value],
    case_sensitive: bool = False,
    by: str = "key",
    reverse: bool = False,
) -> list[Value]:
    """The entries as pairs, in the order of their keys, or of their values with `by='value'`."""
    if by not in ("key", "value"):
        raise TemplateError("by of dictsort is 'key' or 'value'", code=TemplateError.VALUE)
    frame.items(len(value) * 3)
    entries = list(value.items())
    column = [pair[0] if by == "key" else pair[1] for pair in entries]
    order = sort_keys(frame, column, case_sensitive=case_sensitive, what="dictsort")
    charge_sort(frame, order)
    ranks = sorted(range(len(order)), key=order.__getitem__, reverse=reverse)
    return _pairs(frame, [entries[rank] for rank in ranks])


@filters(
    GROUP,
    ("{'a': 1, 'b': 2} | combine({'b': 3})", {"a": 1, "b": 3}),
    ("{'a': {'x': 1}} | combine({'a': {'y': 2}}, recursive=true)", {"a": {"x": 1, "y": 2}}),
    aliases=("merge",),
)
def combine(
    frame: Frame, value: dict[str, Value], other: dict[str, Value], recursive: bool = False
) -> dict[str, Value]:
    """Both mappings as one; where both have a key `other` wins, or is combined if `recursive`."""
    if not recursive:
        _charge_entries(frame, len(value) + len(other))
        return {**value, **other}
    weigh(frame, value)
    weigh(frame, other)
    return _deep(frame, value, other)


def _deep(frame: Frame, left: dict[str, Value], right: dict[str, Value]) -> dict[str, Value]:
    _charge_entries(frame, len(left) + len(right))
    merged = dict(left)
    for key, new in right.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(new, dict)
        merged[key] = _deep(frame, old, new) if both else new  # type: ignore[arg-type]
    return merged


@filters(GROUP, ("{'a': 1, 'b': 2, 'c': 3} | pick('a', 'c', 'x')", {"a": 1, "c": 3}))
def pick(frame: Frame, value: dict[str, Value], *keys: Value) -> dict[str, Value]:
    """The mapping with these keys only; names or lists of names."""
    wanted = _names(frame, keys, "pick")
    _charge_entries(frame, len(wanted))
    return {key: value[key] for key in wanted if key in value}


@filters(GROUP, ("{'a': 1, 'b': 2} | omit('b')", {"a": 1}))
def omit(frame: Frame, value: dict[str, Value], *keys: Value) -> dict[str, Value]:
    """The mapping without these keys; names or lists of names."""
    unwanted = _names(frame, keys, "omit")
    _charge_entries(frame, len(value))
    return {key: one for key, one in value.items() if key not in unwanted}


def _names(frame: Frame, given: tuple[Value, ...], callee: str) -> dict[str, None]:
    """The names among the arguments, in their order."""
    names: dict[str, None] = {}
    for one in given:
        many = one if isinstance(one, list) else [one]
        _charge_entries(frame, len(many))
        for name in many:
            if not isinstance(name, str):
                raise TemplateError(f"{callee} takes names of keys, not {type_name(name)}")
            names[name] = None
    return names
