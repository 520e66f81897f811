"""Shapes of single values: text, names, numbers, booleans, words of closed sets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar, cast

from noetl_core.nodes import Node, ScalarNode
from noetl_core.problems import nearest_of_set, shortened
from noetl_core.reading import Cursor
from noetl_core.scalars import resolve
from noetl_core.shape.base import Schema, Shape
from noetl_core.values import Value

if TYPE_CHECKING:
    from noetl_core.shape.record import Definitions

E = TypeVar("E", bound=StrEnum)

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}", re.ASCII)
KUBERNETES_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Text(Shape[str]):
    """Text that is never a template (rule K6)."""

    expected = "text"

    def __init__(
        self, pattern: re.Pattern[str] | None = None, code: str = "K1.name", rule: str = ""
    ) -> None:
        self._pattern, self._code, self._rule = pattern, code, rule

    def blank(self) -> str:
        return ""

    def read(self, node: Node, at: Cursor) -> str:
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            hint = None
            if isinstance(node, ScalarNode) and node.value is not None:
                hint = f'write it in quotes: "{str(node.value).lower()}"'
            return self.wrong(node, at, hint)
        if self._pattern and not self._pattern.fullmatch(node.value):
            at.error(self._code, f"`{shortened(node.value)}` is not {self._rule}", node)
        return node.value

    def schema(self, defs: Definitions) -> Schema:
        schema: Schema = {"type": "string"}
        if self._pattern:
            schema["pattern"] = f"^{self._pattern.pattern}$"
        return schema


def name_text() -> Text:
    """A step name or a label (rule K1)."""
    rule = "a name: a letter or `_`, then letters, digits, `_` and `-`, at most 63 characters"
    return Text(NAME, "K1.name", rule)


class LooseText(Text):
    """Text, or a number meant as text (`version: 1.0`)."""

    def read(self, node: Node, at: Cursor) -> str:
        if isinstance(node, ScalarNode) and type(node.value) in (int, float):
            written = at.reading.text[node.start : node.end]
            return written if _same_number(written, node.value) else str(node.value)
        return super().read(node, at)

    def schema(self, defs: Definitions) -> Schema:
        return {"type": ["string", "number"]}


def _same_number(written: str, value: object) -> bool:
    """Whether a piece of the file is the number and nothing else: `1.10` is not `1.1` to an
    author."""
    return len(written) < 40 and resolve(written)[0] == value


class Number(Shape[float]):
    """A number of at least `least`."""

    expected = "a number"

    def __init__(self, least: float = 0, *, above: bool = False) -> None:
        self._least, self._above = least, above

    def blank(self) -> float:
        return 1

    def read(self, node: Node, at: Cursor) -> float:
        if not isinstance(node, ScalarNode) or type(node.value) not in (int, float):
            return self.wrong(node, at)
        value = cast(float, node.value)
        return check_least(value, self._least, self._above, node, at)

    def schema(self, defs: Definitions) -> Schema:
        return {"type": "number", "exclusiveMinimum" if self._above else "minimum": self._least}


def check_least(value: float, least: float, above: bool, node: Node, at: Cursor) -> float:
    if value < least or (above and value == least):
        relation = "more than" if above else "at least"
        at.error("A2.range", f"expected {relation} {least}, got {value}", node)
    return value


class Integer(Shape[int]):
    """A whole number of at least `least`."""

    expected = "a whole number"

    def __init__(self, least: int = 0) -> None:
        self._least = least

    def blank(self) -> int:
        return max(1, self._least)

    def read(self, node: Node, at: Cursor) -> int:
        if not isinstance(node, ScalarNode) or type(node.value) is not int:
            return self.wrong(node, at)
        check_least(node.value, self._least, False, node, at)
        return node.value

    def schema(self, defs: Definitions) -> Schema:
        return {"type": "integer", "minimum": self._least}


class Boolean(Shape[bool]):
    """`true` or `false`."""

    expected = "true or false"

    def blank(self) -> bool:
        return False

    def read(self, node: Node, at: Cursor) -> bool:
        if isinstance(node, ScalarNode) and isinstance(node.value, bool):
            return node.value
        return self.wrong(node, at)

    def schema(self, defs: Definitions) -> Schema:
        return {"type": "boolean"}


class Choice(Shape[E]):
    """A word of a closed set (rule K3)."""

    def __init__(self, words: type[E], code: str, aliases: Mapping[str, E] | None = None) -> None:
        self._words, self.code, self._aliases = words, code, aliases or {}
        self.expected = "one of " + ", ".join(f"`{w.value}`" for w in words)

    def blank(self) -> E:
        return next(iter(self._words))

    def read(self, node: Node, at: Cursor) -> E:
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            return self.wrong(node, at)
        if node.value in self._aliases:
            return self._aliases[node.value]
        try:
            return self._words(node.value)
        except ValueError:
            close = nearest_of_set(node.value, [w.value for w in self._words])
            hint = f"did you mean `{close}`?" if close else None
            at.error(
                self.code, f"expected {self.expected}, got `{shortened(node.value)}`", node, hint
            )
            return self.blank()

    def dump(self, value: E) -> Value:
        return value.value

    def schema(self, defs: Definitions) -> Schema:
        words: list[Value] = [word.value for word in self._words]
        return {"type": "string", "enum": [*words, *self._aliases]}
