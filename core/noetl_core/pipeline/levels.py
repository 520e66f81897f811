"""The list of one loop level and how many of its iterations run at once (rules E1, E2, K18)."""

from __future__ import annotations

from collections.abc import Generator

from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.pipeline.plan import CompiledLevel
from noetl_core.pipeline.references import HOLDERS, Unfetched, resolved
from noetl_core.pipeline.requests import Answer, Request
from noetl_core.pipeline.scopes import RunScope
from noetl_core.pipeline.trees import Tree
from noetl_core.templates import TemplateError
from noetl_core.values import Value, type_name


class BadLoop(Exception):
    """A loop that cannot go on: this fails the step, whatever its failure mode."""

    def __init__(self, error: TaskError, path: str) -> None:
        super().__init__(error.message)
        self.error = error
        self.path = path


def given_items(
    items: Value, iterator: str, run: RunScope, path: str
) -> Generator[Request, Answer, list[Value]]:
    """The elements that the control plane found: data, inline or behind a reference."""
    try:
        view = yield from resolved(
            {"items": items}, (("items",),), ("items",), run.cache, below=False
        )
    except Unfetched as unfetched:
        raise BadLoop(unfetched.error, path) from None
    return _as_list(view["items"], iterator, path)


def items_of(
    level: CompiledLevel, run: RunScope, here: dict[str, Value], path: str
) -> Generator[Request, Answer, list[Value]]:
    """The elements that a level goes through inside the iteration `here`."""
    what = f"loop over {level.iterator}, in"
    found = yield from _value(level.items, run, here, path, what, "LOOP_IN")
    return _as_list(found, level.iterator, path)


def _as_list(items: Value, iterator: str, path: str) -> list[Value]:
    if not isinstance(items, list):
        message = f"loop over {iterator}: `in` must be a list and is {type_name(items)}"
        raise BadLoop(_error(ErrorKind.SCHEMA, "LOOP_IN", message + _inside(path)), path)
    return items


def window_of(
    level: CompiledLevel, run: RunScope, here: dict[str, Value], path: str
) -> Generator[Request, Answer, int]:
    """How many iterations of a level may run at once."""
    if level.window is None:
        return 1
    code = "LOOP_MAX_IN_FLIGHT"
    what = f"loop over {level.iterator}, max_in_flight"
    found = yield from _value(level.window, run, here, path, what, code)
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        given = found if isinstance(found, int | float) else type_name(found)
        message = f"{what}: it must be a whole number from 1 and is {given}{_inside(path)}"
        raise BadLoop(_error(ErrorKind.SCHEMA, code, message), path)
    return found


def too_many(limit: int, path: str) -> BadLoop:
    message = f"the loop has more than {limit:,} iterations (limits.max_iterations)"
    return BadLoop(_error(ErrorKind.LIMIT, "MAX_ITERATIONS", message), path)


def _value(
    tree: Tree, run: RunScope, here: dict[str, Value], path: str, what: str, code: str
) -> Generator[Request, Answer, Value]:
    scope = run.names() | {"iter": here}
    try:
        view = yield from resolved(scope, tree.paths, HOLDERS, run.cache, below=False)
        return tree.render(view)
    except TemplateError as error:
        message = f"{what}: {error}{_inside(path)}"
        raise BadLoop(_error(ErrorKind.TEMPLATE, code, message), path) from None
    except Unfetched as unfetched:
        raise BadLoop(unfetched.error, path) from None


def _inside(path: str) -> str:
    return f" (in iteration {path})" if path else ""


def _error(kind: ErrorKind, code: str, message: str) -> TaskError:
    return TaskError(kind=kind, code=code, message=message, source="loop")
