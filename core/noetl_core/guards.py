"""What a `when` can become, judged before anything runs: true, false, or it depends.

The net and the checks of policies ask the same guards again and again, each time with other facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from noetl_core.templates import Known, Template, TemplateProblems, compile_when

_DECIDES_EARLY = re.compile(r"\b(?:and|or|if)\b")


class Guards:
    """Judges guards by their text."""

    def __init__(self, compiled: Iterable[Template] = ()) -> None:
        self._templates: dict[str, Template | None] = {one.source: one for one in compiled}

    def judge(self, when: str | bool, known: Known) -> bool | None:
        """Whether it holds where only `known` is known; None where it depends on the rest."""
        if isinstance(when, bool):
            return when
        template = self._template(when)
        if template is None or not self._may_be_decided(template, known):
            return None
        return template.possible(known)

    def paths(self, when: str | bool | None) -> tuple[tuple[str | int, ...], ...]:
        """The paths a guard reads."""
        template = self._template(when) if isinstance(when, str) else None
        return template.paths if template else ()

    def _template(self, when: str) -> Template | None:
        """The compiled guard; None where it is wrong, which is reported elsewhere."""
        if when not in self._templates:
            try:
                self._templates[when] = compile_when(when)
            except TemplateProblems:
                self._templates[when] = None
        return self._templates[when]

    def _may_be_decided(self, template: Template, known: Known) -> bool:
        """A quick look: a guard that reads nothing known is open, unless a constant decides it."""
        roots = {path[0] for path in known}
        reads_known = any(path[0] in roots for path in template.paths)
        return reads_known or not template.paths or bool(_DECIDES_EARLY.search(template.source))
