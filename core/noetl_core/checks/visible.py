"""Which names templates read, and whether they are there (rules B4, G3, E4, K4, K31, K45).

Every template of the file was noted with its place and scope while it was read; here each path it
reads is looked up. Secrets where they must not be are errors; a name that leads nowhere is a
warning, since an execution may still bring it with its workload.
"""

from __future__ import annotations

from noetl_core.checks.report import NamePath, Report
from noetl_core.checks.visible_fields import check_fields
from noetl_core.checks.visible_names import Names, gather, kind_and_key, step_of, tell
from noetl_core.problems import Severity
from noetl_core.reading import TemplateUse
from noetl_core.scopes import RESERVED, Scope

_LATER_CODES = {"input": "A5.post-v10-input", "output": "A5.post-v10-output"}
_LATER = {
    "input": "v10 says `args` (and `iter`, `ctx`, `workload` for the rest)",
    "output": "v10 says `outcome.result` in a policy, `_prev` or a label in a task",
}
_OLD = {
    "vars": "state is `ctx`, written with `set_ctx` in a task's policy",
    "_err": "errors are `outcome.error`, in a task's policy",
    "results": "a result is `_prev`, a task's label, or `event.result` in an arc",
    "_result": "a result is `_prev` or a task's label",
    "response": "a task's outcome is `outcome.result`, in its policy",
}


def check(report: Report) -> None:
    names = gather(report)
    for use in report.reading.templates:
        for path in use.template.paths:
            _check_path(report, names, use, path)


def _check_path(report: Report, names: Names, use: TemplateUse, path: NamePath) -> None:
    root = str(path[0])
    if root == "keychain":
        _check_keychain(report, names, use, path)
    elif root in _visible(use):
        check_fields(report, names, use, path)
    elif root in RESERVED:
        _not_visible(report, names, use, root)
    elif not _is_label_here(names, use, root):
        _bare_name(report, names, use, path)


def _visible(use: TemplateUse) -> frozenset[str]:
    if use.scope is Scope.LOOP and use.path.count("loop") > 1:
        return Scope.INNER_LOOP.names
    return use.scope.names


def _check_keychain(report: Report, names: Names, use: TemplateUse, path: NamePath) -> None:
    refused = _refuses_keychain(report, use)
    if refused:
        code, where = refused
        message = f"`keychain` is not visible in {where}: its values are for tools only"
        hint = "read it in a task, where the tool needs it (url, headers, bodies, SQL, python args)"
        tell(report, names, use, code, path, message, hint, Severity.ERROR)
        return
    entry = path[1] if len(path) > 1 else None
    if isinstance(entry, str) and entry not in names.keychain:
        message = f"`keychain.{entry}`: the keychain has no entry `{entry}`"
        declare = f"declare it: keychain: [{{name: {entry}, kind: …}}]"
        hint = report.did_you_mean(entry, names.keychain) or declare
        tell(report, names, use, "G1.unknown-entry", path, message, hint, Severity.ERROR)


def _refuses_keychain(report: Report, use: TemplateUse) -> tuple[str, str] | None:
    """The code and the place's name where a secret must not be read; None where it may."""
    path = use.path
    if use.scope is Scope.POLICY and "set_ctx" in path:
        return "G3.keychain", "`set_ctx`"
    if use.scope is Scope.POLICY and "set_iter" in path:
        return "G3.keychain", "`set_iter`"
    if use.scope is Scope.ARC and not use.is_guard:
        return "G3.keychain", "the `args` of an arc"
    if use.scope is Scope.RESULT:
        return "G3.keychain", Scope.RESULT.title
    if use.scope in (Scope.TASK, Scope.TASK_STORED):
        return _refused_in_task(report, use)
    return None if "keychain" in use.scope.names else ("B4.keychain", use.scope.title)


def _refused_in_task(report: Report, use: TemplateUse) -> tuple[str, str] | None:
    """A task's own keys: what is stored as it stands may hold no secret (rules K32, K45)."""
    kind, key = kind_and_key(report, use.path)
    if kind == "noop" and key == "result":
        return "G3.keychain", "the `result` of a noop"
    if kind == "playbook" and key == "workload":
        return "B4.keychain", "the `workload` of a child playbook"
    return None


def _not_visible(report: Report, names: Names, use: TemplateUse, root: str) -> None:
    message = f"`{root}` is not visible in {use.scope.title}"
    tell(report, names, use, "B4.not-visible", (root,), message, _instead(root, use))


def _instead(root: str, use: TemplateUse) -> str:
    if root == "outcome":
        return "`outcome` is there in `spec.policy.rules` of a task; later read `_prev` or a label"
    if root == "event":
        return "`event` is there in admission and arcs; pass it on with the arc's `args`"
    if use.scope in (Scope.ARC, Scope.ADMIT, Scope.RESULT):
        return "what a pipeline made is `event.result`, or `ctx` when its policy wrote it"
    return "visible here: " + ", ".join(sorted(use.scope.names))


def _is_label_here(names: Names, use: TemplateUse, root: str) -> bool:
    """Whether a name is a task that has run, or may have, when this template is rendered."""
    if not use.scope.in_worker:
        return False
    step = step_of(names, use)
    if step is None:
        # A task of the workbook runs in pipelines it does not know.
        return use.path[0] == "workbook" and root in names.label_steps
    position = step.labels.get(root)
    if position is None or len(use.path) < 4:
        return False
    return step.jumps_back or position <= int(use.path[3])


def _bare_name(report: Report, names: Names, use: TemplateUse, path: NamePath) -> None:
    root = str(path[0])
    if root in names.workload:
        message = f"`{root}` is no scope: it reads `workload.{root}`"
        tell(report, names, use, "B4.bare-name", (root,), message, f"write `workload.{root}`")
        return
    step = step_of(names, use)
    if root in _LATER:
        message = f"`{root}` belongs to a later language than v10"
        tell(report, names, use, _LATER_CODES[root], (root,), message, _LATER[root])
    elif root in _OLD:
        message = f"`{root}` is no scope of v10"
        tell(report, names, use, "B4.bare-name", (root,), message, _OLD[root])
    elif step is not None and root in step.labels:
        _label_elsewhere(report, names, use, root, here=True)
    elif root in names.label_steps:
        _label_elsewhere(report, names, use, root, here=False)
    else:
        message = f"`{root}` is no scope, no label of an earlier task, and not in the workload"
        hint = report.did_you_mean(root, use.scope.names)
        hint = hint or (report.did_you_mean(root, step.labels) if step else None)
        hint = hint or report.did_you_mean(root, names.workload)
        hint = hint or f"write `workload.{root}` if executions bring it"
        tell(report, names, use, "B4.bare-name", (root,), message, hint)


def _label_elsewhere(
    report: Report, names: Names, use: TemplateUse, root: str, *, here: bool
) -> None:
    if here and use.scope.in_worker:
        message = f"`{root}` is a later task of this pipeline: it has no result yet"
        hint = None
    elif here:
        message = f"`{root}` is a label of the pipeline, which {use.scope.title} does not see"
        hint = _instead("_prev", use)
    else:
        message = f"`{root}` is a task of step `{names.label_steps[root]}`, which is not seen here"
        hint = f"pass it on: arc `args` with `event.result`, or `set_ctx` in `{root}`'s policy"
    tell(report, names, use, "B4.label", (root,), message, hint)
