"""What a pipeline asks of whoever drives it, and what it is told (rules D1–D9).

The pipeline is a generator that yields one of these and receives the answer; it knows no clock, no
network and no tool. The worker drives it for real, tests drive it with made-up outcomes.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

from noetl_core.engine.events import CtxPatched, Fact
from noetl_core.outcomes import Outcome, TaskError
from noetl_core.values import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTask:
    """Run a tool once. Answer: its `Outcome`."""

    label: str
    kind: str
    inputs: dict[str, Value]
    """The task's own keys, rendered; never to be rendered again (rule B5)."""
    scope: dict[str, Value]
    """For what only the tool can render: SQL, where each template is bound as a parameter."""
    spec: dict[str, Value]
    """The effective spec (rule F1)."""
    attempt: int
    task_run: int
    """How many times this pipeline ran this very task before. With the run, the iteration and the
    label it names this call for ever, however often other tasks were tried again."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait before a retry. Answer: None."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Emit:
    """Report a fact; order counts, waiting does not. Answer: None."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class PatchCtx:
    """Write to `ctx` and learn whether the control plane took it. Answer: `PatchAnswer`.

    The fact is to be reported as it is, as the last of its batch. Where it was taken, the pipeline
    writes it into the lease's own view of `ctx`.
    """

    fact: CtxPatched

    @property
    def set(self) -> dict[str, Value]:
        return self.fact.set

    @property
    def by(self) -> str:
        """`step/task`."""
        return self.fact.by


@dataclass(frozen=True, slots=True)
class PatchAnswer:
    """None: taken. Otherwise the error that ends the iteration (`ctx_conflict`, `limit`)."""

    error: TaskError | None = None


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read a stored result that a template needs (rule H2). Answer: its value, or a `TaskError`."""

    ref: dict[str, Value]


@dataclass(frozen=True, slots=True)
class Keep:
    """Store content under its digest (rule H1). Answer: None, or a `TaskError`."""

    ref: dict[str, Value]
    content: bytes


Request: TypeAlias = RunTask | Sleep | Emit | PatchCtx | Fetch | Keep
Answer: TypeAlias = "Outcome | PatchAnswer | TaskError | Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineEnd:
    """How a pipeline ended; `result` is `_prev` at its end as events carry it (rule H1)."""

    result: Value = None
    error: TaskError | None = None
    task: str | None = None
    """The task that failed."""
    writes: dict[str, Value] | None = None
    """The last write to each `ctx` key that has a reducer."""

    @property
    def ok(self) -> bool:
        return self.error is None


class Interrupted(Exception):
    """Thrown into a pipeline to end it over any policy: a step timeout or a cancellation.

    The pipeline may still yield facts to report, then it ends with this error. Only a pipeline that
    was started can be interrupted.
    """

    def __init__(self, error: TaskError) -> None:
        super().__init__(error.message)
        self.error = error


Pipeline: TypeAlias = Generator[Request, Answer, PipelineEnd]
