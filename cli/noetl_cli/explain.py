"""`check --explain STEP.TASK`: which scope gave each effective value of a task (rule F1)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from noetl_cli.errors import UsageError
from noetl_cli.terminal import Style, printable, width
from noetl_core.layers import Layered, explain
from noetl_core.problems import nearest

if TYPE_CHECKING:
    from noetl_cli.commands.check import Entry
    from noetl_core.model import Playbook


def explained(entries: Sequence[Entry], wanted: str) -> list[Entry]:
    """The entries, those with that task carrying its values. No playbook with it: wrong usage."""
    step, _, task = wanted.partition(".")
    if not step or not task:
        raise UsageError(f"--explain takes STEP.TASK, not `{wanted}`", _example(entries))
    made = [_one(entry, step, task) for entry in entries]
    if all(entry.explained is None for entry in made):
        playbooks = [e.checked.playbook for e in entries if e.checked.playbook]
        if not playbooks:
            return made
        _not_found(playbooks, step, task)
    return made


def _one(entry: Entry, step: str, task: str) -> Entry:
    playbook = entry.checked.playbook
    found = playbook.step(step) if playbook else None
    named = next((t for t in found.tool if t.name == task), None) if found else None
    if playbook is None or found is None or named is None:
        return entry
    return replace(entry, explained=explain(playbook, found, named))


def _not_found(playbooks: Sequence[Playbook], step: str, task: str) -> None:
    steps = {s.step: s for playbook in playbooks for s in playbook.workflow}
    if step not in steps:
        close = nearest(step, steps)
        hint = f"did you mean `{close}`?" if close else "steps: " + ", ".join(list(steps)[:20])
        raise UsageError(f"there is no step `{step}`", hint)
    labels = [t.name for t in steps[step].tool]
    hint = f"its tasks: {', '.join(labels[:20])}" if labels else "the step only routes"
    raise UsageError(f"the step `{step}` has no task `{task}`", hint)


def _example(entries: Sequence[Entry]) -> str | None:
    for entry in entries:
        for step in entry.checked.playbook.workflow if entry.checked.playbook else ():
            if step.tool:
                return f"for example --explain {step.step}.{step.tool[0].name}"
    return None


def table(values: Sequence[Layered], style: Style) -> Iterable[str]:
    """Path, value and scope in columns."""
    rows = [(printable(v.path), _value(v.value), str(v.scope)) for v in values]
    left = max((width(path) for path, _, _ in rows), default=0)
    middle = min(max((width(value) for _, value, _ in rows), default=0), 60)
    for path, value, scope in rows:
        pad, gap = " " * (left - width(path) + 2), " " * max(2, middle - width(value) + 2)
        yield f"{style(path, 'cyan')}{pad}{value}{gap}{style('← ' + printable(scope), 'dim')}"
    yield ""


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return printable(text if len(text) <= 60 else text[:59] + "…")
