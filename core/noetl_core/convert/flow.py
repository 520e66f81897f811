"""`metadata: {name: x, path: y}` opened into lines, so that single keys of it can move.

Only the mappings whose keys move are opened: `metadata`, its annotations, and `spec.metadata`.
"""

from __future__ import annotations

from noetl_core.convert.lines import NotByText, Text, indent_of
from noetl_core.nodes import MappingNode, Node, ScalarNode
from noetl_core.source import parse

_OPENED = (("metadata",), ("spec", "metadata"), ("metadata", "annotations"))


def unflowed(text: str, root: MappingNode) -> tuple[str, MappingNode]:
    """The text with those mappings in block style, and its root."""
    for path in _OPENED:
        parent, node = _at(root, path)
        if parent is not None and isinstance(node, MappingNode) and node.flow and not parent.flow:
            text = _opened(text, root, parent, path[-1], node)
            again = parse(text)[0].root
            if not isinstance(again, MappingNode):
                raise NotByText("a mapping that can't be opened")
            root = again
    return text, root


def _at(root: MappingNode, path: tuple[str, ...]) -> tuple[MappingNode | None, Node | None]:
    parent: MappingNode | None = None
    node: Node | None = root
    for key in path:
        if not isinstance(node, MappingNode):
            return None, None
        parent, node = node, node.get(key)
    return parent, node


def _opened(text: str, root: MappingNode, parent: MappingNode, key: str, node: MappingNode) -> str:
    lines = Text(text, root)
    key_node = parent.entries[key].key_node
    begin, end = lines.line_of(key_node.start), lines.line_of(node.end - 1)
    before = text[lines.starts[begin] : node.start]
    behind = text[node.end : lines.starts[end + 1]]
    comment = behind.strip()
    if node.start < key_node.end or not node.entries or (comment and comment[:1] != "#"):
        raise NotByText("an aliased or empty mapping")
    indent = indent_of(lines.lines[begin])
    step = 2 if indent == 0 else max(2, indent)
    inside = _entries(text, node, " " * (indent + step))
    newline = "\r\n" if "\r\n" in text else "\n"
    head = before.rstrip() + (f" {comment}" if comment else "") + newline
    # The line break behind the mapping comes back after its last key.
    tail = behind[len(behind.rstrip("\r\n")) :]
    opened = head + newline.join(inside) + tail
    return text[: lines.starts[begin]] + opened + text[lines.starts[end + 1] :]


def _entries(text: str, node: MappingNode, indent: str) -> list[str]:
    made: list[str] = []
    position = node.start + 1
    for entry in node.entries.values():
        key, value = entry.key_node, entry.node
        spans = text[key.start : key.end], text[value.start : value.end]
        between = text[position : key.start] + text[key.end : value.start]
        if (
            entry.merged
            or value.start < key.end
            or "\n" in "".join(spans)
            or between.strip(" \r\n,:")
        ):
            raise NotByText("a flow mapping with comments or aliases")
        is_null = isinstance(value, ScalarNode) and value.value is None
        made.append(f"{indent}{spans[0]}:" + ("" if is_null else f" {spans[1]}"))
        position = value.end
    if text[position : node.end].strip(" \r\n,}"):
        raise NotByText("a flow mapping with comments")
    return made
