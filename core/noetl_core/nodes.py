"""The tree of an author's file: values that know where they stand.

`compose` builds it, `source` hands it out, the loader reads it and `convert` moves its text.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from noetl_core.values import Value


@dataclass(slots=True, eq=False)
class Node:
    """A value and its place: 1-based line and column, and the span of its text."""

    line: int
    column: int
    start: int
    end: int
    size: int = 1
    """How many nodes it is when written out."""
    height: int = 0
    """How deep it nests when written out."""


@dataclass(slots=True, eq=False)
class ScalarNode(Node):
    value: bool | int | float | str | None = None
    plain: bool = False


@dataclass(slots=True, eq=False)
class SequenceNode(Node):
    items: list[Node] = field(default_factory=list)
    flow: bool = False


@dataclass(slots=True, eq=False)
class Entry:
    """A key of a mapping, with its place, and its value."""

    key: str
    key_node: ScalarNode
    node: Node
    merged: bool = False
    written: str = ""
    """The key as the author wrote it, where that is not what it means (`on` means `true`)."""


@dataclass(slots=True, eq=False)
class MappingNode(Node):
    entries: dict[str, Entry] = field(default_factory=dict)
    flow: bool = False

    def get(self, key: str) -> Node | None:
        entry = self.entries.get(key)
        return entry.node if entry else None


def kind_of(node: Node) -> str:
    """A value's type in an author's words."""
    match node:
        case MappingNode():
            return "a mapping"
        case SequenceNode():
            return "a list"
        case ScalarNode(value=None):
            return "nothing (null)"
        case ScalarNode(value=bool()):
            return "a boolean"
        case ScalarNode(value=int() | float()):
            return "a number"
        case _:
            return "text"


def first_values(node: Node, most: int = 2000) -> Value:
    """The beginning of a node as JSON data, for a message: a hostile one may be large."""
    return _first(node, [most])


def _first(node: Node, left: list[int]) -> Value:
    left[0] -= 1
    if isinstance(node, ScalarNode):
        return node.value
    if isinstance(node, MappingNode):
        shown: dict[str, Value] = {}
        for key, entry in node.entries.items():
            if left[0] > 0:
                shown[key] = _first(entry.node, left)
        return shown
    if isinstance(node, SequenceNode):
        return [_first(item, left) for item in node.items[: max(left[0], 0)] if left[0] > 0]
    raise TypeError(f"not a node of a document: {node!r}")


def plain_value(node: Node) -> Value:
    """The node as JSON data."""
    if isinstance(node, ScalarNode):
        return node.value
    if isinstance(node, MappingNode):
        return {key: plain_value(entry.node) for key, entry in node.entries.items()}
    if isinstance(node, SequenceNode):
        return [plain_value(item) for item in node.items]
    raise TypeError(f"not a node of a document: {node!r}")


def nodes_of(value: Value) -> Node:
    """Data that was never a text, as a tree without places: a stored playbook, an API object."""
    match value:
        case dict():
            entries = {
                key: Entry(key, ScalarNode(1, 1, 0, 0, value=key), nodes_of(one))
                for key, one in value.items()
            }
            return MappingNode(1, 1, 0, 0, entries=entries)
        case list():
            return SequenceNode(1, 1, 0, 0, items=[nodes_of(one) for one in value])
        case _:
            return ScalarNode(1, 1, 0, 0, value=value)
