"""Names that must lead somewhere: steps, labels, tasks of the workbook (rules A5, C1, C8, I5)."""

from __future__ import annotations

from noetl_core.checks.report import Report, TaskAt, rule_path
from noetl_core.model import Action, Step
from noetl_core.problems import Path


def check(report: Report) -> None:
    names = {step.step: None for step in report.playbook.workflow if step.step}
    _executor(report, names)
    for index, step in enumerate(report.playbook.workflow):
        _arcs(report, ("workflow", index, "next", "arcs"), step, names)
    labels = _labels(report)
    for task in report.tasks:
        _workbook(report, task)
        if task.step is not None:
            _jumps(report, task, labels[id(task.step)])


def _labels(report: Report) -> dict[int, dict[str, None]]:
    """Labels by pipeline. A step's identity serves, since two may bear one name."""
    return {
        id(step): {task.name: None for task in step.tool if task.name}
        for step in report.playbook.workflow
    }


def _executor(report: Report, names: dict[str, None]) -> None:
    spec = report.playbook.executor.spec
    for key, name, code in (
        ("entry_step", spec.entry_step, "C1.unknown-entry-step"),
        ("final_step", spec.final_step, "C8.unknown-final-step"),
    ):
        if name and name not in names:
            message = f"`{key}` names the step `{name}`, which is not in the workflow"
            hint = report.did_you_mean(name, names)
            report.error(code, ("executor", "spec", key), message, hint)


def _arcs(report: Report, path: Path, step: Step, names: dict[str, None]) -> None:
    for index, arc in enumerate(step.arcs):
        if arc.step and arc.step not in names:
            message = f"the arc leads to the step `{arc.step}`, which is not in the workflow"
            hint = report.did_you_mean(arc.step, names) or "add the step, or remove the arc"
            report.error("A5.unknown-step", (*path, index, "step"), message, hint)


def _jumps(report: Report, at: TaskAt, labels: dict[str, None]) -> None:
    """Of a task's own rules, or where it has none, of those it takes over from the workbook."""
    policy = at.resolved.spec.policy
    inherited = at.task.spec.policy is None
    if policy is None or not (inherited or report.is_whole((*at.path, "spec", "policy"), policy)):
        return
    for index, rule in enumerate(policy.rules):
        if rule.then.do is not Action.JUMP:
            continue
        place = rule_path((*at.path, "spec", "policy"), index, rule)
        target = rule.then.to
        if target is None:
            if not inherited:
                hint = "to: " + " or ".join(list(labels)[:6])
                report.error("A5.jump-without-to", place, "`jump` needs `to`", hint)
        elif target not in labels:
            _jump_target(
                report, (*at.path, "task") if inherited else (*place, "to"), target, labels
            )


def _jump_target(report: Report, path: Path, target: str, labels: dict[str, None]) -> None:
    message = f"`jump` goes to `{target}`, which is no label of this pipeline"
    hint = report.did_you_mean(target, labels)
    if hint is None and report.playbook.step(target) is not None:
        hint = f"a policy starts no step: route to `{target}` with an arc under `next`"
    report.error("A5.jump-target", path, message, hint or "labels here: " + ", ".join(labels))


def _workbook(report: Report, at: TaskAt) -> None:
    if at.task.kind != "workbook":
        return
    workbook, path = report.playbook.workbook, (*at.path, "task")
    if at.step is None:
        message = "a task of the workbook can't be of kind `workbook`: they do not nest"
        report.error("I5.nested", (*at.path, "kind"), message, "write the tool's own kind here")
        return
    named = at.task.inputs.get("task")
    if not isinstance(named, str):
        return
    if named not in workbook:
        message = f"the workbook has no task `{named}`"
        hint = report.did_you_mean(named, workbook) or "add it under `workbook`"
        report.error("I5.unknown-task", path, message, hint)
