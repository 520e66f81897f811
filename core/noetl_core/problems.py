"""What the loader and the checker say of a wrong file: one `Problem` each, with its place and its
cure.

A code is the number of the rule in the language reference plus a word (`A5.legacy-case`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

_PLAIN_KEY = re.compile(r"[\w-]{1,200}")

Path = tuple[str | int, ...]
"""Where a value stands in a document: keys and indices, outermost first."""


class Severity(StrEnum):
    """An error refuses the playbook; a warning does so only with `--strict`."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an author's file."""

    code: str
    severity: Severity
    path: str
    """The place in the author's file as written: `spec.workflow[2].tool[0].ulr`."""
    line: int
    column: int
    message: str
    hint: str | None = None

    def as_json(self) -> dict[str, str | int | None]:
        """The shape that `noetl check -o json` prints and a condition's message is made of."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "path": self.path,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "hint": self.hint,
        }


MAX_PROBLEMS = 500
"""How many errors, and how many warnings, of one document are worth reporting."""


class ProblemList(list[Problem]):
    """The problems of one document. A hostile file may have one in every value: `add` keeps a
    bound."""

    def __init__(self, problems: Iterable[Problem] = ()) -> None:
        super().__init__(problems)
        self._counts = dict.fromkeys(Severity, 0)
        for problem in self:
            self._counts[problem.severity] += 1

    def is_full(self, severity: Severity) -> bool:
        return self._counts[severity] > MAX_PROBLEMS

    def wants(self, problem: Problem) -> bool:
        """Whether the problem will be kept: ask before its path or hint is worked out."""
        return not self.is_full(problem.severity)

    def add(self, problem: Problem) -> None:
        if self.is_full(problem.severity):
            return
        self._counts[problem.severity] += 1
        if self.is_full(problem.severity):
            message = f"there are more {problem.severity.value}s than {MAX_PROBLEMS}"
            hint = "the rest is shown when these are gone"
            problem = replace(problem, code="A4.too-many", message=message, hint=hint)
        self.append(problem)

    def take(self) -> tuple[Problem, ...]:
        """What was found since the last time."""
        taken = tuple(self)
        self.clear()
        self._counts = dict.fromkeys(Severity, 0)
        return taken


def shortened(text: str, longest: int = 80) -> str:
    """A piece of an author's text for a message."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def path_text(path: Path) -> str:
    """`("workflow", 0, "tool")` → `workflow[0].tool`."""
    parts: list[str] = []
    for element in path:
        if isinstance(element, int):
            parts.append(f"[{element}]")
        elif _PLAIN_KEY.fullmatch(element):
            parts.append(f".{element}" if parts else element)
        else:
            parts.append(f"[{shortened(element)!r}]")
    return "".join(parts)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word an author most likely meant, or None when none is close."""
    if len(word) > 64:
        return None
    best, best_distance = None, max(1, (len(word) + 1) // 3) + 1
    for candidate in known:
        if abs(len(candidate) - len(word)) >= best_distance:
            continue
        distance = _edits(word.lower(), candidate.lower(), best_distance)
        if distance < best_distance:
            best, best_distance = candidate, distance
    return best


def nearest_of_set(word: str, words: Sequence[str]) -> str | None:
    """The word of a closed set an author most likely meant: a piece of one counts as close."""
    close = nearest(word, words)
    small = word.strip().lower()
    if close is not None or len(small) < 2:
        return close
    parts = [w for w in words if small in w or w in small]
    return parts[0] if len(parts) == 1 else None


def _edits(a: str, b: str, limit: int) -> int:
    """Edit distance with neighbours swapped as one edit; `limit` or more is given as `limit`."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        last, row_before = row, before
        row = [i]
        for j, cb in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (ca != cb))
            if row_before and i > 1 and j > 1 and ca == b[j - 2] and a[i - 2] == cb:
                cost = min(cost, row_before[j - 2] + 1)
            row.append(cost)
        before = last
        if min(row) >= limit:
            return limit
    return row[-1]
