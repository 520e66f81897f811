"""What the log of one execution adds up to: tokens, runs, loops, `ctx` and how it ends.

Only `evolve` writes here. The state is small on purpose: it holds what is still in motion plus
counters, never one entry per finished iteration. The parts are frozen and replaced; the `State`
that holds them is copied once per decision and then written in place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from noetl_core.values import Value

MAX_FAILURES = 100
"""How many failures an execution, and a loop, lists by name; the rest is counted."""


class Phase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    WAITING = "Waiting"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def is_final(self) -> bool:
        return self in _FINAL


_FINAL = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED})


class Reason(StrEnum):
    """Why an execution ended as it did (rules K16, K46)."""

    SUCCEEDED = "Succeeded"
    SUCCEEDED_WITH_HANDLED_FAILURES = "SucceededWithHandledFailures"
    STEP_FAILED = "StepFailed"
    KEYCHAIN_ERROR = "KeychainError"
    TEMPLATE_ERROR = "TemplateError"
    LIMIT_EXCEEDED = "LimitExceeded"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    JOIN_INCOMPLETE = "JoinIncomplete"
    FINAL_STEP_FAILED = "FinalStepFailed"
    RESULT_ERROR = "ResultError"
    INVALID_PLAYBOOK = "InvalidPlaybook"
    CANCELLED = "Cancelled"


@dataclass(frozen=True, slots=True)
class Boundary:
    """A boundary event as admission and arcs see it (rule C12)."""

    name: str
    step: str | None = None
    run_id: str | None = None
    status: str | None = None
    result: Value = None
    error: Value = None
    loop: Value = None
    args: Value = None

    def as_json(self) -> dict[str, Value]:
        """`event` as templates see it; of the entry token there is only a name (rule C12)."""
        if self.step is None:
            return {"name": self.name}
        return {
            "name": self.name,
            "step": self.step,
            "run_id": self.run_id,
            "status": self.status,
            "result": self.result,
            "error": self.error,
            "loop": self.loop,
            "args": self.args,
        }


@dataclass(frozen=True, slots=True)
class Token:
    """A token on its way into a step."""

    id: str
    step: str
    args: dict[str, Value]
    event: Boundary
    arrived_at: str
    deadline_at: str | None = None
    """Of a token at a gate: when its wait ends."""
    judged: int = 0
    """How often admission looked at it."""
    ctx_version: int = 0
    """Which `ctx` admission saw last."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One open list of a distributed loop: the outermost, or that of an open outer iteration."""

    total: int
    items: Value
    """Inline or a reference."""
    window: int
    next: int = 0
    """The next index to schedule."""
    open: int = 0
    """Elements scheduled and not ended."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Something a worker may hold: a step-run, or one iteration of a distributed loop."""

    iteration: str | None = None
    epoch: int = 0
    """How many leases of it have ended without an end of the run."""
    redeliveries: int = 0
    started: bool = False
    reported: int = 0
    """How many facts of the current epoch are in the log."""
    total: int = 0
    """Of a lease that covers a local loop: innermost iterations of the lists that were opened."""
    done: int = 0
    failed: int = 0


def reported(lease: Lease) -> Lease:
    """A lease that has reported one more fact."""
    return Lease(
        lease.iteration,
        lease.epoch,
        lease.redeliveries,
        True,
        lease.reported + 1,
        lease.total,
        lease.done,
        lease.failed,
    )


@dataclass(frozen=True, slots=True)
class Written:
    """What a loop has written to one `ctx` key that has no reducer (rules E7, K29)."""

    value: Value
    by: str | None
    """The only iteration that wrote it so far; None when several did."""


@dataclass(frozen=True, slots=True)
class LoopState:
    """Where a loop stands."""

    frames: dict[str, Frame]
    """Of the levels that the control plane schedules, by the path of the outer iteration: `""` is
    the outermost list."""
    outermost: int
    """Elements of the outermost list."""
    levels: int = 1
    leased: int = 0
    """How many levels the control plane schedules: an iteration of the last of them is a lease."""
    parallel: int = 0
    """The deepest parallel level, from 1; 0 where all are sequential."""
    best_effort: bool = False
    deadline_at: str | None = None
    total: int = 0
    """Innermost iterations of the lists that were opened; complete only at the end."""
    done: int = 0
    failed: int = 0
    failures: tuple[Value, ...] = ()
    """Up to `MAX_FAILURES` of `{iteration, task, error}`."""
    writes: dict[str, Written] = field(default_factory=dict)
    stopping: Value = None
    """The error that stops the rest, of a fail-fast loop that had one."""


@dataclass(frozen=True, slots=True)
class Run:
    """A step-run that is not finished."""

    step: str
    args: dict[str, Value]
    scheduled_at: str
    leases: dict[str, Lease]
    """By lease id: of a plain step just its own id."""
    loop: LoopState | None = None
    deadline_at: str | None = None
    final: bool = False
    cancelling: str | None = None
    """Why it is being cancelled: its workers were told and have not answered yet."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Rules K13, K41."""

    total: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0

    def as_json(self) -> dict[str, Value]:
        return {
            "total": self.total,
            "done": self.done,
            "failed": self.failed,
            "skipped": self.skipped,
            "cancelled": self.cancelled,
        }


@dataclass(frozen=True, slots=True)
class Ending:
    """How the execution will end once nothing runs any more."""

    phase: Phase
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Child:
    """A child execution that is not finished, or whose starter still runs."""

    run_id: str
    step: str
    task: str
    iteration: str | None
    wait: bool
    finished: bool = False
    """It is kept until the run that asked for it ends: that one may ask again."""


@dataclass(slots=True)
class State:
    """One execution. `seq` is the number of the last event folded in."""

    execution_id: str = ""
    seq: int = 0
    phase: Phase = Phase.PENDING
    digest: str = ""
    depth: int = 0
    parent: Value = None
    """Of a child: who waits for it (see `ExecutionRequested.parent`)."""
    started_at: str | None = None
    finished_at: str | None = None
    deadline_at: str | None = None
    keychain: Lease | None = None
    """What a worker holds while it resolves the keychain."""
    adopted: Token | None = None
    """Of a rerun that has not started: where its first token will stand (rule K47)."""
    pending: dict[str, Token] = field(default_factory=dict)
    """Arrived and not judged yet: only while suspended, or between two decisions."""
    waiting: dict[str, Token] = field(default_factory=dict)
    """At a gate (rule C3)."""
    places: dict[str, dict[str, list[Token]]] = field(default_factory=dict)
    """Of joins: step → inbound arc (`source/index`) → tokens in order of arrival (rule C9)."""
    runs: dict[str, Run] = field(default_factory=dict)
    leases: dict[str, str] = field(default_factory=dict)
    """Of iterations: lease → run. The lease of a whole run has the run's own id."""
    children: dict[str, Child] = field(default_factory=dict)
    ctx: dict[str, Value] = field(default_factory=dict)
    ctx_size: int = 0
    """Bytes of `ctx` as canonical JSON (rule K25)."""
    ctx_version: int = 0
    """How often `ctx` was written: a waiting token that saw an older one is judged again."""
    patches: tuple[str, ...] = ()
    """Ids of the external patches applied."""
    steps: Counts = Counts()
    failures: tuple[Value, ...] = ()
    """Up to `MAX_FAILURES` of `{step, task, iteration, handled, error}`."""
    unlisted: int = 0
    """Failures beyond those listed."""
    unhandled: str | None = None
    """What the first failure that no arc took was, while other branches run on (rule C7)."""
    suspended: bool = False
    ending: Ending | None = None
    last: Boundary | None = None
    """The boundary event of the step that finished last; `final_step` aside (rules C11, K15)."""
    result: Value = None
    reason: str | None = None
    message: str | None = None
    final_run: str | None = None
    """The run of `final_step`, once it was scheduled."""
    final_failure: str | None = None
    """What went wrong with it."""

    def copy(self) -> State:
        """A state that can be evolved without changing this one."""
        return State(
            self.execution_id,
            self.seq,
            self.phase,
            self.digest,
            self.depth,
            self.parent,
            self.started_at,
            self.finished_at,
            self.deadline_at,
            self.keychain,
            self.adopted,
            dict(self.pending),
            dict(self.waiting),
            {step: {arc: list(held) for arc, held in p.items()} for step, p in self.places.items()},
            dict(self.runs),
            dict(self.leases),
            dict(self.children),
            dict(self.ctx),
            self.ctx_size,
            self.ctx_version,
            self.patches,
            self.steps,
            self.failures,
            self.unlisted,
            self.unhandled,
            self.suspended,
            self.ending,
            self.last,
            self.result,
            self.reason,
            self.message,
            self.final_run,
            self.final_failure,
        )

    @property
    def is_quiet(self) -> bool:
        """Nothing runs, waits or is about to (rule C8); tokens in places of joins do not count."""
        return not (self.runs or self.pending or self.waiting or self.keychain)
