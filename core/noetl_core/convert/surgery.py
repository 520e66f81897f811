"""Document ↔ Kubernetes object by moving lines: comments, order and quotes stay as written.

What can't be done that way raises `NotByText`; `convert` then writes the data anew. The result is
verified there too, so this room may trust the shape of ordinary files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from noetl_core.convert.lines import (
    Block,
    Blocks,
    NotByText,
    Text,
    indent_of,
    is_blank,
    is_comment,
    shifted,
)
from noetl_core.load import API_VERSION, KIND, NAME_ANNOTATION, object_name
from noetl_core.model import Metadata
from noetl_core.nodes import MappingNode, ScalarNode
from noetl_core.scalars import BadScalar, resolve

HEADER = {"apiVersion": API_VERSION, "kind": KIND}
_KEEP = re.compile(r"[|>][1-9]?\+[1-9]?\s*(#.*)?$")
MOVED = ("path", "version", "description")
"""The keys of `metadata` that stand under `spec.metadata` in a Kubernetes object (rule A1)."""


def to_resource(text: str, root: MappingNode, name: str) -> str:
    """A document's text as a Kubernetes object."""
    return _Resource(text, root).written(name)


def to_document(text: str, root: MappingNode, name: str) -> str:
    """A Kubernetes object's text as a document."""
    return _Document(text, root).written(name)


class _Surgery:
    """What both ways share: the root cut into keys, and its metadata."""

    def __init__(self, text: str, root: MappingNode) -> None:
        self.text = Text(text, root)
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.root = self.text.cut(root, 0, len(self.text.lines))
        if self.root.indent:
            raise NotByText("the whole document is indented")
        found = self.root.get("metadata")
        if found is None:
            raise NotByText("no metadata")
        self.metadata = found
        self.inner = self.cut_inside(found)

    def line(self, text: str) -> str:
        return text + self.newline

    def whole(self, lines: Sequence[str]) -> str:
        """The lines and what stood below the last key."""
        return "".join([*lines, *self.root.tail])

    def cut_inside(self, block: Block) -> Blocks:
        """The keys of a section's own block mapping."""
        node = block.entry.node
        key_line = self.text.line_of(block.entry.key_node.start)
        if not isinstance(node, MappingNode) or node.start < block.entry.key_node.end:
            raise NotByText("a section that is an alias or no mapping")
        rest = block.lines[0].rstrip()[len(" " * indent_of(block.lines[0])) :]
        after = rest[rest.find(":") + 1 :].strip()
        if after and not after.startswith("#"):
            raise NotByText("a section with an anchor or in flow style")
        return self.text.cut(node, key_line + 1, key_line + len(block.lines))

    def renamed(self, block: Block, name: str) -> Block:
        """The `name` of metadata with another value, the rest of its line as it is."""
        node = block.entry.node
        start = self.text.starts[self.text.line_of(block.entry.key_node.start)]
        inside = "".join(block.lines)
        if not isinstance(node, ScalarNode) or node.start < block.entry.key_node.end:
            raise NotByText("a name that is an alias")
        begin, end = node.start - start, node.end - start
        # The end of a block scalar is behind its last line break.
        behind = self.newline if inside[begin] in "|>" else ""
        return replace(block, lines=(inside[:begin] + scalar_text(name) + behind + inside[end:],))


def scalar_text(text: str) -> str:
    """A text as a plain scalar where it stays that text, else in double quotes."""
    try:
        plain = resolve(text)[0] == text
    except BadScalar:
        plain = False
    safe = all(c.isalnum() or c in "_./ -" for c in text) and text == text.strip()
    if plain and safe and text[:1].isalnum():
        return text
    return json.dumps(text, ensure_ascii=False)


class _Resource(_Surgery):
    def written(self, name: str) -> str:
        step = self.inner.indent
        kept = [b for b in self.inner.blocks if b.entry.key not in MOVED]
        moved = [b for b in self.inner.blocks if b.entry.key in MOVED]
        sections = [b for b in self.root.blocks if b.entry.key not in (*HEADER, "metadata")]
        top, sections = self._top(sections)
        blank, sections = _leading_blank(sections, bool(moved) and not _keeps_blank(moved[-1]))
        out: list[str] = [*top, *self._header()]
        lead = () if self.metadata is self.root.blocks[0] else self.metadata.lead
        out += [*lead, self.metadata.lines[0], *self._kept(kept, name)]
        out += [*self.inner.tail, *blank, self.line("spec:")]
        if moved:
            out.append(self.line(" " * step + "metadata:"))
            for block in moved:
                out += shifted(block.all_lines, step)
        for block in sections:
            out += shifted(block.all_lines, step)
        return self.whole(out)

    def _top(self, sections: list[Block]) -> tuple[Sequence[str], list[Block]]:
        """The comments that stay at the head of the file."""
        first = self.root.blocks[0]
        if first not in sections:
            return first.lead, sections
        cut = max((i + 1 for i, line in enumerate(first.lead) if is_blank(line)), default=0)
        return first.lead[:cut], [replace(first, lead=first.lead[cut:]), *sections[1:]]

    def _header(self) -> list[str]:
        """`apiVersion` and `kind`, those that are written with their comments."""
        out: list[str] = []
        for key, wanted in HEADER.items():
            block = self.root.get(key)
            if block is None:
                out.append(self.line(f"{key}: {wanted}"))
                continue
            lead = () if block is self.root.blocks[0] else block.lead
            node = block.entry.node
            same = isinstance(node, ScalarNode) and node.value == wanted
            out += [*lead, *(block if same else self.renamed(block, wanted)).lines]
        return out

    def _kept(self, kept: list[Block], name: str) -> list[str]:
        """The keys of metadata; a name that Kubernetes does not take becomes an annotation."""
        wanted = object_name(name)
        out: list[str] = []
        annotated = wanted == name
        for block in kept:
            used = block
            if block.entry.key == "name" and wanted != name:
                used = self.renamed(block, wanted)
            elif block.entry.key == "annotations" and not annotated:
                inside = self.cut_inside(block)
                used = replace(
                    block,
                    lines=(block.lines[0], self._annotation(inside.indent, name), *block.lines[1:]),
                )
                annotated = True
            out += used.all_lines
        if not annotated:
            step = self.inner.indent
            out += [self.line(" " * step + "annotations:"), self._annotation(2 * step, name)]
        return out

    def _annotation(self, indent: int, name: str) -> str:
        return self.line(" " * indent + f"{NAME_ANNOTATION}: {scalar_text(name)}")


def _keeps_blank(block: Block) -> bool:
    """Whether blank lines below a block may become part of its value (`|+`)."""
    return any(_KEEP.search(line) for line in block.lines)


def _leading_blank(sections: list[Block], has_metadata: bool) -> tuple[Sequence[str], list[Block]]:
    """Blank lines above the first section move above `spec:` when it comes right below that."""
    if has_metadata or not sections:
        return (), sections
    first = sections[0]
    cut = next((i for i, line in enumerate(first.lead) if not is_blank(line)), len(first.lead))
    return first.lead[:cut], [replace(first, lead=first.lead[cut:]), *sections[1:]]


class _Document(_Surgery):
    def written(self, name: str) -> str:
        found = self.root.get("spec")
        if found is None:
            raise NotByText("no spec")
        spec = self.cut_inside(found)
        own = next((b for b in spec.blocks if b.entry.key == "metadata"), None)
        moved = self._moved(own)
        out: list[str] = []
        for block in self.root.blocks:
            if block.entry.key in HEADER:
                out += [*block.lead, *_comments_on(block.lines)]
            elif block.entry.key == "metadata":
                out += [*block.lead, *self._metadata(name, moved)]
            elif block.entry.key == "spec":
                out += [*block.lead, *_comments_on(block.lines[:1])]
                out += self._sections(spec, own)
        return self.whole(out)

    def _sections(self, spec: Blocks, own: Block | None) -> list[str]:
        out: list[str] = []
        for block in spec.blocks:
            if block is not own:
                out += shifted(block.all_lines, -spec.indent)
            elif own is not None:
                out += shifted(own.lead, -spec.indent)
                out += _comments_on(own.lines[:1])
        return [*out, *shifted(spec.tail, -spec.indent)]

    def _moved(self, own: Block | None) -> list[str]:
        """The lines of `spec.metadata`, indented as the keys of `metadata`."""
        if own is None:
            return []
        node = own.entry.node
        if isinstance(node, ScalarNode) and node.value is None:
            return []
        inside = self.cut_inside(own)
        lines = [line for block in inside.blocks for line in block.all_lines] + [*inside.tail]
        return [*shifted(lines, self.inner.indent - inside.indent)]

    def _metadata(self, name: str, moved: list[str]) -> list[str]:
        out = [self.metadata.lines[0]]
        for block in self.inner.blocks:
            key = block.entry.key
            if key not in Metadata.keys:
                out += block.lead
                continue
            used = block
            if key == "name" and name != _value(block):
                used = self.renamed(block, name)
            elif key == "annotations":
                used = self._annotations(block)
            out += used.all_lines
            if key == "name":
                out += moved
        return [*out, *self.inner.tail]

    def _annotations(self, block: Block) -> Block:
        """The annotations without the one that keeps the name."""
        node = block.entry.node
        if not isinstance(node, MappingNode) or NAME_ANNOTATION not in node.entries:
            return block
        inside = self.cut_inside(block)
        kept = [b for b in inside.blocks if b.entry.key != NAME_ANNOTATION]
        dropped = [b for b in inside.blocks if b.entry.key == NAME_ANNOTATION]
        comments = [line for b in dropped for line in (*b.lead, *filter(is_comment, b.lines[1:]))]
        if not kept:
            return replace(block, lines=(*comments, *inside.tail))
        lines = [block.lines[0], *comments, *(line for b in kept for line in b.all_lines)]
        return replace(block, lines=(*lines, *inside.tail))


def _comments_on(lines: Sequence[str]) -> list[str]:
    """The comments on the lines of a key which goes."""
    found: list[str] = []
    for line in lines:
        at = 0 if is_comment(line) else line.find(" #") + 1
        if at or is_comment(line):
            found.append(line[at:].lstrip(" "))
    return found


def _value(block: Block) -> object:
    node = block.entry.node
    return node.value if isinstance(node, ScalarNode) else None


__all__ = ["HEADER", "MOVED", "to_document", "to_resource"]
