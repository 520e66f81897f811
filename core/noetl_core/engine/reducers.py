"""Reducers: how the writes of iterations come together in `ctx` (rules E7, K29).

A fold over the last write of each iteration in iteration order, so that the order in which they
ended does not show. Pure; called once, at the end of a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

from noetl_core.model import Reducer
from noetl_core.values import Value, type_name


class NotReducible(Exception):
    """A value that a reducer cannot take in; the message says which."""


def reduced(key: str, reducer: Reducer, start: Value, writes: Sequence[Value]) -> Value:
    """The value of `ctx.<key>` after the loop; `start` is the one before it, or None."""
    return _REDUCE[reducer](key, start, writes)


def _append(key: str, start: Value, writes: Sequence[Value]) -> Value:
    before = start if isinstance(start, list) else [] if start is None else [start]
    return [*before, *writes]


def _sum(key: str, start: Value, writes: Sequence[Value]) -> Value:
    total: int | float = 0
    try:
        for number in _numbers(key, "sum", start, writes):
            total += number
        finite = isfinite(total)
    except OverflowError:
        finite = False
    if not finite:
        raise NotReducible(f"ctx.{key} has reducer sum, and the sum is too large for a number")
    return total


def _min(key: str, start: Value, writes: Sequence[Value]) -> Value:
    return min(_numbers(key, "min", start, writes))


def _max(key: str, start: Value, writes: Sequence[Value]) -> Value:
    return max(_numbers(key, "max", start, writes))


def _count(key: str, start: Value, writes: Sequence[Value]) -> Value:
    return sum(_numbers(key, "count", start, [])) + len(writes)


def _merge(key: str, start: Value, writes: Sequence[Value]) -> Value:
    merged = start
    for value in writes:
        merged = merge_deep(merged, value)
    return merged


def _last(key: str, start: Value, writes: Sequence[Value]) -> Value:
    return writes[-1]


def merge_deep(low: Value, high: Value) -> Value:
    """Two mappings become one, at every depth; of anything else the higher one stands."""
    if not (isinstance(low, dict) and isinstance(high, dict)):
        return high
    merged = dict(low)
    for key, value in high.items():
        merged[key] = merge_deep(merged[key], value) if key in merged else value
    return merged


def _numbers(key: str, name: str, start: Value, writes: Sequence[Value]) -> list[int | float]:
    found: list[int | float] = []
    for value in ([] if start is None else [start]) + list(writes):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NotReducible(f"ctx.{key} has reducer {name} and holds {type_name(value)}")
        found.append(value)
    return found


_REDUCE: dict[Reducer, Callable[[str, Value, Sequence[Value]], Value]] = {
    Reducer.APPEND: _append,
    Reducer.SUM: _sum,
    Reducer.MIN: _min,
    Reducer.MAX: _max,
    Reducer.COUNT: _count,
    Reducer.MERGE: _merge,
    Reducer.LAST: _last,
}
