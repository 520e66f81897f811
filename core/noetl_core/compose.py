"""The parser's events of one document → its tree of nodes (rule K2).

Called by `source`. Works without recursion; depth and number of nodes are bounded, with aliases
counted as if they were written out, so that a small file cannot stand for a huge value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NoReturn, Protocol, cast

import yaml

from noetl_core.nodes import (
    Entry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    kind_of,
)
from noetl_core.problems import Problem, ProblemList, Severity, path_text, shortened
from noetl_core.scalars import LETTERS, BadScalar, may_be_more_than_text, resolve
from noetl_core.values import Value

MAX_DEPTH = 100
"""How deep values may nest."""
MAX_NODES = 500_000
"""How many values one document may hold, aliases written out: some 3,000 rich steps. It bounds the
time and the memory that a hostile file takes, to seconds and a few hundred megabytes."""

_TAGS = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null")}
_COLLECTION_TAGS = frozenset({"!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})
_TAG_HINT = "a playbook is plain data: remove the tag"
_BRACES_HINT = 'a value that begins with {{ must be in quotes: "{{ … }}"'
_SIZE_HINT = "keep data out of the playbook: pass it as workload, or fetch it in a step"


class Unreadable(Exception):
    """Nothing more of this file can be read."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def unreadable(message: str, line: int, column: int, hint: str | None = None) -> Problem:
    return Problem("A1.yaml", Severity.ERROR, "", line, column, message, hint)


class _Mark(Protocol):
    """A place in the text, from 0."""

    line: int
    column: int
    index: int


class _Event(Protocol):
    """What is read of the parser's events; which event has what is the parser's business."""

    start_mark: _Mark
    end_mark: _Mark
    anchor: str | None
    tag: str | None
    value: str
    implicit: tuple[bool, bool]
    flow_style: bool | None


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been read yet."""

    node: SequenceNode | MappingNode
    anchor: str | None
    key: ScalarNode | None = None
    merges: list[Node] = field(default_factory=list)


class Composer:
    """Reads one document after the other from the events of one file."""

    def __init__(self, text: str, problems: ProblemList, letters: ProblemList) -> None:
        self._text = text
        self._problems = problems
        self._letters = letters
        self._anchors: dict[str, Node | None] = {}
        self._stack: list[_Open] = []
        self._nodes = 0
        self._root: Node | None = None

    def compose(self, next_event: Callable[[], yaml.Event]) -> Node:
        """The root of the document whose beginning was just read."""
        steps: dict[type, Callable[[_Event], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._open,
            yaml.SequenceStartEvent: self._open,
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
            yaml.AliasEvent: self._alias,
        }
        read = cast(Callable[[], _Event], next_event)
        event = read()
        while (step := steps.get(type(event))) is not None:
            step(event)
            event = read()
        assert self._root is not None
        return self._root

    def _complain(self, message: str, node: Node, hint: str | None = None) -> None:
        problem = unreadable(message, node.line, node.column, hint)
        if self._problems.wants(problem):
            self._problems.add(replace(problem, path=self._path()))

    def _path(self) -> str:
        """Where the reader stands: the keys and indices of the open collections."""
        path: list[str | int] = []
        for level in self._stack:
            if isinstance(level.node, SequenceNode):
                path.append(len(level.node.items))
            elif level.key is not None:
                path.append(self._written(level.key))
        return path_text(tuple(path))

    def _written(self, key: ScalarNode) -> str:
        if isinstance(key.value, str):
            return key.value
        return self._text[key.start : key.end].strip() or key_text(key)

    def _stop(self, message: str, event: _Event, hint: str | None = None) -> NoReturn:
        mark = event.start_mark
        problem = unreadable(message, mark.line + 1, mark.column + 1, hint)
        raise Unreadable(replace(problem, path=self._path()))

    def _open(self, event: _Event) -> None:
        if len(self._stack) >= MAX_DEPTH:
            self._too_deep(event)
        mark, end = event.start_mark, event.end_mark
        make = MappingNode if isinstance(event, yaml.MappingStartEvent) else SequenceNode
        flow = bool(event.flow_style)
        node = make(mark.line + 1, mark.column + 1, mark.index, end.index, flow=flow)
        if event.tag and event.tag not in _COLLECTION_TAGS:
            self._complain(f"the tag {_short_tag(event.tag)} is not allowed", node, _TAG_HINT)
        if event.anchor:
            self._anchors[event.anchor] = None
        self._stack.append(_Open(node, event.anchor))

    def _too_deep(self, event: _Event) -> NoReturn:
        self._stop(f"values are nested more than {MAX_DEPTH} deep", event)

    def _close(self, event: _Event) -> None:
        closed = self._stack.pop()
        node = closed.node
        node.end = event.end_mark.index
        if isinstance(node, MappingNode):
            for merged in closed.merges:
                self._merge(node, merged)
        self._add(node, closed.anchor)

    def _alias(self, event: _Event) -> None:
        name = event.anchor or ""
        shown = shortened(name)
        if name not in self._anchors:
            self._stop(f"the alias *{shown} has no anchor &{shown} before it", event)
        target = self._anchors[name]
        if target is None:
            self._stop(f"the alias *{shown} stands inside its own anchor", event)
        if len(self._stack) + target.height > MAX_DEPTH:
            self._too_deep(event)
        self._nodes += target.size - 1
        self._add(target, None)

    def _add(self, node: Node, anchor: str | None) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            message = f"the document holds more than {MAX_NODES:,} values (aliases written out)"
            problem = unreadable(message, node.line, node.column, _SIZE_HINT)
            raise Unreadable(replace(problem, path=self._path()))
        if anchor:
            self._anchors[anchor] = node
        if not self._stack:
            self._root = node
            return
        parent = self._stack[-1]
        holder = parent.node
        if node.height >= holder.height:
            holder.height = node.height + 1
        if isinstance(holder, SequenceNode):
            holder.items.append(node)
            holder.size += node.size
        elif parent.key is None:
            parent.key = self._key(node)
        else:
            self._entry(parent, holder, parent.key, node)
            parent.key = None

    def _key(self, node: Node) -> ScalarNode:
        if isinstance(node, ScalarNode) and node.value is not None:
            return node
        hint = _BRACES_HINT if isinstance(node, MappingNode) and node.flow else None
        self._complain(f"a key must be text, not {kind_of(node)}", node, hint)
        return ScalarNode(node.line, node.column, node.start, node.end, value="")

    def _entry(self, parent: _Open, mapping: MappingNode, key: ScalarNode, node: Node) -> None:
        mapping.size += node.size + 1
        text = key.value if isinstance(key.value, str) else key_text(key)
        if text == "<<" and key.plain:
            parent.merges.append(node)
            return
        if text == "":
            return
        first = mapping.entries.get(text)
        if first is not None:
            message = f"the key `{shortened(text)}` stands twice in one mapping"
            self._complain(message, key, f"first in line {first.key_node.line}")
            return
        written = "" if isinstance(key.value, str) else self._written(key)
        mapping.entries[text] = Entry(text, key, node, written=written)

    def _merge(self, into: MappingNode, node: Node) -> None:
        sources = node.items if isinstance(node, SequenceNode) else [node]
        for source in sources:
            if not isinstance(source, MappingNode):
                self._complain(f"`<<` merges mappings, not {kind_of(source)}", source)
                continue
            for key, entry in source.entries.items():
                if key not in into.entries:
                    into.entries[key] = replace(entry, merged=True)

    def _scalar(self, event: _Event) -> None:
        mark, end = event.start_mark, event.end_mark
        line, column = mark.line + 1, mark.column + 1
        node = ScalarNode(line, column, mark.index, end.index, 1, 0, event.value)
        if event.tag and event.tag != "!":
            self._tagged(node, event.tag, event.value)
        elif event.implicit[0]:
            node.plain = True
            if may_be_more_than_text(event.value):
                self._resolve(node, event.value)
        self._add(node, event.anchor)

    def _tagged(self, node: ScalarNode, tag: str, text: str) -> None:
        kind = _TAGS.get(tag)
        if kind is None:
            self._complain(f"the tag {_short_tag(tag)} is not allowed", node, _TAG_HINT)
        elif kind != "str":
            self._resolve(node, text)

    def _resolve(self, node: ScalarNode, text: str) -> None:
        try:
            node.value, warning = resolve(text)
        except BadScalar as bad:
            self._complain(str(bad), node)
            return
        if warning:
            hint = f'write "{text}" if you mean the text, or {_json_word(node.value)}'
            self._warn(self._problems, warning, hint, node, text)
        elif text in LETTERS:
            warning = f"`kubectl apply` reads a plain `{text}` as a boolean"
            self._warn(self._letters, warning, f'write "{text}"', node, text)

    def _warn(self, to: ProblemList, message: str, hint: str, node: Node, text: str) -> None:
        place = (node.line, node.column)
        problem = Problem("K2.surprise", Severity.WARNING, "", *place, message, hint)
        if to.wants(problem):
            to.add(replace(problem, path=self._path_of(text)))

    def _path_of(self, text: str) -> str:
        """The path of a scalar that was just read: of a key, with that key."""
        path = self._path()
        level = self._stack[-1] if self._stack else None
        if level and isinstance(level.node, MappingNode) and level.key is None:
            return f"{path}.{text}" if path else text
        return path


def _short_tag(tag: str) -> str:
    return shortened(tag.replace("tag:yaml.org,2002:", "!!"))


def _json_word(value: Value) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def key_text(key: ScalarNode) -> str:
    """A key as the Kubernetes API sees it: always text."""
    value = key.value
    return _json_word(value) if isinstance(value, bool) else str(value)
