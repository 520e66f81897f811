"""Shapes of data: free values, templates, conditions, lists and mappings of one shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from noetl_core.nodes import MappingNode, Node, ScalarNode, SequenceNode, plain_value
from noetl_core.reading import Cursor
from noetl_core.scopes import Scope
from noetl_core.shape.base import Schema, Shape
from noetl_core.shape.scalar import Boolean, Integer, Number, Text
from noetl_core.values import Value

if TYPE_CHECKING:
    from noetl_core.shape.record import Definitions

T = TypeVar("T")


class Data(Shape[Value]):
    """Any value. With a scope, every text in it is a template of that scope; without, none is."""

    def __init__(self, scope: Scope | None = None) -> None:
        self._scope = scope

    def blank(self) -> Value:
        return None

    def read(self, node: Node, at: Cursor) -> Value:
        if self._scope is not None:
            at.templates_in(node, self._scope)
        return plain_value(node)

    def schema(self, defs: Definitions) -> Schema:
        return {}


class DataMap(Shape[dict[str, Value]]):
    """A mapping of free keys to data (or templates, with a scope)."""

    expected = "a mapping"

    def __init__(self, scope: Scope | None = None) -> None:
        self._scope = scope

    def blank(self) -> dict[str, Value]:
        return {}

    def read(self, node: Node, at: Cursor) -> dict[str, Value]:
        if not isinstance(node, MappingNode):
            return self.wrong(node, at)
        if self._scope is not None:
            at.templates_in(node, self._scope)
        return cast(dict[str, Value], plain_value(node))

    def schema(self, defs: Definitions) -> Schema:
        return {"type": "object", "additionalProperties": True}


AnyShape: TypeAlias = (
    "Shape[str] | Shape[bool] | Shape[int] | Shape[float]"
    " | Shape[list[Value]] | Shape[dict[str, Value]]"
)


class Templated(Shape[Value]):
    """A value of the inner shape, or a template that yields one when the task runs."""

    def __init__(self, scope: Scope, *inner: AnyShape) -> None:
        self._scope, self._inner = scope, inner
        self.expected = " or ".join([*(shape.expected for shape in inner), "a template"])

    def blank(self) -> Value:
        return None

    def read(self, node: Node, at: Cursor) -> Value:
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            if at.template(node, node.value, self._scope).is_constant and not self._takes_text():
                self.wrong(node, at)
        elif (shape := next((s for s in self._inner if _fits(s, node)), None)) is None:
            self.wrong(node, at)
        elif isinstance(node, ScalarNode):
            shape.read(node, at)
        else:
            at.templates_in(node, self._scope)
        return plain_value(node)

    def _takes_text(self) -> bool:
        return any(isinstance(shape, Text) for shape in self._inner)

    def schema(self, defs: Definitions) -> Schema:
        texts: Schema = (
            {"type": "string"} if self._takes_text() else {"type": "string", "pattern": r"\{\{"}
        )
        others = [s.schema(defs) for s in self._inner if not isinstance(s, Text)]
        return {"anyOf": [*others, texts]} if others else texts


def _fits(shape: AnyShape, node: Node) -> bool:
    match shape:
        case Boolean():
            return isinstance(node, ScalarNode) and isinstance(node.value, bool)
        case Integer():
            return isinstance(node, ScalarNode) and type(node.value) is int
        case Number():
            return isinstance(node, ScalarNode) and type(node.value) in (int, float)
        case DataMap():
            return isinstance(node, MappingNode)
        case DataList():
            return isinstance(node, SequenceNode)
        case _:
            return False


class DataList(Shape[list[Value]]):
    """A list of data (or templates, with a scope)."""

    expected = "a list"

    def __init__(self, scope: Scope | None = None) -> None:
        self._scope = scope

    def blank(self) -> list[Value]:
        return []

    def read(self, node: Node, at: Cursor) -> list[Value]:
        if not isinstance(node, SequenceNode):
            return self.wrong(node, at)
        if self._scope is not None:
            at.templates_in(node, self._scope)
        return cast(list[Value], plain_value(node))

    def schema(self, defs: Definitions) -> Schema:
        return {"type": "array"}


class Guard(Shape[str | bool]):
    """A `when`: a boolean or one `{{ expression }}` (rule K7)."""

    expected = 'a boolean or one "{{ expression }}"'
    code = "K7.when"

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def blank(self) -> str | bool:
        return True

    def read(self, node: Node, at: Cursor) -> str | bool:
        if isinstance(node, ScalarNode) and isinstance(node.value, bool):
            return node.value
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            at.guard(node, node.value, self._scope)
            return node.value
        return self.wrong(node, at)

    def schema(self, defs: Definitions) -> Schema:
        return {"type": ["string", "boolean"]}


class ListOf(Shape[tuple[T, ...]]):
    """A list of one shape."""

    expected = "a list"

    def __init__(self, item: Shape[T], *, least: int = 0) -> None:
        self._item, self._least = item, least

    def blank(self) -> tuple[T, ...]:
        return ()

    def read(self, node: Node, at: Cursor) -> tuple[T, ...]:
        if not isinstance(node, SequenceNode):
            return self.wrong(node, at)
        if len(node.items) < self._least:
            at.error("A1.missing", "the list is empty: at least one entry is needed", node)
        return tuple(self._item.read(item, at.child(i, item)) for i, item in enumerate(node.items))

    def dump(self, value: tuple[T, ...]) -> Value:
        return [self._item.dump(item) for item in value]

    def schema(self, defs: Definitions) -> Schema:
        schema: Schema = {"type": "array", "items": self._item.schema(defs)}
        return schema | {"minItems": self._least} if self._least else schema


class MapOf(Shape[dict[str, T]]):
    """A mapping of free keys to one shape."""

    expected = "a mapping"

    def __init__(self, item: Shape[T]) -> None:
        self._item = item

    def blank(self) -> dict[str, T]:
        return {}

    def read(self, node: Node, at: Cursor) -> dict[str, T]:
        if not isinstance(node, MappingNode):
            return self.wrong(node, at)
        return {
            key: self._item.read(entry.node, at.child(key, entry.node))
            for key, entry in node.entries.items()
        }

    def dump(self, value: dict[str, T]) -> Value:
        return {key: self._item.dump(item) for key, item in value.items()}

    def schema(self, defs: Definitions) -> Schema:
        return {"type": "object", "additionalProperties": self._item.schema(defs)}


class Placeholder(Shape[Value]):
    """A key the v10 documents reserve: accepted, kept, without effect (rule K5)."""

    def blank(self) -> Value:
        return None

    def read(self, node: Node, at: Cursor) -> Value:
        key = at.written[-1]
        at.warning("K5.no-effect", f"`{key}` is reserved and has no effect", node, "remove it")
        return plain_value(node)

    def schema(self, defs: Definitions) -> Schema:
        return {}
