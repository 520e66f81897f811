"""What may be written to a `ctx` key that has a reducer (rules E7, K29).

The control plane reduces once, at the end of the loop, when it is too late to refuse anything: so
the types are checked here, when an iteration writes.
"""

from __future__ import annotations

from collections.abc import Mapping

from noetl_core.model import Reducer
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.values import Value, type_name

_NUMERIC = frozenset({Reducer.SUM, Reducer.MIN, Reducer.MAX})
INLINE_REDUCERS = _NUMERIC | {Reducer.MERGE, Reducer.COUNT}
"""Reducers that need the value itself; a reference would not do."""


def refusal(
    reducers: Mapping[str, Reducer], patch: Mapping[str, Value], ctx: Mapping[str, Value]
) -> TaskError | None:
    """Why these writes cannot be reduced, or None. `ctx` holds the values from before the loop."""
    for key, value in patch.items():
        how = reducers.get(key)
        if how is None:
            continue
        if not _fits(how, value):
            return _refused(key, how, f"a write of {type_name(value)}")
        start = ctx.get(key)
        if start is not None and not _fits(how, start):
            return _refused(key, how, f"{type_name(start)}, the value before the loop")
    return None


def _fits(how: Reducer, value: Value) -> bool:
    if how in _NUMERIC:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return how is not Reducer.MERGE or isinstance(value, dict)


def _refused(key: str, how: Reducer, what: str) -> TaskError:
    wanted = "mappings" if how is Reducer.MERGE else "numbers"
    return TaskError(
        kind=ErrorKind.CTX_CONFLICT,
        code="REDUCER_TYPE",
        message=f"ctx.{key} has the reducer `{how}`, which takes {wanted} and not {what}",
        source="ctx",
    )
