"""References on the paths that templates read, replaced by what they stand for (rule H2).

Before something is rendered, its paths are followed in the scope. Where one meets a reference, the
value behind it is fetched and put in its place, in a copy: the scopes themselves stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

from noetl_core.outcomes import TaskError
from noetl_core.pipeline.requests import Answer, Fetch, Request
from noetl_core.results import Ref, is_ref
from noetl_core.templates.compiler import Path
from noetl_core.templates.limits import LIMITS
from noetl_core.values import Value

CACHE_BYTES = 32 * 1024 * 1024
"""How much fetched content one lease keeps at hand."""

HOLDERS = frozenset({"ctx", "args", "iter"})
"""The scopes that the control plane fills, so that references may stand in them."""

Names: TypeAlias = dict[str, Value]


class Unfetched(Exception):
    """A stored result that a template reads cannot be had; `error` says why."""

    def __init__(self, error: TaskError) -> None:
        super().__init__(error.message)
        self.error = error


class RefCache:
    """What was fetched lately, by key: one for all that a lease renders."""

    __slots__ = ("_held", "_size")

    def __init__(self) -> None:
        self._held: dict[str, tuple[Value, int]] = {}
        self._size = 0

    def get(self, ref: Ref) -> tuple[Value, int] | None:
        """The value and its size."""
        return self._held.get(str(ref["key"]))

    def put(self, ref: Ref, value: Value) -> None:
        key, size = str(ref["key"]), ref.get("size")
        cost = size if isinstance(size, int) else 0
        if cost > CACHE_BYTES or key in self._held:
            return
        self._held[key] = (value, cost)
        self._size += cost
        while self._size > CACHE_BYTES:
            oldest = next(iter(self._held))
            self._size -= self._held.pop(oldest)[1]


@dataclass(slots=True)
class _Found:
    """One replacement of references: what is at hand, what is missing."""

    cache: RefCache
    values: dict[str, Value] = field(default_factory=dict)
    missing: dict[str, Ref] = field(default_factory=dict)
    selected: dict[str, Value] = field(default_factory=dict)
    """The chosen fields of references that a path looks at by `selected`."""

    def value(self, ref: Ref) -> Value:
        """What a reference stands for; the reference itself where that is not at hand yet."""
        key = str(ref["key"])
        if key not in self.values:
            cached = self.cache.get(ref)
            if cached is None:
                self.missing[key] = ref
                return ref
            self.values[key] = cached[0]
        value = self.values[key]
        if key in self.selected and isinstance(value, dict) and "selected" not in value:
            return {**value, "selected": self.selected[key]}
        return value


def resolved(
    scope: Names,
    paths: Iterable[Path],
    holders: Collection[str],
    cache: RefCache,
    *,
    below: bool = True,
) -> Generator[Request, Answer, Names]:
    """The scope with no reference left on any of the paths; raises `Unfetched`.

    `holders` names the scopes in which references may stand, also inside of what a path ends at
    (unless `below` is false). In `workload` they are followed on the path only; all others hold
    full values, and what looks like a reference there is somebody's data.
    """
    found = _Found(cache)
    ways = [path for path in paths if path[0] in holders or _is_input(path, scope)]
    while True:
        view = scope
        for path in ways:
            view = _on_path(view, path, below and path[0] in holders, found)
        if not found.missing:
            return view
        for key, ref in found.missing.items():
            answer = yield Fetch(ref)
            if isinstance(answer, TaskError):
                raise Unfetched(answer)
            value: Value = answer  # type: ignore[assignment]  # what `Fetch` is answered with
            found.values[key] = value
            cache.put(ref, value)
        found.missing = {}


def _is_input(path: Path, scope: Names) -> bool:
    """It reads the workload, by its name or by a bare one (rule B4)."""
    return path[0] == "workload" or path[0] not in scope


def _is_stored(value: dict[str, Value] | list[Value]) -> TypeGuard[Ref]:
    """A reference as the engine makes them: data that only resembles one is left alone."""
    return is_ref(value)


def _on_path(scope: Names, path: Path, deep: bool, found: _Found) -> Names:
    root = str(path[0])
    if root in scope:
        old = scope[root]
        new = _follow(old, path, 1, deep, found)
        return scope if new is old else {**scope, root: new}
    workload = scope.get("workload")
    if not isinstance(workload, dict) or root not in workload:
        return scope
    new = _follow(workload[root], path, 1, deep, found)
    return scope if new is workload[root] else {**scope, root: new}


def _follow(value: Value, path: Path, at: int, deep: bool, found: _Found) -> Value:
    """The value with the references on the rest of the path replaced; itself where none is."""
    if not isinstance(value, dict | list):
        return value
    if _is_stored(value):
        if at < len(path) and path[at] == "selected" and "selected" in value:
            found.selected[str(value["key"])] = value["selected"]
            return value
        behind = found.value(value)
        return value if behind is value else _follow(behind, path, at, deep, found)
    if at == len(path):
        return _all_below(value, found, 0) if deep else value
    key = path[at]
    if isinstance(value, dict):
        if not isinstance(key, str) or key not in value:
            return value
        old = value[key]
        new = _follow(old, path, at + 1, deep, found)
        return value if new is old else {**value, key: new}
    if not isinstance(key, int) or not -len(value) <= key < len(value):
        return value
    old = value[key]
    new = _follow(old, path, at + 1, deep, found)
    if new is old:
        return value
    place = key % len(value)
    return [*value[:place], new, *value[place + 1 :]]


def _all_below(value: Value, found: _Found, depth: int) -> Value:
    """The value with every reference anywhere in it replaced; itself where there is none."""
    if not isinstance(value, dict | list) or depth > LIMITS.data_depth:
        return value
    if _is_stored(value):
        behind = found.value(value)
        return value if behind is value else _all_below(behind, found, depth + 1)
    if isinstance(value, dict):
        changed = {
            key: new
            for key, old in value.items()
            if (new := _all_below(old, found, depth + 1)) is not old
        }
        return {**value, **changed} if changed else value
    items = [_all_below(old, found, depth + 1) for old in value]
    same = all(new is old for new, old in zip(items, value, strict=True))
    return value if same else items
