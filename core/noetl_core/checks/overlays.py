"""Tasks of the workbook and the steps that call them: together they make a whole task (rules I5,
K38).

The caller's keys must be ones its tool takes, with values it takes; a key the tool needs may stand
on either side.
"""

from __future__ import annotations

from collections.abc import Iterator

from noetl_core.checks.report import Report, TaskAt
from noetl_core.layers import workbook_base
from noetl_core.problems import Severity
from noetl_core.reading import Cursor, Reading
from noetl_core.scopes import Scope
from noetl_core.shape import Data, Key, Shape
from noetl_core.tools import TaskKeys
from noetl_core.values import Value

_OPEN = Data(Scope.TASK)
"""How the keys of a tool that plugs in are read."""


def check(report: Report) -> None:
    callers: dict[str, list[TaskAt]] = {name: [] for name in report.playbook.workbook}
    for at in report.tasks:
        base = workbook_base(report.playbook, at.task)
        if base is None:
            continue
        callers[str(at.task.inputs["task"])].append(at)
        _overlay(report, at, _keys_of(report, at))
    for name in callers:
        _complete(report, name, callers[name])


def _keys_of(report: Report, at: TaskAt) -> type[TaskKeys] | None:
    tool = report.kinds.get(at.resolved.kind)
    return tool.keys if tool is not None and tool.name != "workbook" else None


def _overlay(report: Report, at: TaskAt, keys: type[TaskKeys] | None) -> None:
    """The kind decides how the caller's keys are read, so that they wait until it is known."""
    known = ["task", *(keys.keys if keys else ())]
    for name in at.task.inputs:
        if keys is None and name != "task":
            _value(report, at, name, _OPEN)
        elif keys is not None and name in keys.keys:
            _value(report, at, name, keys.keys[name].shape)
        elif name != "task":
            message = f"unknown key `{name}` for a task of kind `{at.resolved.kind}`"
            hint = report.did_you_mean(name, known) or "known here: " + ", ".join(known)
            report.at_key(Severity.ERROR, "A4.unknown-key", (*at.path, name), message, hint)


def _value(report: Report, at: TaskAt, name: str, shape: Shape[Value]) -> None:
    if at.task.inputs[name] is None:
        return
    path = (*at.path, name)
    place = report.place(path)
    aside = Reading(report.reading.text, report.kinds)
    shape.read(place.node, Cursor(aside, path, place.written))
    report.reading.templates.extend(aside.templates)
    for problem in aside.problems:
        report.problems.add(problem)


def _complete(report: Report, name: str, callers: list[TaskAt]) -> None:
    """A key that no caller brings is missing in the workbook, else in the callers without it."""
    base = TaskAt(("workbook", name), task := report.playbook.workbook[name], task, None)
    keys = _keys_of(report, base)
    for key in _required(keys):
        if _has(base.task.inputs, key):
            continue
        without = [at for at in callers if not _has(at.task.inputs, key)]
        if len(without) == len(callers):
            report.missing(base.path, key.name, f"`{key.name}` is missing", key.doc)
            continue
        for at in without:
            message = f"`{key.name}` is missing here and in the task `{name}` of the workbook"
            report.missing(at.path, key.name, message, key.doc)


def _required(keys: type[TaskKeys] | None) -> Iterator[Key]:
    return (key for key in keys.keys.values() if key.required) if keys else iter(())


def _has(inputs: dict[str, Value], key: Key) -> bool:
    return inputs.get(key.name) is not None
