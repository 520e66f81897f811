"""A plain `y` or `n` is text to us and a boolean to `kubectl apply`: in a Kubernetes object it
stands in quotes, so that both read the same (rule K2)."""

from __future__ import annotations

from collections.abc import Iterator

from noetl_core.nodes import MappingNode, Node, ScalarNode, SequenceNode
from noetl_core.scalars import LETTERS
from noetl_core.source import parse


def quoted_letters(text: str) -> str:
    """The text of one document with quotes around its plain `y`, `Y`, `n` and `N`."""
    root = parse(text)[0].root
    # From its end, since an anchor may stand before it.
    places = {node.end - 1 for node in _plain(root) if node.value in LETTERS} if root else set()
    for at in sorted(places, reverse=True):
        text = f'{text[:at]}"{text[at]}"{text[at + 1 :]}'
    return text


def _plain(node: Node) -> Iterator[ScalarNode]:
    """Every plain scalar, keys too."""
    match node:
        case ScalarNode(plain=True):
            yield node
        case SequenceNode():
            for item in node.items:
                yield from _plain(item)
        case MappingNode():
            for entry in node.entries.values():
                yield from _plain(entry.key_node)
                yield from _plain(entry.node)
