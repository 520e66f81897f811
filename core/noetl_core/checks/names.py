"""Names that stand for two things, or for something of the language (rules A5, E4, G1)."""

from __future__ import annotations

from noetl_core.checks.report import Report
from noetl_core.layers import loops_of
from noetl_core.model import Step
from noetl_core.problems import Path
from noetl_core.scopes import ITER_KEYS, RESERVED


def check(report: Report) -> None:
    _steps(report)
    for index, step in enumerate(report.playbook.workflow):
        _labels(report, ("workflow", index, "tool"), step)
        _iterators(report, ("workflow", index), step)
    _keychain(report)


def _steps(report: Report) -> None:
    first: dict[str, int] = {}
    for index, step in enumerate(report.playbook.workflow):
        before = first.setdefault(step.step, index)
        if before != index and step.step:
            line = report.place(("workflow", before, "step")).node.line
            message = f"two steps are called `{step.step}`; the first stands in line {line}"
            hint = "give each step a name of its own: arcs find steps by name"
            report.error("A5.duplicate-step", ("workflow", index, "step"), message, hint)


def _labels(report: Report, tool: Path, step: Step) -> None:
    first: dict[str, int] = {}
    for position, task in enumerate(step.tool):
        place = (*tool, position, "name")
        if not task.name:
            continue
        if task.name in RESERVED:
            _reserved(report, place, task.name, "a label")
        before = first.setdefault(task.name, position)
        if before != position:
            line = report.place((*tool, before)).node.line
            message = f"two tasks of this step are called `{task.name}` (the first: line {line})"
            hint = "give each task of a pipeline a label of its own"
            report.error("A5.duplicate-label", place, message, hint)


def _reserved(report: Report, path: Path, name: str, what: str) -> None:
    message = f"`{name}` is a name of the language and can't be {what}"
    report.error("A5.reserved-name", path, message, f"for example `{name.strip('_')}_1`")


def _iterators(report: Report, step_path: Path, step: Step) -> None:
    path, outer = step_path, set[str]()
    for loop in loops_of(step):
        path = (*path, "loop")
        name, place = loop.iterator, (*path, "iterator")
        if name in RESERVED | ITER_KEYS:
            _reserved(report, place, name, "an iterator")
        if name and name in outer:
            message = f"two loops of this step have the iterator `{name}`"
            hint = "name them apart; the outer one is read as `iter.parent.<iterator>`"
            report.error("E4.duplicate-iterator", place, message, hint)
        outer.add(name)


def _keychain(report: Report) -> None:
    seen: set[str] = set()
    for index, entry in enumerate(report.playbook.keychain):
        if entry.name and entry.name in seen:
            message = f"two keychain entries are called `{entry.name}`"
            report.error("G1.duplicate-entry", ("keychain", index, "name"), message)
        seen.add(entry.name)
