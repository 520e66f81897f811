"""A document's text cut into the lines of its keys, comments with the key they belong to.

`surgery` moves such blocks and changes their indentation; nothing is ever re-dumped. Line breaks
are those of YAML, so that a block scalar keeps every one of its lines.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from noetl_core.nodes import Entry, MappingNode, Node, ScalarNode, SequenceNode

_LINE = re.compile(
    "[^\n\r\x85\u2028\u2029]*(?:\r\n|[\n\r\x85\u2028\u2029])|[^\n\r\x85\u2028\u2029]+\\Z"
)
LINE_BREAKS = "\n\r\x85\u2028\u2029"
_NOTHING = " \t" + LINE_BREAKS


class NotByText(Exception):
    """The text is written in a way that moving lines can't convert."""


def split_lines(text: str) -> list[str]:
    """Every line with its line break."""
    return _LINE.findall(text)


def is_blank(line: str) -> bool:
    return not line.strip(_NOTHING)


def is_comment(line: str) -> bool:
    return line.lstrip(" \t").startswith("#")


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


@dataclass(frozen=True, slots=True)
class Block:
    """A key of a mapping with all of its lines."""

    entry: Entry
    lead: tuple[str, ...]
    """The comments and blank lines above it."""
    lines: tuple[str, ...]

    @property
    def all_lines(self) -> tuple[str, ...]:
        return self.lead + self.lines

    def without_lead(self) -> Block:
        return replace(self, lead=())


@dataclass(frozen=True, slots=True)
class Blocks:
    """A block mapping cut into its keys, and what stands below the last."""

    blocks: tuple[Block, ...]
    indent: int
    tail: tuple[str, ...]

    def get(self, key: str) -> Block | None:
        return next((block for block in self.blocks if block.entry.key == key), None)


class Text:
    """A document's text with its lines and the ends of its values."""

    def __init__(self, text: str, root: Node) -> None:
        self.text = text
        self.lines = split_lines(text)
        self.starts = [0, *accumulate(len(line) for line in self.lines)]
        spans = sorted((node.start, node.end) for node in _written(root))
        self._span_starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def line_of(self, offset: int) -> int:
        """The index of the line that holds an offset."""
        return bisect_right(self.starts, offset) - 1

    def cut(self, mapping: MappingNode, first: int, last: int) -> Blocks:
        """The keys of a block mapping whose text is within the lines `first` to `last`."""
        entries = self._own_entries(mapping)
        indent = indent_of(self.lines[self.line_of(entries[0].key_node.start)])
        at = [self._key_line(entry, indent) for entry in entries]
        if sorted(set(at)) != at or at[0] < first:
            raise NotByText("two keys on one line")
        blocks: list[Block] = []
        lead = tuple(self.lines[first : at[0]])
        for entry, begin, end in zip(entries, at, [*at[1:], last], strict=True):
            cut = self._end_of_block(begin, end, indent)
            blocks.append(Block(entry, lead, tuple(self.lines[begin:cut])))
            lead = tuple(self.lines[cut:end])
        return Blocks(tuple(blocks), indent, lead)

    def _own_entries(self, mapping: MappingNode) -> list[Entry]:
        if mapping.flow or not mapping.entries:
            raise NotByText("a mapping in flow style")
        if any(entry.merged for entry in mapping.entries.values()):
            raise NotByText("a merge key beside keys that move")
        return sorted(mapping.entries.values(), key=lambda entry: entry.key_node.start)

    def _key_line(self, entry: Entry, indent: int) -> int:
        index = self.line_of(entry.key_node.start)
        before = self.text[self.starts[index] : entry.key_node.start]
        if before != " " * indent:
            raise NotByText("a key that does not begin its line")
        return index

    def _end_of_block(self, begin: int, end: int, indent: int) -> int:
        """Where the lines of a block end and the comments above the next key begin."""
        written = self._last_written(self.starts[begin], self.starts[end])
        cut = end
        while cut > begin + 1 and self.starts[cut - 1] >= written and self._is_between(cut - 1):
            cut -= 1
        for index in range(end - 1, cut - 1, -1):
            line = self.lines[index]
            if is_comment(line) and indent_of(line) > indent:
                return index + 1
        return cut

    def _is_between(self, index: int) -> bool:
        return is_blank(self.lines[index]) or is_comment(self.lines[index])

    def _last_written(self, start: int, end: int) -> int:
        """Up to where values that begin in a range reach; comments inside them are no comments."""
        low = bisect_right(self._span_starts, start - 1)
        high = bisect_right(self._span_starts, end - 1)
        return max((e for e in self._ends[low:high] if e <= end), default=start)


def _written(root: Node) -> Iterator[Node]:
    """Every scalar and flow collection of a tree, each once however often it is aliased."""
    seen: set[int] = set()
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        match node:
            case ScalarNode():
                yield node
            case SequenceNode():
                if node.flow:
                    yield node
                stack.extend(node.items)
            case MappingNode():
                if node.flow:
                    yield node
                for entry in node.entries.values():
                    stack += [entry.key_node, entry.node]


def scalar_spans(root: Node) -> list[tuple[int, int]]:
    """Where the texts of scalars stand, in order."""
    return sorted((n.start, n.end) for n in _written(root) if isinstance(n, ScalarNode))


def comments_of(text: str, root: Node) -> list[str]:
    """Every comment of a document, without its `#`: what a conversion must keep."""
    spans = scalar_spans(root)
    found: list[str] = []
    position = 0
    for start, end in [*spans, (len(text), len(text))]:
        if start >= position:
            found += _comments_in(text, position, start)
        position = max(position, end)
    return found


_COMMENT = re.compile("(?:(?<=[ \t\n\r\x85\u2028\u2029])|\\A)#([^\n\r\x85\u2028\u2029]*)")


def _comments_in(text: str, start: int, end: int) -> list[str]:
    return [match[1].strip() for match in _COMMENT.finditer(text, start, end)]


def shifted(lines: Sequence[str], by: int) -> tuple[str, ...]:
    """Lines indented further, or less far where `by` is negative. Empty lines stay empty."""
    if by >= 0:
        return tuple(line if line[:1] in ("", "\n", "\r") else " " * by + line for line in lines)
    return tuple(line[min(-by, indent_of(line)) :] for line in lines)
