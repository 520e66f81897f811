"""The lists that loops go through: `loop.in` and `max_in_flight` (rules E1, E2, H2).

Evaluated by the control plane for every level it schedules and for the first one that a worker
does. A reference to a stored result is followed here, unlike in admission and arcs.
"""

from __future__ import annotations

from dataclasses import dataclass

from noetl_core.engine.draft import Draft
from noetl_core.engine.triggers import ResultGone
from noetl_core.model import Loop, LoopMode
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.results import is_ref
from noetl_core.templates import TemplateError, compile_template, render
from noetl_core.values import Value, type_name

ITEMS_MAX_BYTES = 4 * 1024
"""A longer list is stored and referred to, so that the state of a loop stays small."""


class LoopError(Exception):
    """A loop cannot go on; the step fails with this error."""

    def __init__(self, error: TaskError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, slots=True)
class Opened:
    """A list that is about to be gone through."""

    items: list[Value]
    window: int


def evaluate(draft: Draft, loop: Loop, scope: dict[str, Value]) -> Opened:
    """The list of one level, and how many of its elements run at once."""
    place = f"loop over {loop.iterator}"
    try:
        found = draft.resolved(render(loop.in_, _followed(draft, loop.in_, scope)))
    except TemplateError as error:
        raise _bad(ErrorKind.TEMPLATE, "LOOP_IN", f"{place}, in: {error}") from None
    except ResultGone as gone:
        raise _bad(ErrorKind.NOT_FOUND, "LOOP_IN", f"{place}, in: {gone}") from None
    if not isinstance(found, list):
        message = f"{place}: `in` must be a list and is {type_name(found)}"
        raise _bad(ErrorKind.SCHEMA, "LOOP_IN", message)
    return Opened(found, _window(draft, loop, scope, place))


def _window(draft: Draft, loop: Loop, scope: dict[str, Value], place: str) -> int:
    if loop.mode is LoopMode.SEQUENTIAL:
        return 1
    given = loop.max_in_flight
    try:
        found = draft.resolved(render(given, _followed(draft, given, scope)))
    except TemplateError as error:
        message = f"{place}, max_in_flight: {error}"
        raise _bad(ErrorKind.TEMPLATE, "LOOP_MAX_IN_FLIGHT", message) from None
    except ResultGone as gone:
        message = f"{place}, max_in_flight: {gone}"
        raise _bad(ErrorKind.NOT_FOUND, "LOOP_MAX_IN_FLIGHT", message) from None
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        shown = found if isinstance(found, int | float) else type_name(found)
        message = f"{place}: `max_in_flight` must be a whole number from 1 and is {shown}"
        raise _bad(ErrorKind.SCHEMA, "LOOP_MAX_IN_FLIGHT", message)
    return found


def _bad(kind: ErrorKind, code: str, message: str) -> LoopError:
    return LoopError(TaskError(kind=kind, code=code, message=message, source="loop"))


def _followed(draft: Draft, tree: Value, scope: dict[str, Value]) -> dict[str, Value]:
    """The scope with the references that the templates of a tree read replaced by their values."""
    found = scope
    for path in _paths(tree):
        root = str(path[0])
        where = path if root in found else ("workload", *path)
        if where[0] in found:
            found = _follow_mapping(draft, found, where)
    return found


def _paths(tree: Value) -> list[tuple[str | int, ...]]:
    if isinstance(tree, str):
        return list(compile_template(tree).paths) if "{" in tree else []
    if isinstance(tree, dict):
        return [path for one in tree.values() for path in _paths(one)]
    if isinstance(tree, list):
        return [path for one in tree for path in _paths(one)]
    return []


def _follow_mapping(
    draft: Draft, value: dict[str, Value], path: tuple[str | int, ...]
) -> dict[str, Value]:
    key = path[0]
    if not isinstance(key, str) or key not in value:
        return value
    inner = _follow(draft, value[key], path[1:])
    return value if inner is value[key] else {**value, key: inner}


def _follow(draft: Draft, value: Value, path: tuple[str | int, ...]) -> Value:
    """A value with the references on a path replaced; what was not touched is not copied."""
    if is_ref(value):
        if path and path[0] == "selected" and "selected" in value:
            return value
        value = draft.resolved(value)
    if not path:
        return value
    key = path[0]
    if isinstance(value, dict):
        return _follow_mapping(draft, value, path)
    if isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
        inner = _follow(draft, value[key], path[1:])
        if inner is not value[key]:
            return [*value[:key], inner, *value[key:][1:]]
    return value
