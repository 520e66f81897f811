"""What templates may name beside the scopes: labels, iterators, keys of workload and keychain.

Gathered once per playbook for the rooms `visible` and `visible_fields`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from noetl_core.checks.report import NamePath, Report
from noetl_core.layers import loops_of, resolved_task
from noetl_core.model import Action, Step, Task
from noetl_core.problems import Path, Severity
from noetl_core.reading import TemplateUse


@dataclass(slots=True)
class StepNames:
    """What the templates of one step may see beside the scopes."""

    labels: dict[str, int]
    iterators: list[str]
    """Outermost first."""
    written: frozenset[str]
    """Keys that `set_iter` writes somewhere in the pipeline."""
    jumps_back: bool
    """Then a later task may have run before an earlier one runs again."""


@dataclass(slots=True)
class Names:
    """All names of a playbook."""

    workload: dict[str, None]
    keychain: dict[str, None]
    steps: list[StepNames]
    label_steps: dict[str, str]
    """Label → the step that has it."""
    told: set[tuple[Path, str, str]] = field(default_factory=set)


def gather(report: Report) -> Names:
    playbook = report.playbook
    labels: dict[str, str] = {}
    for step in playbook.workflow:
        for task in step.tool:
            labels.setdefault(task.name, step.step)
    return Names(
        dict.fromkeys(playbook.workload),
        dict.fromkeys(entry.name for entry in playbook.keychain),
        [_step_names(report, step) for step in playbook.workflow],
        labels,
    )


def _step_names(report: Report, step: Step) -> StepNames:
    labels = {task.name: i for i, task in reversed(list(enumerate(step.tool)))}
    tasks = [resolved_task(report.playbook, task) for task in step.tool]
    return StepNames(
        labels,
        [loop.iterator for loop in loops_of(step)],
        frozenset(key for task in tasks for key in _written_keys(task)),
        any(_jumps_back(task, i, labels) for i, task in enumerate(tasks)),
    )


def _written_keys(task: Task) -> list[str]:
    rules = task.spec.policy.rules if task.spec.policy else ()
    return [key for rule in rules for key in rule.then.set_iter]


def _jumps_back(task: Task, position: int, labels: dict[str, int]) -> bool:
    rules = task.spec.policy.rules if task.spec.policy else ()
    return any(
        rule.then.do is Action.JUMP and labels.get(rule.then.to or "", position + 1) <= position
        for rule in rules
    )


def tell(
    report: Report,
    names: Names,
    use: TemplateUse,
    code: str,
    path: NamePath,
    message: str,
    hint: str | None,
    severity: Severity = Severity.WARNING,
) -> None:
    """Say it once for each name of a template, at that name."""
    key = (use.place.written, code, message)
    if key not in names.told:
        names.told.add(key)
        report.in_template(severity, code, use.place, path, message, hint)


def kind_and_key(report: Report, path: Path) -> tuple[str, str]:
    """The tool kind a template is rendered for, and the key it stands in."""
    playbook = report.playbook
    if path[0] == "workbook" and len(path) > 2:
        task = playbook.workbook.get(str(path[1]))
        return (task.kind if task else ""), str(path[2])
    if path[0] == "workflow" and len(path) > 4 and path[2] == "tool":
        step, position = int(path[1]), int(path[3])
        tasks = playbook.workflow[step].tool if step < len(playbook.workflow) else ()
        if position < len(tasks):
            return resolved_task(playbook, tasks[position]).kind, str(path[4])
    return "", ""


def step_of(names: Names, use: TemplateUse) -> StepNames | None:
    if use.path[0] == "workflow" and len(use.path) > 1 and isinstance(use.path[1], int):
        return names.steps[use.path[1]] if use.path[1] < len(names.steps) else None
    return None
