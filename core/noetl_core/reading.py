"""One reading of one document: where the reader stands, what it found wrong, which templates it
met.

`shape` reads through a `Cursor`; `load` starts one reading per document; `check` looks at the
places and the templates afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from noetl_core import legacy
from noetl_core.nodes import Entry, MappingNode, Node, ScalarNode, SequenceNode
from noetl_core.problems import Path, Problem, ProblemList, Severity, nearest, path_text, shortened
from noetl_core.scopes import Scope
from noetl_core.templates import (
    Template,
    TemplateProblems,
    compile_template,
    compile_when,
)

if TYPE_CHECKING:
    from noetl_core.tools import ToolKind


class Place(NamedTuple):
    """Where a value of the model stands in the author's file."""

    written: Path
    node: Node


class TemplateUse(NamedTuple):
    """A template that was met, for the checks that need the whole playbook."""

    path: Path
    """In the canonical model: `("workflow", 0, "tool", 1, "url")`."""
    place: Place
    template: Template
    scope: Scope
    is_guard: bool = False


@dataclass(slots=True)
class Reading:
    """All that is learned while one document is read."""

    text: str
    kinds: Mapping[str, ToolKind]
    problems: list[Problem] = field(default_factory=list)
    places: dict[Path, Place] = field(default_factory=dict)
    templates: list[TemplateUse] = field(default_factory=list)

    @property
    def found(self) -> ProblemList:
        """The problems, as a list with a bound."""
        if not isinstance(self.problems, ProblemList):
            self.problems = ProblemList(self.problems)
        return self.problems

    def report(
        self,
        severity: Severity,
        code: str,
        written: Path,
        node: Node,
        message: str,
        hint: str | None = None,
    ) -> None:
        if not self.found.is_full(severity):
            path = path_text(written)
            self.found.add(Problem(code, severity, path, node.line, node.column, message, hint))

    def snippet_position(
        self, node: Node, snippet: str, value: str = "", offset: int = 0
    ) -> tuple[int, int]:
        """Line and column of a piece of a scalar's text, or of the scalar where it can't be found.

        `value` is what the scalar means and `offset` where the piece stands in that: the file may
        hold the same piece before.
        """
        words = snippet.removesuffix("…").strip().partition("\n")[0]
        if not words:
            return node.line, node.column
        at = self.text.find(words, node.start, node.end)
        for _ in range(min(value.count(words, 0, offset), 1000)):
            further = self.text.find(words, at + len(words), node.end) if at >= 0 else -1
            at = further if further >= 0 else at
        if at < 0:
            return node.line, node.column
        line_start = self.text.rfind("\n", 0, at) + 1
        line = node.line + self.text.count("\n", node.start, at)
        return line, at - line_start + 1


_NOTHING = compile_template("")


class Cursor(NamedTuple):
    """A place in the model and in the author's file at once."""

    reading: Reading
    path: Path
    written: Path

    def child(self, key: str | int, node: Node) -> Cursor:
        """One key or index further in, the same in model and file."""
        path = (*self.path, key)
        # Most often the model and the file agree: then one path serves both.
        written = path if self.written is self.path else (*self.written, key)
        return self.at(path, written, node)

    def at(self, path: Path, written: Path, node: Node) -> Cursor:
        """Another place, where the model's shape and the file's differ."""
        self.reading.places[path] = Place(written, node)
        return Cursor(self.reading, path, written)

    def error(self, code: str, message: str, node: Node, hint: str | None = None) -> None:
        self.reading.report(Severity.ERROR, code, self.written, node, message, hint)

    def warning(self, code: str, message: str, node: Node, hint: str | None = None) -> None:
        self.reading.report(Severity.WARNING, code, self.written, node, message, hint)

    def error_at_key(self, code: str, message: str, entry: Entry, hint: str | None = None) -> None:
        """An error about a key itself, not its value."""
        written = (*self.written, entry.written or entry.key)
        self.reading.report(Severity.ERROR, code, written, entry.key_node, message, hint)

    def missing(self, key: str, doc: str, node: Node, code: str = "A1.missing") -> None:
        written = (*self.written, key)
        where = f" in `{path_text(self.written)}`" if self.written else ""
        message = f"`{key}` is missing{where}"
        self.reading.report(Severity.ERROR, code, written, node, message, doc)

    def unknown_key(self, entry: Entry, place: str, known: list[str], parent: MappingNode) -> None:
        """Rules A5 and A4: a word that was replaced, else one that no one knows."""
        if self.reading.found.is_full(Severity.ERROR):
            return
        word = legacy.refused(place, entry, parent)
        if word is not None:
            self.error_at_key(word.code, word.message, entry, word.hint)
            self._words_inside(entry)
            return
        close = nearest(entry.key, known)
        hint = f"did you mean `{close}`?" if close else "known here: " + ", ".join(sorted(known))
        message = f"unknown key `{shortened(entry.written or entry.key)}`"
        if entry.key_node.plain and isinstance(entry.key_node.value, bool):
            message += " (a plain yes, no, on or off as a key is a boolean in YAML)"
        self.error_at_key("A4.unknown-key", message, entry, hint)

    def _words_inside(self, refused: Entry) -> None:
        inside = legacy.words_inside(refused.node, (*self.written, refused.key))
        for written, entry, word in inside:
            self.reading.report(
                Severity.ERROR, word.code, written, entry.key_node, word.message, word.hint
            )

    def template(self, node: Node, text: str, scope: Scope) -> Template:
        """A text that is a template here; what is wrong with it is reported."""
        return self._compiled(node, text, scope, is_guard=False)

    def guard(self, node: Node, text: str, scope: Scope) -> Template:
        """A text that is a `when` here."""
        return self._compiled(node, text, scope, is_guard=True)

    def templates_in(self, node: Node, scope: Scope) -> None:
        """Every text of a tree of data is a template here; keys are not (rule K6)."""
        if isinstance(node, ScalarNode):
            if isinstance(node.value, str):
                self.template(node, node.value, scope)
        elif isinstance(node, SequenceNode):
            for index, item in enumerate(node.items):
                self._into(index).templates_in(item, scope)
        elif isinstance(node, MappingNode):
            for key, entry in node.entries.items():
                self._into(key).templates_in(entry.node, scope)

    def _into(self, key: str | int) -> Cursor:
        path = (*self.path, key)
        written = path if self.written is self.path else (*self.written, key)
        return Cursor(self.reading, path, written)

    def _compiled(self, node: Node, text: str, scope: Scope, *, is_guard: bool) -> Template:
        if self.reading.found.is_full(Severity.ERROR):
            # Nothing more is told of this file; what a wrong template costs most is its hint.
            return _NOTHING
        try:
            made = compile_when(text) if is_guard else compile_template(text)
        except TemplateProblems as wrong:
            self.template_problems(wrong, node)
            return _NOTHING
        if not made.is_constant:
            self.met(made, node, scope, is_guard=is_guard)
        return made

    def met(self, template: Template, node: Node, scope: Scope, *, is_guard: bool = False) -> None:
        """Keep a template for the checks that need the whole playbook."""
        use = TemplateUse(self.path, Place(self.written, node), template, scope, is_guard)
        self.reading.templates.append(use)

    def template_problems(self, wrong: TemplateProblems, node: Node) -> None:
        """What is wrong with a template, each at the piece of text that is."""
        for found in wrong.problems:
            value = node.value if isinstance(node, ScalarNode) else ""
            text = value if isinstance(value, str) else ""
            place = self.reading.snippet_position(node, found.snippet, text, found.offset)
            path = path_text(self.written)
            hint = found.hint or None
            self.reading.found.add(
                Problem(found.code, Severity.ERROR, path, *place, found.message, hint)
            )
