"""The facts that a log is made of (section J): one frozen class per event name.

The worker and the control plane make facts; the store wraps each into an `Event` with its place in
the log. `evolve` is the only reader that changes state. Facts are only ever added to: a new field
has a default, and a field never changes its meaning.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from typing import ClassVar

from noetl_core.values import Value

CONTEXT = ("step", "run_id", "task", "attempt", "iteration")
"""Fields of a fact that stand in the envelope; all others are its payload."""


class Source(StrEnum):
    CONTROL = "control"
    WORKER = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that happened, and what it happened to."""

    name: ClassVar[str]
    entity: ClassVar[str] = "execution"
    source: ClassVar[Source] = Source.CONTROL

    step: str | None = None
    run_id: str | None = None
    """The step-run (or, before it is admitted, the token that would become it)."""
    task: str | None = None
    attempt: int | None = None
    iteration: str | None = None
    """`"7"`, nested `"2.5"` (rule K27)."""

    @property
    def status(self) -> str | None:
        """`ok`, `error` or nothing: what the envelope shows."""
        return None

    def payload(self) -> dict[str, Value]:
        """What is particular to this event; fields at their defaults are left out."""
        found: dict[str, Value] = {}
        for name, required, default in _payload_fields(type(self)):
            value: Value = getattr(self, name)
            if required or value != default:
                found[name] = value
        return found


_FIELDS: dict[type[Fact], tuple[tuple[str, bool, Value], ...]] = {}


def _payload_fields(kind: type[Fact]) -> tuple[tuple[str, bool, Value], ...]:
    """Name, whether it must be given, and default of each field that is payload."""
    found = _FIELDS.get(kind)
    if found is None:
        own = [f for f in fields(kind) if f.name not in CONTEXT]
        found = tuple(
            (f.name, f.default is MISSING, None if f.default is MISSING else f.default) for f in own
        )
        _FIELDS[kind] = found
    return found


class Failing:
    """Facts that say `error` when they carry one."""

    __slots__ = ()
    error: Value

    @property
    def status(self) -> str:
        return "error" if self.error else "ok"


# What the control plane decides


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRequested(Fact):
    name: ClassVar[str] = "playbook.execution.requested"
    playbook: str
    digest: str
    engine_version: str
    execution: dict[str, Value]
    """`{id, name, namespace}` as templates see it."""
    workload: Value = None
    """The merged workload, inline or a reference."""
    parent: Value = None
    """Of a child: `{execution_id, run_id, iteration, task, depth, max_depth}`."""
    rerun_of: Value = None
    """`{execution_id, from_step}`."""
    deadline_at: str | None = None
    """When the caller's time limit ends it (ISO 8601)."""
    depth: int = 0
    """How many executions stand above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEvaluated(Fact):
    name: ClassVar[str] = "playbook.request.evaluated"
    valid: bool
    problems: list[Value] | None = None
    keychain: list[str] | None = None
    """Entries that a worker resolves before the first step; None where there are none."""

    @property
    def status(self) -> str:
        return "ok" if self.valid else "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsAdopted(Fact):
    """A rerun takes over what an earlier execution had done (rule K47)."""

    name: ClassVar[str] = "steps.adopted"
    steps: list[Value]
    """`[{step, run_id, result}]`."""
    ctx: dict[str, Value]
    args: dict[str, Value] | None = None
    """What the first token will carry; it will stand at `step`."""
    event: Value = None
    """The boundary event that first brought a token there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowStarted(Fact):
    """The first token: `run_id` is its id, `step` where it stands, `args` what it carries."""

    name: ClassVar[str] = "workflow.started"
    args: Value = None
    event: Value = None
    """Of a rerun: the boundary event that first brought a token to the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitEvaluated(Fact):
    name: ClassVar[str] = "policy.admit.evaluated"
    entity: ClassVar[str] = "step"
    allow: bool
    rule: int | str
    """The index of the rule that matched, or `else`, or `none`."""
    waits: bool = False
    """Denied for now: the token waits at its gate (rule C3)."""
    deadline_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepScheduled(Fact):
    name: ClassVar[str] = "step.scheduled"
    entity: ClassVar[str] = "step"
    args: dict[str, Value]
    final: bool = False
    deadline_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSkipped(Fact):
    name: ClassVar[str] = "step.skipped"
    entity: ClassVar[str] = "step"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRedelivered(Fact):
    """A worker was lost (or gave the run back): another one gets it."""

    name: ClassVar[str] = "step.redelivered"
    entity: ClassVar[str] = "step"
    epoch: int
    """The lease epoch that ended."""
    reason: str
    counts: bool = True
    """Whether it counts against `max_redeliveries`; a graceful hand-back does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCancelled(Fact):
    name: ClassVar[str] = "step.cancelled"
    entity: ClassVar[str] = "step"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStarted(Fact):
    name: ClassVar[str] = "loop.started"
    entity: ClassVar[str] = "loop"
    total: int
    """Elements of the outermost list."""
    items: Value = None
    """They themselves, inline or a reference."""
    exec: str = "local"
    window: int = 1
    """Iterations at once, of the outermost level."""
    deadline_at: str | None = None
    levels: int = 1
    """How many loops stand inside each other."""
    leased: int = 0
    """How many of them, from the outermost, the control plane schedules."""
    parallel: int = 0
    """The deepest parallel level, from 1; 0 where all are sequential."""
    best_effort: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOpened(Fact):
    """An iteration of an outer loop begins, and with it the loop inside (rule E4).

    Inside a lease the worker says so, except for the first list, which the control plane made.
    """

    name: ClassVar[str] = "loop.opened"
    entity: ClassVar[str] = "loop"
    total: int
    items: Value = None
    window: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationScheduled(Fact):
    name: ClassVar[str] = "loop.iteration.scheduled"
    entity: ClassVar[str] = "iteration"


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationCancelled(Fact):
    """An iteration will not end by itself: its loop stops, or its execution does."""

    name: ClassVar[str] = "loop.iteration.cancelled"
    entity: ClassVar[str] = "iteration"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopDone(Fact):
    name: ClassVar[str] = "loop.done"
    entity: ClassVar[str] = "loop"
    result: Value
    loop: dict[str, Value]
    """`{total, done, failed, failures}` (rules E5, K26)."""

    @property
    def status(self) -> str:
        return "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class NextEvaluated(Fact):
    name: ClassVar[str] = "next.evaluated"
    entity: ClassVar[str] = "step"
    mode: str
    matched: list[int]
    fired: list[dict[str, Value]]
    """`[{arc, step, run_id}]`."""
    args: list[Value] | None = None
    """What each fired token carries, in the same order."""
    places: list[Value] | None = None
    """For each fired arc the place of a join it fills, or null (rule C9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinFilled(Fact):
    """A join took one token from each place; `run_id` is the token that they became (rule C9)."""

    name: ClassVar[str] = "join.filled"
    entity: ClassVar[str] = "step"
    tokens: list[str]
    """In the order of the arcs."""
    args: dict[str, Value]
    by: str
    """The token that came last: admission sees its event."""
    missing: list[str] | None = None
    """Places without a token, of a join that fires half full at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinDropped(Fact):
    name: ClassVar[str] = "join.dropped"
    entity: ClassVar[str] = "step"
    tokens: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRequested(Fact):
    name: ClassVar[str] = "child.requested"
    entity: ClassVar[str] = "task"
    child: str
    playbook: str
    wait: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildFinished(Fact):
    name: ClassVar[str] = "child.finished"
    entity: ClassVar[str] = "task"
    child: str
    phase: str
    reason: str
    message: str | None
    result: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSuspended(Fact):
    name: ClassVar[str] = "execution.suspended"
    by: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionResumed(Fact):
    name: ClassVar[str] = "execution.resumed"
    by: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionEnding(Fact):
    """The execution will end so: from here no new token is made (rule C7)."""

    name: ClassVar[str] = "execution.ending"
    phase: str
    reason: str
    message: str
    result: Value = None
    """Of a success: what it will end with, once `final_step` is through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionCancelled(Fact):
    """Someone asked for the end, or a time limit of the caller passed."""

    name: ClassVar[str] = "execution.cancelled"
    mode: str
    """`graceful` or `now`."""
    cause: str = "Cancelled"
    """`Cancelled` or `DeadlineExceeded`."""
    by: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowFinished(Fact):
    name: ClassVar[str] = "workflow.finished"
    phase: str
    reason: str
    message: str | None
    result: Value
    steps: dict[str, Value]
    failures: list[Value]

    @property
    def status(self) -> str:
        return "ok" if self.phase == "Succeeded" else "error"


# What a worker reports


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFact(Fact):
    source: ClassVar[Source] = Source.WORKER
    entity: ClassVar[str] = "task"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeychainResolved(Failing, WorkerFact):
    name: ClassVar[str] = "keychain.resolved"
    entity: ClassVar[str] = "execution"
    entries: list[str]
    error: Value = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted(WorkerFact):
    name: ClassVar[str] = "step.started"
    entity: ClassVar[str] = "step"
    worker: str
    epoch: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStarted(WorkerFact):
    name: ClassVar[str] = "task.started"
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAttemptFailed(Failing, WorkerFact):
    """A run of a task failed and will be tried again."""

    name: ClassVar[str] = "task.attempt.failed"
    error: Value
    meta: Value = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDone(WorkerFact):
    name: ClassVar[str] = "task.done"
    result: Value
    meta: Value = None

    @property
    def status(self) -> str:
        return "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailed(Failing, WorkerFact):
    name: ClassVar[str] = "task.failed"
    error: Value
    meta: Value = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPolicyEvaluated(WorkerFact):
    name: ClassVar[str] = "policy.task.evaluated"
    rule: int | str
    """The index of the rule that matched, `else`, `none`, or `default` without a policy."""
    action: str
    to: str | None
    delay: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CtxPatched(Fact):
    """`ctx` was written: by a task's policy (then it has a run), or from outside."""

    name: ClassVar[str] = "ctx.patched"
    entity: ClassVar[str] = "ctx"
    set: dict[str, Value]
    by: str
    reason: str | None
    patch_id: str | None = None
    """Of a patch from outside: each is applied once."""
    deferred: list[str] | None = None
    """Keys of `set` that a reducer takes in at the end of the loop (rule K29)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IterPatched(WorkerFact):
    name: ClassVar[str] = "iter.patched"
    entity: ClassVar[str] = "iteration"
    set: dict[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationStarted(WorkerFact):
    name: ClassVar[str] = "loop.iteration.started"
    entity: ClassVar[str] = "iteration"
    worker: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationDone(WorkerFact):
    name: ClassVar[str] = "loop.iteration.done"
    entity: ClassVar[str] = "iteration"
    result: Value
    writes: dict[str, Value] | None = None
    """The last write of this iteration to each key that has a reducer (rule K29)."""

    @property
    def status(self) -> str:
        return "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationFailed(Failing, WorkerFact):
    name: ClassVar[str] = "loop.iteration.failed"
    entity: ClassVar[str] = "iteration"
    error: Value
    writes: dict[str, Value] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultStored(WorkerFact):
    name: ClassVar[str] = "result.stored"
    ref: dict[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone(WorkerFact):
    name: ClassVar[str] = "step.done"
    entity: ClassVar[str] = "step"
    result: Value

    @property
    def status(self) -> str:
        return "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailed(Failing, WorkerFact):
    name: ClassVar[str] = "step.failed"
    entity: ClassVar[str] = "step"
    error: Value
    """The failing outcome's error, with `task` and, in a loop, `iteration` (rule C12)."""
    loop: Value = None
    """Of a loop step: `{total, done, failed, failures}`."""
    args: Value = None
    """Of a token that failed at its gate: what it carried."""
    handled: bool = False
    """An arc took it (rule C7)."""


def _every(kind: type[Fact]) -> list[type[Fact]]:
    found: list[type[Fact]] = []
    for child in kind.__subclasses__():
        found += ([child] if "name" in vars(child) else []) + _every(child)
    return found


FACTS: dict[str, type[Fact]] = {kind.name: kind for kind in _every(Fact)}
"""Every event name and its class."""


class UnknownFact(ValueError):
    """A log or a report holds an event that this version does not know."""


def fact_of(name: str, context: dict[str, Value], payload: dict[str, Value]) -> Fact:
    """A fact from its JSON parts; unknown payload keys are those of a newer version and ignored."""
    kind = FACTS.get(name)
    if kind is None:
        raise UnknownFact(name)
    known = {field for field, _, _ in _payload_fields(kind)}
    given = {key: value for key, value in payload.items() if key in known}
    here = {key: context[key] for key in CONTEXT if context.get(key) is not None}
    try:
        return kind(**here, **given)  # type: ignore[arg-type]  # its own JSON, or checked by wire
    except TypeError as error:
        raise UnknownFact(f"{name}: {error}") from None


@dataclass(frozen=True, slots=True)
class Event:
    """A fact with its place in the log of one execution."""

    event_id: str
    execution_id: str
    seq: int
    timestamp: str
    source: str
    fact: Fact

    def as_json(self) -> dict[str, Value]:
        """The envelope of section J."""
        fact = self.fact
        return {
            "event_id": self.event_id,
            "execution_id": self.execution_id,
            "seq": self.seq,
            "name": fact.name,
            "timestamp": self.timestamp,
            "source": self.source,
            "entity_type": fact.entity,
            "entity_id": entity_id(self.execution_id, fact),
            "step": fact.step,
            "run_id": fact.run_id,
            "task": fact.task,
            "attempt": fact.attempt,
            "iteration": fact.iteration,
            "status": fact.status,
            "payload": fact.payload(),
        }


def entity_id(execution_id: str, fact: Fact) -> str:
    """What the fact is about: the execution, a run, an iteration or a task of it."""
    if fact.run_id is None:
        return execution_id
    parts = [fact.run_id, fact.iteration, fact.task]
    return "/".join(part for part in parts if part)
