"""A file → playbooks that may run, or everything that is wrong with them: what authors' tools call.

`load` reads a document and reports what can be seen key by key; the rooms in `checks` look at the
whole playbook afterwards. A document with errors is checked as far as it could be read, so that one
run shows all of its problems. Nothing here raises for what a file holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from noetl_core.checks import check_playbook
from noetl_core.load import Form, Loaded, collector_paused, digest, load, load_data
from noetl_core.model import Playbook
from noetl_core.problems import Problem, Severity
from noetl_core.tools import BUILT_IN, ToolKind
from noetl_core.values import Value


@dataclass(frozen=True, slots=True)
class Checked:
    """One document of a file, with all of its problems."""

    playbook: Playbook | None
    """None when there is any error."""
    form: Form
    digest: str | None
    """Of a playbook without errors."""
    problems: tuple[Problem, ...]
    """Errors and warnings, in the order of the file."""
    loaded: Loaded

    @property
    def valid(self) -> bool:
        return not any(p.severity is Severity.ERROR for p in self.problems)


def check_text(data: bytes | str, kinds: Mapping[str, ToolKind] = BUILT_IN) -> list[Checked]:
    """Every document of a file, loaded and checked."""
    with collector_paused():
        return [_checked(loaded, kinds) for loaded in load(data, kinds)]


def check_data(value: Value, kinds: Mapping[str, ToolKind] = BUILT_IN) -> Checked:
    """A playbook that comes as data, from the Kubernetes API: its problems have no lines."""
    with collector_paused():
        return _checked(load_data(value, kinds), kinds)


def _checked(loaded: Loaded, kinds: Mapping[str, ToolKind]) -> Checked:
    problems = [*loaded.problems, *check_playbook(loaded, kinds)]
    # One mistake may be met from two sides; it is told once.
    in_order = sorted(dict.fromkeys(problems), key=lambda p: (p.line, p.column))
    wrong = any(p.severity is Severity.ERROR for p in in_order)
    playbook = None if wrong else loaded.playbook
    return Checked(
        playbook,
        loaded.form,
        digest(playbook) if playbook else None,
        tuple(in_order),
        loaded,
    )
