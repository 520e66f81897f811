"""What a run looks like to a person, folded from its events: one line per step.

Pure: events in, lines out. The live display, the plain one, `watch` and `status` all read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from noetl_core.engine import events as facts
from noetl_core.engine.events import Event, Fact
from noetl_core.engine.ids import parts
from noetl_core.values import Value


@dataclass(slots=True)
class LoopProgress:
    """Iterations of the loops of a step, the innermost ones."""

    levels: int = 1
    total: int | None = None
    """None: not known before the end (nested loops)."""
    done: int = 0
    failed: int = 0


@dataclass(slots=True)
class StepProgress:
    """Everything that happened to one step so far."""

    step: str
    state: str = "waiting"
    """waiting (at a gate), queued, running, retrying, done, failed, skipped, cancelled."""
    runs: int = 0
    active: int = 0
    attempt: int = 1
    """The highest attempt of a task of the run at hand."""
    loop: LoopProgress | None = None
    since: str | None = None
    until: str | None = None
    note: str | None = None
    """The last error, or why it waits."""
    tasks: dict[str, int] = field(default_factory=dict)
    """Attempts by task."""

    def seconds(self, now: str) -> float | None:
        """How long it took, or takes."""
        return None if self.since is None else between(self.since, self.until or now)


class Progress:
    """The steps of one execution, in the order in which they were first seen."""

    def __init__(self) -> None:
        self.steps: dict[str, StepProgress] = {}
        self.last: str | None = None
        """The time of the last event."""

    def take(self, event: Event) -> StepProgress | None:
        """Fold an event in; answers the step when people should hear of it."""
        self.last = event.timestamp
        fact = event.fact
        if fact.step is None:
            return None
        line = self.steps.get(fact.step)
        if line is None:
            line = self.steps[fact.step] = StepProgress(fact.step)
        return line if _fold(line, fact, event.timestamp) else None

    @property
    def waiting(self) -> list[StepProgress]:
        return [line for line in self.steps.values() if line.state == "waiting"]


def _fold(line: StepProgress, fact: Fact, at: str) -> bool:
    """Change a step by a fact; whether that is worth a line of its own."""
    match fact:
        case facts.AdmitEvaluated():
            return _admitted(line, fact, at)
        case facts.StepScheduled():
            _scheduled(line, at)
        case facts.StepStarted():
            line.state = "running"
        case facts.LoopStarted():
            _loop(line, fact)
        case facts.IterationDone() | facts.IterationFailed():
            _iteration(line, fact)
        case facts.TaskStarted():
            _task(line, fact)
            return False
        case facts.TaskAttemptFailed():
            line.state, line.note = "retrying", _told(fact, fact.error)
        case facts.StepRedelivered():
            line.state, line.note = "queued", f"again: {fact.reason}"
        case facts.StepDone() | facts.LoopDone():
            _ended(line, "done", at)
        case facts.StepFailed():
            _ended(line, "failed", at)
            line.note = text_of(fact.error)
        case facts.StepSkipped():
            _ended(line, "skipped", at, ran=False)
            line.note = fact.reason
        case facts.StepCancelled():
            _ended(line, "cancelled", at)
            line.note = fact.reason
        case _:
            return False
    return not isinstance(fact, facts.StepStarted | facts.IterationDone | facts.IterationFailed)


def _admitted(line: StepProgress, fact: facts.AdmitEvaluated, at: str) -> bool:
    if not fact.waits or (line.state == "waiting" and line.since is not None):
        return False
    line.state, line.since, line.until = "waiting", at, None
    line.note = f"until {fact.deadline_at}" if fact.deadline_at else None
    return True


def _scheduled(line: StepProgress, at: str) -> None:
    line.runs += 1
    line.active += 1
    line.state, line.attempt, line.note, line.until = "queued", 1, None, None
    if line.active == 1:
        line.since = at


def _loop(line: StepProgress, fact: facts.LoopStarted) -> None:
    line.state = "running"
    if line.loop is None or line.active <= 1:
        line.loop = LoopProgress(fact.levels, fact.total if fact.levels == 1 else None)
    elif line.loop.total is not None:
        line.loop.total += fact.total


def _iteration(line: StepProgress, fact: facts.IterationDone | facts.IterationFailed) -> None:
    loop = line.loop
    if loop is None or fact.iteration is None or parts(fact.iteration) != loop.levels:
        return
    if isinstance(fact, facts.IterationDone):
        loop.done += 1
    else:
        loop.failed += 1
        line.note = _told(fact, fact.error)


def _task(line: StepProgress, fact: facts.TaskStarted) -> None:
    line.state = "running"
    attempt = fact.attempt or 1
    line.attempt = max(line.attempt, attempt)
    if fact.task is not None:
        line.tasks[fact.task] = max(line.tasks.get(fact.task, 1), attempt)


def _ended(line: StepProgress, state: str, at: str, *, ran: bool = True) -> None:
    if ran:
        line.active = max(0, line.active - 1)
    line.state = "running" if line.active else state
    line.until = None if line.active else at
    if line.since is None:
        line.since = at


def _told(fact: Fact, error: Value) -> str:
    where = f"[{fact.iteration}] " if fact.iteration is not None else ""
    return where + text_of(error)


def text_of(error: Value) -> str:
    """An error in one line: its kind, code and message."""
    if not isinstance(error, dict):
        return str(error)
    head = " ".join(str(error[key]) for key in ("kind", "code") if error.get(key))
    return f"{head}: {error.get('message')}" if head else str(error.get("message"))


def between(start: str, end: str) -> float:
    """Seconds from one moment to another."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def folded(events: Iterable[Event]) -> Progress:
    progress = Progress()
    for event in events:
        progress.take(event)
    return progress
