"""What is not there: a value of its own while a template is evaluated, never part of a result.

Reading a path never fails; it gives an `Undefined` that remembers what was looked for. In a value
(strict) whoever uses it raises `undefined_error`; in a `when` it is false-like and chains (B3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from noetl_core.templates.errors import TemplateError, nearest, path_text, shortened
from noetl_core.values import type_name

if TYPE_CHECKING:
    from noetl_core.templates.frame import Frame
    from noetl_core.values import Value


class Undefined:
    """A missing value: the path up to the first key that is not there, and where it was sought."""

    __slots__ = ("holder", "path", "what")

    def __init__(
        self,
        path: tuple[str | int, ...],
        holder: Value | Mapping[str, Value] = None,
        what: str = "",
    ) -> None:
        self.path = path
        self.holder = holder
        self.what = what or path_text(path)


Operand: TypeAlias = "Value | Undefined"
Eval: TypeAlias = "Callable[[Frame], Operand]"


def undefined_error(found: Undefined) -> TemplateError:
    """The error of using a missing value where one is needed."""
    missing = shortened(found.what, 300)
    return TemplateError(
        f"{missing} is not defined",
        code=TemplateError.UNDEFINED,
        missing=missing,
        hint=_hint(found),
    )


def _hint(found: Undefined) -> str:
    if not found.path:
        return ""
    *parents, key = found.path
    holder = found.holder
    if isinstance(holder, Mapping) and isinstance(key, str):
        near = nearest(key, holder if parents else _names(holder))
        return f"did you mean {path_text((*parents, near))}?" if near else ""
    if not parents:
        return ""
    if isinstance(holder, list) and isinstance(key, int):
        return f"{path_text(parents)} has {len(holder)} items"
    return f"{path_text(parents)} is {type_name(holder)}"


def _names(scope: Mapping[str, Value]) -> Iterator[str]:
    """What a bare name can mean: a scope, or an entry of the workload (B4)."""
    yield from scope
    workload = scope.get("workload")
    if isinstance(workload, dict):
        yield from workload


def read_path(root: str, keys: tuple[str | int, ...]) -> Eval:
    """A function that reads `root.key.key…`; a name outside the scope reads `workload` (B4)."""

    def read(frame: Frame) -> Operand:
        scope = frame.scope
        try:
            value = scope[root]
            for key in keys:
                # Plain data only: a mapping takes names, a list or text takes numbers, and
                # anything else raises one of the three.
                value = value[key]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return _walk(frame, root, keys)
        return value

    return read


def _walk(frame: Frame, root: str, keys: tuple[str | int, ...]) -> Operand:
    """The slow way, for paths that are not there as written."""
    scope = frame.scope
    value: Operand
    if root in scope:
        value = scope[root]
    else:
        workload = scope.get("workload")
        if not isinstance(workload, dict) or root not in workload:
            return Undefined((root,), scope)
        value = workload[root]
    for depth, key in enumerate(keys, 1):
        value = item(value, key, (root, *keys[:depth]))
    return value


def item(value: Operand, key: Operand, path: tuple[str | int, ...]) -> Operand:
    """One entry of a value by item, never by attribute (B5); `path` names it in messages."""
    if isinstance(value, dict):
        if isinstance(key, str) and key in value:
            return value[key]
    elif isinstance(value, list | str):
        if isinstance(key, int) and not isinstance(key, bool) and -len(value) <= key < len(value):
            return value[key]
    elif isinstance(value, Undefined):
        return value
    return Undefined(path, value)
