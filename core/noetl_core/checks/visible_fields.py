"""What the scopes hold: fields of `execution`, `event`, `outcome`, keys of `workload` and `iter`.

A field that the language does not have is never there; of the author's own keys only what looks
like a slip is told, since an execution may bring more than the file shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from noetl_core.checks.report import NamePath, Report
from noetl_core.checks.visible_names import (
    Names,
    StepNames,
    kind_and_key,
    step_of,
    tell,
)
from noetl_core.reading import TemplateUse
from noetl_core.scopes import ITER_KEYS

_KNOWN_FIELDS = {
    "execution": frozenset({"id", "name", "namespace", "idempotency_key"}),
    "event": frozenset(["name", "step", "run_id", "status", "result", "error", "loop", "args"]),
    "outcome": frozenset(["status", "result", "error", "meta", "http", "pg", "py"]),
}
_FIELD_CODES = {
    "execution": "B4.execution-field",
    "event": "C12.event-field",
    "outcome": "D6.outcome-field",
}


def check_fields(report: Report, names: Names, use: TemplateUse, path: NamePath) -> None:
    """Look at what a path reads inside a scope that is visible."""
    look = _LOOKS.get(str(path[0]))
    if look is not None and len(path) > 1:
        look(report, names, use, path)


def _check_known(report: Report, names: Names, use: TemplateUse, path: NamePath) -> None:
    """`execution`, `event` and `outcome` hold what the language says, and nothing else."""
    root, key = str(path[0]), path[1] if len(path) > 1 else None
    known = _KNOWN_FIELDS[root]
    if root == "execution" and not use.scope.in_worker:
        known = known - {"idempotency_key"}
    if root == "outcome" and _kind_is_open(report, use):
        return
    if isinstance(key, str) and key not in known:
        message = f"`{root}.{key}` is never there"
        hint = report.did_you_mean(key, known) or f"`{root}` has " + ", ".join(sorted(known))
        tell(report, names, use, _FIELD_CODES[root], path, message, hint)


def _kind_is_open(report: Report, use: TemplateUse) -> bool:
    kind, _ = kind_and_key(report, use.path)
    tool = report.kinds.get(kind)
    return tool is None or tool.keys is None


def _check_workload(report: Report, names: Names, use: TemplateUse, path: NamePath) -> None:
    """An execution may bring further keys; only what looks like a slip is told."""
    key = path[1] if len(path) > 1 else None
    if isinstance(key, str) and names.workload and key not in names.workload:
        close = report.nearest(key, names.workload)
        if close:
            message = f"the workload has no `{key}`"
            hint = f"did you mean `workload.{close}`?"
            tell(report, names, use, "B4.workload-key", path, message, hint)


def _check_iter(report: Report, names: Names, use: TemplateUse, path: NamePath) -> None:
    step = step_of(names, use)
    if step is None or len(path) < 2:
        return
    # A nested loop's own keys are rendered inside the iteration of the loop around it.
    level = use.path.count("loop") - 1 if "tool" not in use.path[:3] else len(step.iterators)
    iterators = step.iterators[:level]
    for depth, key in enumerate(path[1:]):
        if key != "parent":
            _check_iter_key(report, names, use, step, iterators, depth, path)
            return
        if depth + 1 >= len(iterators):
            message = "`iter.parent` is there in nested loops only"
            if depth:
                message = f"`iter{'.parent' * (depth + 1)}`: the loops are not nested that deep"
            tell(report, names, use, "E4.iter-parent", path, message, None)
            return


def _check_iter_key(
    report: Report,
    names: Names,
    use: TemplateUse,
    step: StepNames,
    iterators: list[str],
    depth: int,
    path: NamePath,
) -> None:
    """Only what looks like a slip: another loop's iterator, or a name close to one of these."""
    key = path[depth + 1]
    own = iterators[len(iterators) - 1 - depth] if depth < len(iterators) else None
    there = {*step.written, *ITER_KEYS, *([own] if own else [])}
    if not isinstance(key, str) or key in there:
        return
    if key in iterators:
        up = len(iterators) - 1 - iterators.index(key)
        message = f"`{key}` is the iterator of another loop than the one read here"
        hint = f"write `iter{'.parent' * up}.{key}`"
    else:
        close = report.nearest(key, there)
        if close is None:
            return
        message = f"nothing sets `iter.{key}`"
        hint = f"did you mean `{close}`?"
    tell(report, names, use, "E4.iter-key", path, message, hint)


_Look = Callable[[Report, Names, TemplateUse, NamePath], None]
_LOOKS: Mapping[str, _Look] = {
    "execution": _check_known,
    "event": _check_known,
    "outcome": _check_known,
    "workload": _check_workload,
    "iter": _check_iter,
}
