"""What can be wrong with a template.

    TemplateProblem      one thing wrong with the text of a template (data, not an exception)
    TemplateProblems     raised by compiling: all the problems of one template
    TemplateError        raised by evaluating: missing names, type errors, budgets

Codes carry the number of the rule that was broken, such as `B6.call`.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_CANDIDATES = 500
"""How many known words a "did you mean" looks at, so that a hint stays cheap."""


@dataclass(frozen=True, slots=True)
class TemplateProblem:
    """One problem found while compiling: what is wrong, where, and what to write instead."""

    code: str
    message: str
    hint: str = ""
    snippet: str = ""
    """The offending source text as written, or nothing where no part of it is to blame."""
    line: int = 1
    """1-based, inside the template."""
    offset: int = 0
    """Characters before the offence, inside the template."""

    def __str__(self) -> str:
        where = f" in `{self.snippet}`" if self.snippet else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.code}: {self.message}{where}{hint}"


class TemplateProblems(Exception):
    """A template does not compile; `problems` holds every reason, in the order of the text."""

    def __init__(self, problems: tuple[TemplateProblem, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "; ".join(map(str, self.problems))


class TemplateError(Exception):
    """A template cannot be evaluated with these values.

    `missing` is the path that is not defined, where that is the reason; `expression` the source of
    the expression; `where` the place in the tree that `render` was given.
    """

    UNDEFINED = "B3.undefined"
    TYPE = "K8.type"
    VALUE = "K8.value"
    BUDGET = "B7.budget"
    INTERNAL = "B7.internal"
    """Values that are no JSON, or a fault of ours; the tests accept it for no data at all."""

    def __init__(
        self, message: str, *, code: str = TYPE, missing: str | None = None, hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.missing = missing
        self.hint = hint
        self.expression = ""
        self.where: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        place = f"{path_text(self.where)}: " if self.where else ""
        hint = f" ({self.hint})" if self.hint else ""
        source = f" in {shortened(self.expression, 200)}" if self.expression else ""
        return f"{place}{self.message}{hint}{source}"


def shortened(text: str, limit: int) -> str:
    """A text of an author in a message: whole if it is short."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def path_text(path: Iterable[str | int]) -> str:
    """A path as an author would write it: `ctx.users[0].name`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif key.isidentifier():
            text += f".{key}" if text else key
        else:
            text += f"['{key}']"
    return text


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that looks most like `word`, if one is near enough to suggest."""
    if len(word) > 64:
        return None
    candidates = [w for w in islice(known, MAX_CANDIDATES) if isinstance(w, str) and len(w) <= 64]
    found = get_close_matches(word, candidates, n=1, cutoff=0.7)
    return found[0] if found else None
