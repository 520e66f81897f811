"""What every shape is: how a value is read, written back, and described in a JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar, cast

from noetl_core.nodes import Node, kind_of
from noetl_core.reading import Cursor
from noetl_core.values import Value

if TYPE_CHECKING:
    from noetl_core.shape.record import Definitions

T = TypeVar("T")
Schema = dict[str, Value]


class Shape(Generic[T]):
    """One kind of value. `blank` stands in for a wrong one, so that reading goes on."""

    expected: str = "a value"
    code: str = "A2.type"

    def blank(self) -> T:
        raise NotImplementedError

    def read(self, node: Node, at: Cursor) -> T:
        raise NotImplementedError

    def dump(self, value: T) -> Value:
        return cast(Value, value)

    def schema(self, defs: Definitions) -> Schema:
        raise NotImplementedError

    def wrong(self, node: Node, at: Cursor, hint: str | None = None) -> T:
        """Report a value of the wrong type and go on with a blank."""
        at.error(self.code, f"expected {self.expected}, got {kind_of(node)}", node, hint)
        return self.blank()
