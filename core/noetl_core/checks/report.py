"""What every check is given: the playbook, the places of its values, and somewhere to report.

A check names a place by its path in the model; the report finds the place in the author's file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from noetl_core.guards import Guards
from noetl_core.layers import resolved_task
from noetl_core.load import Loaded
from noetl_core.model import Playbook, Rule, Step, Task, TaskPolicy
from noetl_core.problems import Path, Problem, ProblemList, Severity, nearest, path_text
from noetl_core.reading import Place, Reading
from noetl_core.source import MappingNode, Node, SequenceNode
from noetl_core.tools import ToolKind

COMPARISONS = 20_000
"""How many names are compared for hints in one playbook, so that hints cost no more than checks."""

NamePath = tuple[str | int, ...]
"""A name a template reads and the keys after it: `("ctx", "total")`."""

_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TaskAt:
    """A task, where it stands, and what it is when it runs (rule I5)."""

    path: Path
    task: Task
    resolved: Task
    step: Step | None
    """None for a task of the workbook."""


@dataclass(slots=True)
class Report:
    """One playbook under check."""

    loaded: Loaded
    playbook: Playbook
    kinds: Mapping[str, ToolKind]
    problems: ProblemList = field(default_factory=ProblemList)
    tasks: list[TaskAt] = field(init=False)
    """Every task of the workflow, then those of the workbook."""
    guards: Guards = field(init=False)
    _comparisons: int = COMPARISONS

    def __post_init__(self) -> None:
        self.guards = Guards(use.template for use in self.reading.templates if use.is_guard)
        self.tasks = [*self._workflow_tasks(), *self._workbook_tasks()]

    @property
    def reading(self) -> Reading:
        return self.loaded.reading

    def error(self, code: str, path: Path, message: str, hint: str | None = None) -> None:
        self._add(Severity.ERROR, code, self.place(path), message, hint)

    def warning(self, code: str, path: Path, message: str, hint: str | None = None) -> None:
        self._add(Severity.WARNING, code, self.place(path), message, hint)

    def missing(self, holder: Path, key: str, message: str, hint: str | None = None) -> None:
        """A key that is not there: told at what should hold it, with the path it would have."""
        place = self.place(holder)
        self._add(
            Severity.ERROR,
            "A1.missing",
            place._replace(written=(*place.written, key)),
            message,
            hint,
        )

    def at_key(
        self, severity: Severity, code: str, path: Path, message: str, hint: str | None = None
    ) -> None:
        """A problem of a key itself, not of its value."""
        self._add(severity, code, self.key_place(path), message, hint)

    def in_template(
        self,
        severity: Severity,
        code: str,
        place: Place,
        names: NamePath,
        message: str,
        hint: str | None = None,
    ) -> None:
        """A problem of a name inside a template, at that name (`ctx`, or `ctx.total` as a path)."""
        line, column = self._name_position(place.node, names)
        path = path_text(place.written)
        self.problems.add(Problem(code, severity, path, line, column, message, hint))

    def nearest(self, word: str, known: Collection[str]) -> str | None:
        """The known name an author most likely meant; None too when hints have cost enough."""
        if len(known) > self._comparisons:
            return None
        self._comparisons -= len(known)
        return nearest(word, known)

    def did_you_mean(self, word: str, known: Collection[str]) -> str | None:
        close = self.nearest(word, known)
        return f"did you mean `{close}`?" if close else None

    def place(self, path: Path) -> Place:
        """Where a value stands in the file; of one that is not written, what would hold it."""
        for end in range(len(path), -1, -1):
            found = self.reading.places.get(path[:end])
            if found is not None:
                return _descend(found, path[end:])
        root = self.loaded.root or Node(1, 1, 0, 0)
        return _descend(Place((), root), path)

    def key_place(self, path: Path) -> Place:
        """Where the key of a value stands in the file."""
        holder = self.place(path[:-1])
        entry = (
            holder.node.entries.get(str(path[-1])) if isinstance(holder.node, MappingNode) else None
        )
        if entry is None:
            return self.place(path)
        return Place((*holder.written, entry.key), entry.key_node)

    def is_whole(self, path: Path, policy: TaskPolicy) -> bool:
        """Whether every rule of a policy could be read; else their places are not sure."""
        written = self.place((*path, "rules")).node
        return isinstance(written, SequenceNode) and len(written.items) == len(policy.rules)

    def _add(
        self, severity: Severity, code: str, place: Place, message: str, hint: str | None
    ) -> None:
        node, path = place.node, path_text(place.written)
        self.problems.add(Problem(code, severity, path, node.line, node.column, message, hint))

    def _name_position(self, node: Node, names: NamePath) -> tuple[int, int]:
        text = self.reading.text
        for length in (min(len(names), 2), 1):
            word = _pattern_of(names[:length])
            for expression in _EXPRESSION.finditer(text, node.start, node.end):
                found = word.search(text, expression.start(), expression.end())
                if found:
                    line_start = text.rfind("\n", 0, found.start()) + 1
                    line = node.line + text.count("\n", node.start, found.start())
                    return line, found.start() - line_start + 1
        return node.line, node.column

    def _workflow_tasks(self) -> Iterator[TaskAt]:
        for index, step in enumerate(self.playbook.workflow):
            for position, task in enumerate(step.tool):
                path = ("workflow", index, "tool", position)
                yield TaskAt(path, task, resolved_task(self.playbook, task), step)

    def _workbook_tasks(self) -> Iterator[TaskAt]:
        for name, task in self.playbook.workbook.items():
            yield TaskAt(("workbook", name), task, task, None)


def _descend(place: Place, rest: Path) -> Place:
    """Further into data, whose places are not kept one by one."""
    written, node = place.written, place.node
    for key in rest:
        inner: Node | None = None
        if isinstance(node, MappingNode):
            inner = node.get(str(key))
        elif isinstance(node, SequenceNode) and isinstance(key, int) and key < len(node.items):
            inner = node.items[key]
        if inner is None:
            break
        written, node = (*written, key), inner
    return Place(written, node)


def _pattern_of(names: NamePath) -> re.Pattern[str]:
    """How a name, or a name and its first key, is written in an expression."""
    first, *further = (re.escape(str(name)) for name in names)
    keys = "".join(rf"\s*(?:\.\s*{key}(?!\w)|\[\s*['\"]?{key}['\"]?\s*\])" for key in further)
    return re.compile(rf"(?<![\w.'\"]){first}(?!\w){keys}")


def rule_path(policy: Path, index: int, rule: Rule) -> Path:
    """Where a rule's `then` stands, be it under `else` or beside `when`."""
    holder = (*policy, "rules", index)
    return (*holder, "else", "then") if rule.when is None else (*holder, "then")
