"""The facts that a pipeline reports, each with what it belongs to (section J, rule K40)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

from noetl_core.engine.events import (
    CtxPatched,
    Fact,
    IterPatched,
    ResultStored,
    TaskAttemptFailed,
    TaskDone,
    TaskFailed,
    TaskPolicyEvaluated,
    TaskStarted,
)
from noetl_core.model import Action
from noetl_core.outcomes import Outcome, TaskError
from noetl_core.values import Value

MESSAGE_CHARS = 16 * 1024
"""How much of an error's text is reported."""


class _Context(TypedDict):
    step: str
    run_id: str
    iteration: str | None
    task: str
    attempt: int


@dataclass(slots=True)
class Teller:
    """Where a pipeline stands, and what it says from there."""

    step: str
    run_id: str
    iteration: str | None
    task: str = ""
    attempt: int = 1

    def started(self, kind: str) -> Fact:
        return TaskStarted(**self._here(), kind=kind)

    def stored(self, ref: dict[str, Value]) -> Fact:
        return ResultStored(**self._here(), ref=ref)

    def ended(self, outcome: Outcome, kept: Value, retried: bool) -> Fact:
        meta = outcome.as_json(self.attempt)["meta"]
        if outcome.error is None:
            return TaskDone(**self._here(), result=kept, meta=meta)
        kind = TaskAttemptFailed if retried else TaskFailed
        return kind(**self._here(), error=shortened(outcome.error).as_json(), meta=meta)

    def cut_off(self, error: TaskError) -> Fact:
        return TaskFailed(**self._here(), error=shortened(error).as_json())

    def judged(self, rule: int | str, action: Action, to: str | None, delay: float | None) -> Fact:
        where = to if action is Action.JUMP else None
        return TaskPolicyEvaluated(
            **self._here(), rule=rule, action=action.value, to=where, delay=delay
        )

    def iter_patched(self, patch: dict[str, Value]) -> Fact:
        return IterPatched(**self._here(), set=patch)

    def ctx_patched(self, patch: dict[str, Value], deferred: list[str]) -> CtxPatched:
        by = f"{self.step}/{self.task}"
        return CtxPatched(**self._here(), set=patch, by=by, reason=None, deferred=deferred or None)

    def _here(self) -> _Context:
        return {
            "step": self.step,
            "run_id": self.run_id,
            "iteration": self.iteration,
            "task": self.task,
            "attempt": self.attempt,
        }


def shortened(error: TaskError) -> TaskError:
    """An error whose text fits into an event."""
    if len(error.message) <= MESSAGE_CHARS:
        return error
    return replace(error, message=error.message[: MESSAGE_CHARS - 1] + "…")
