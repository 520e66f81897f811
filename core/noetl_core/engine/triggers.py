"""What `decide` is asked to react to, and what it answers.

A trigger is the reason to look at an execution: a report of a worker, a wish of a person, time that
passed. The answer is facts to append and effects to carry out; the interpreter of effects is the
operator's (or a simulation's).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from noetl_core.engine.events import Event, Fact
from noetl_core.engine.state import Boundary, State
from noetl_core.outcomes import TaskError
from noetl_core.values import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """What a rerun takes over (rule K47): the token that first reached the step, and `ctx` then."""

    execution_id: str
    from_step: str
    args: dict[str, Value]
    ctx: dict[str, Value]
    event: Boundary
    steps: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Begin. `problems` are those of an invalid playbook."""

    deadline_at: str | None = None
    parent: Value = None
    depth: int = 0
    problems: tuple[Value, ...] = ()
    rerun_of: Value = None
    adopted: Adopted | None = None


class EndStatus(StrEnum):
    OK = "ok"
    ERROR = "error"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a leased run ended: a step, an iteration, or all of a local loop.

    Of a local loop `result` is empty: the iterations' facts hold the results.
    """

    status: EndStatus
    result: Value = None
    error: TaskError | None = None
    task: str | None = None
    """The task that failed."""
    iteration: str | None = None
    """Of a local loop that failed: the iteration that did."""
    writes: dict[str, Value] | None = None
    """Of an iteration: its last write to each key that has a reducer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """Facts of a worker, in order, for what it leased; `first` numbers the first of them."""

    lease_id: str
    epoch: int
    first: int
    facts: tuple[Fact, ...] = ()
    end: RunEnd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLost:
    """A lease ended without an end of the run."""

    lease_id: str
    epoch: int
    reason: str
    handed_back: bool = False
    """The worker gave it back on purpose: it is delivered again, whatever the limits."""
    nowhere: bool = False
    """No worker could be had for it: it is not delivered again, whatever the limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """`ctx` written from outside; applied once by `id`."""

    id: str
    set: dict[str, Value]
    by: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    by: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    by: str | None = None
    reason: str | None = None


class CancelMode(StrEnum):
    GRACEFUL = "graceful"
    NOW = "now"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    mode: CancelMode
    by: str | None = None
    reason: str | None = None
    deadline: bool = False
    """A time limit of the caller passed (reason `DeadlineExceeded`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartChild:
    """A `playbook` task of a leased run asks for a child execution."""

    lease_id: str
    epoch: int
    task: str
    task_run: int
    playbook: str
    workload: dict[str, Value]
    wait: bool
    iteration: str | None = None
    """Of a local loop: the iteration whose task asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnded:
    child: str
    phase: str
    reason: str
    message: str | None
    result: Value


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed, or there is more to do than fits into one decision: look again."""


Trigger: TypeAlias = (
    Start
    | Reported
    | WorkerLost
    | Patch
    | Suspend
    | Resume
    | Cancel
    | StartChild
    | ChildEnded
    | Tick
)


# Effects


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueue:
    """A worker shall run this: a step, an iteration, a local loop, or the keychain check."""

    lease_id: str
    run_id: str
    step: str | None
    """None: verify the keychain."""
    iteration: str | None = None
    args: dict[str, Value]
    iters: tuple[dict[str, Value], ...] = ()
    """`iter` of the enclosing iterations, outermost first: `{<iterator>, index, total}`."""
    items: Value = None
    """Of a local loop: the list of its outermost local level, inline or a reference."""
    window: int = 1
    """Of a local loop: iterations at once."""
    deadline_at: str | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Requeue:
    """The same command again, under the next epoch; the store checks that this one was the last."""

    lease_id: str
    epoch: int
    """The one that ended."""


@dataclass(frozen=True, slots=True)
class Revoke:
    """Take a command from the queue; whoever holds it is fenced off and told to stop."""

    lease_id: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Tell the worker that holds it to stop and report; a command nobody holds stays queued."""

    lease_id: str


@dataclass(frozen=True, slots=True)
class Store:
    """Keep content under its digest before the facts that name it are appended."""

    key: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateChild:
    child: str
    playbook: str
    workload: dict[str, Value]
    parent: dict[str, Value]
    depth: int


@dataclass(frozen=True, slots=True)
class CancelChild:
    child: str
    mode: CancelMode


@dataclass(frozen=True, slots=True)
class TellParent:
    """The execution is finished; its parent, if it has one, gets a `ChildEnded`."""

    parent: dict[str, Value]


@dataclass(frozen=True, slots=True)
class Continue:
    """More is to be done than fits into one decision: send a `Tick` at once."""


Effect: TypeAlias = (
    Enqueue | Requeue | Revoke | Stop | Store | CreateChild | CancelChild | TellParent | Continue
)


class Verdict(StrEnum):
    """What whoever sent the trigger is told."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    """Already in the log: nothing changed."""
    GONE = "gone"
    """The run is over or in other hands: stop working on it."""
    AHEAD = "ahead"
    """Facts before these are missing: send again from `expected`."""
    CONFLICT = "conflict"
    """A write to `ctx` contradicts another iteration's (rule E7); nothing of it was applied."""
    TOO_LARGE = "too_large"
    """A write would make `ctx` larger than it may be (rule K25), or an event its limit (K33)."""
    REFUSED = "refused"
    """Not possible now; `message` says why."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from a trigger."""

    events: tuple[Event, ...]
    dedup_keys: tuple[str, ...]
    """One per event."""
    effects: tuple[Effect, ...]
    state: State
    """After the events."""
    verdict: Verdict = Verdict.ACCEPTED
    message: str | None = None
    """Words for whoever asked; to an accepted `StartChild`, the child's id."""
    expected: int = 0
    """With `AHEAD`, and where only some facts were taken: the number of the fact to go on with."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        return tuple(event.fact for event in self.events)


@dataclass(frozen=True, slots=True)
class IterationEnd:
    """The end of one innermost iteration, as the log has it."""

    iteration: str
    result: Value
    failed: bool
    writes: dict[str, Value] | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stored content that was looked for and cannot be had; the text says why."""

    message: str


class Lookup(Protocol):
    """What a decision may need that is not in the state. Answers None for what is not at hand."""

    def result(self, key: str) -> Value | Unreadable | None:
        """Stored content, read as JSON and verified."""

    def iterations(self, run_id: str) -> Sequence[IterationEnd] | None:
        """All ended iterations of a loop, in the order of the log: of two ends of one iteration
        (a worker was lost in between) the later stands."""

    def frames(self, run_id: str) -> dict[str, int] | None:
        """How many elements each list of a nested loop had: outer iteration → total."""


class ResultGone(Exception):
    """A decision reads a stored result that cannot be had."""


class Needed(Exception):
    """A decision needs something that its `Lookup` does not have: fetch it and decide again."""

    def __init__(self, *, result: str | None = None, loop: str | None = None) -> None:
        super().__init__(result or loop)
        self.result = result
        self.loop = loop
