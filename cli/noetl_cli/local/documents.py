"""What local commands print of an execution: the document of a run, and its last words for people.

The shapes are a contract: scripts read them.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from noetl_cli.errors import Exit
from noetl_cli.local.display import Lines, seconds_text
from noetl_cli.local.progress import between, text_of
from noetl_cli.output import Output
from noetl_cli.terminal import printable, printable_lines
from noetl_core.values import Value

if TYPE_CHECKING:
    from noetl_core.engine.state import State
    from noetl_operator.store.port import NewExecution

_CODES = {
    "Succeeded": Exit.OK,
    "Failed": Exit.FAILED,
    "Cancelled": Exit.CANCELLED,
    "Waiting": Exit.WAITING,
}


def exit_code(phase: str) -> Exit:
    return _CODES.get(phase, Exit.WAITING)


def run_document(request: NewExecution, state: State) -> dict[str, Value]:
    """What `noetl run -o json` prints."""
    return {
        "executionId": request.execution_id,
        "playbook": request.playbook_name,
        "phase": state.phase.value,
        "reason": state.reason,
        "message": state.message,
        "result": state.result,
        "ctx": state.ctx,
        "steps": state.steps.as_json(),
        "failures": [_failure(one) for one in state.failures],
        "startedAt": state.started_at,
        "finishedAt": state.finished_at,
        "events": state.seq,
    }


def _failure(failure: Value) -> Value:
    assert isinstance(failure, dict)
    error = failure.get("error")
    known = error if isinstance(error, dict) else {}
    told: dict[str, Value] = {key: known.get(key) for key in ("kind", "code", "message")}
    return {**{k: failure.get(k) for k in ("step", "task", "iteration", "handled")}, "error": told}


def value_text(value: Value) -> str:
    """A value for people: text as it is, everything else as JSON."""
    if isinstance(value, str):
        return "\n".join(printable_lines(value))
    return json.dumps(value, ensure_ascii=False, indent=2)


def print_result(out: Output, value: Value) -> None:
    """The value itself, on stdout."""
    if value is not None:
        out.line(value_text(value))


def last_words(out: Output, request: NewExecution, state: State, data_option: str) -> None:
    """How it ended, for people."""
    lines = Lines(sys.stderr)
    phase = state.phase.value
    look = {"Succeeded": "done", "Failed": "failed", "Cancelled": "cancelled"}.get(phase, "waiting")
    took = ""
    if state.started_at and state.finished_at:
        took = f" in {seconds_text(between(state.started_at, state.finished_at))}"
    reason = f" ({state.reason})" if state.reason and state.reason != phase else ""
    title = lines.style(f"{phase}{reason}", "bold")
    counts = ", ".join(
        f"{number} {name}" for name, number in state.steps.as_json().items() if number
    )
    out.note(f"{lines.glyph(look)} {title}{took}: steps {counts or 'none'}; {state.seq} events")
    if state.message and phase != "Succeeded":
        out.note(f"  {printable(state.message)}")
    for failure in state.failures[:10]:
        assert isinstance(failure, dict)
        out.note(f"  {_where(failure)}: {printable(text_of(failure.get('error')))}")
    more = len(state.failures) - 10 + state.unlisted
    if more > 0:
        out.note(f"  … and {more} more failures")
    short = request.execution_id
    out.note(lines.style(f"  noetl status {short} --local{data_option} shows its steps", "dim"))


def _where(failure: dict[str, Value]) -> str:
    iteration, task = failure.get("iteration"), failure.get("task")
    where = str(failure.get("step"))
    where += f"[{iteration}]" if iteration is not None else ""
    where += f".{task}" if task is not None else ""
    return printable(where) + (" (handled)" if failure.get("handled") else "")
