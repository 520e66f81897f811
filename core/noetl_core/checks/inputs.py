"""What single tools take that can't be seen key by key (rules I1, I3, K34, K44)."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping

from noetl_core.checks.report import Report, TaskAt
from noetl_core.problems import Problem, Severity, path_text
from noetl_core.values import Value

LONGEST_CODE = 100_000
"""Characters of python code that are parsed; longer code is judged when it runs."""
ALL_CODE = 1_000_000
"""Characters of python code that are parsed in one playbook."""

_BODIES = ("json", "form", "files", "body")


def check(report: Report) -> None:
    left = ALL_CODE
    with warnings.catch_warnings():
        # Python warns of odd escapes while it parses; that is the author's, not ours to print.
        warnings.simplefilter("ignore")
        for at in report.tasks:
            match at.resolved.kind:
                case "http":
                    _one_body(report, at)
                case "postgres" if at.step is not None:
                    _something_to_run(report, at)
                case "python" if isinstance(code := at.task.inputs.get("code"), str):
                    left -= len(code)
                    if left > 0 and len(code) <= LONGEST_CODE:
                        _syntax(report, at, code)


def _one_body(report: Report, at: TaskAt) -> None:
    given = [key for key in _BODIES if _given(at.resolved.inputs, key)]
    if len(given) < 2:
        return
    second = next((key for key in reversed(given) if key in at.task.inputs), given[1])
    others = " and ".join(f"`{key}`" for key in given)
    message = f"a request has one body, not {others}"
    report.at_key(Severity.ERROR, "K34.one-body", (*at.path, second), message, "keep one of them")


def _given(inputs: Mapping[str, Value], key: str) -> bool:
    return inputs.get(key) is not None


def _something_to_run(report: Report, at: TaskAt) -> None:
    inputs = at.resolved.inputs
    if "command" in inputs:
        if "rows" in inputs or "table" in inputs:
            message = "a task runs a `command` or fills a `table` with `rows`, not both"
            report.error("I1.command-and-rows", at.path, message)
        return
    if "rows" not in inputs and "table" not in inputs:
        report.missing(at.path, "command", "`command` is missing", "the SQL to run")
    elif ("rows" in inputs) != ("table" in inputs):
        missing = "table" if "rows" in inputs else "rows"
        message = f"`{missing}` is missing: a `table` is filled with `rows`"
        report.missing(at.path, missing, message)


def _syntax(report: Report, at: TaskAt, code: str) -> None:
    """Rule K44 lets wrong code fail when it runs; its author would rather know now."""
    try:
        ast.parse(code)
    except SyntaxError as error:
        _wrong_code(report, at, error)
    except (ValueError, RecursionError, MemoryError):
        # Too deep, or a null byte: left to the child process that runs it.
        return


def _wrong_code(report: Report, at: TaskAt, error: SyntaxError) -> None:
    place = report.place((*at.path, "code"))
    blamed = (error.text or "").strip()
    line, column = report.reading.snippet_position(place.node, blamed)
    message = f"this is not Python: {error.msg} (line {error.lineno} of the code)"
    path = path_text(place.written)
    report.problems.add(Problem("I3.python-syntax", Severity.WARNING, path, line, column, message))
