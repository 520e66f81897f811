"""The Execution: one run of a playbook as a Kubernetes object, its spec and its status.

The operator reads specs with `load_spec` and writes statuses of this shape; the CLI writes specs;
the CRD is generated from both. As in `model`, a field's sentence is its documentation everywhere.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from noetl_core.model import Playbook
from noetl_core.problems import Problem, Severity
from noetl_core.reading import Cursor, Reading
from noetl_core.shape import (
    KUBERNETES_NAME,
    Boolean,
    Choice,
    Data,
    DataMap,
    Definitions,
    Integer,
    ListOf,
    Rec,
    Record,
    Schema,
    Text,
    key,
    record,
)
from noetl_core.source import parse
from noetl_core.tools import BUILT_IN
from noetl_core.values import Value

KIND = "Execution"

MOST_PATCHES = 100
"""How many external patches of `ctx` one execution takes."""
MOST_ACTIVE = 10
"""How many active steps a status names."""
MOST_PROBLEMS = 100
"""How many problems of a playbook a status lists."""


class Cancel(StrEnum):
    """How an execution is ended before its time."""

    GRACEFUL = "Graceful"
    NOW = "Now"


class Phase(StrEnum):
    """Where an execution stands."""

    PENDING = "Pending"
    RUNNING = "Running"
    WAITING = "Waiting"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def is_final(self) -> bool:
        return self in (Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED)


class ConditionStatus(StrEnum):
    """A condition's three answers."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class InlinePlaybook(DataMap):
    """The sections of a Playbook's `spec`, read by `load` and not here."""

    def schema(self, defs: Definitions) -> Schema:
        return defs.ref(Playbook)


_OBJECT_NAME = Text(KUBERNETES_NAME, "K1.resource-name", "the name of a Kubernetes object")


@record
class PlaybookRef(Record):
    """A Playbook of the Execution's own namespace."""

    name: str = key(_OBJECT_NAME, "The Playbook's name.")


@record
class RerunOf(Record):
    """An earlier Execution to take up again (rule K47)."""

    name: str = key(_OBJECT_NAME, "The earlier Execution's name.")
    fromStep: str | None = key(
        Text(),
        "The first step to run anew; those before it are adopted with their results.",
        default=None,
    )


@record
class CtxPatch(Record):
    """A write to `ctx` from outside: how a person or Git opens an `on_deny: wait` gate."""

    id: str = key(Text(), "Names the patch: each is applied once.")
    set: dict[str, Value] = key(DataMap(), "What to write: keys of `ctx` and their values.")
    reason: str | None = key(Text(), "Why, for the log.", default=None)
    by: str | None = key(Text(), "Who, for the log.", default=None)


@record
class ExecutionSpec(Record):
    """One run of a playbook.

    After creation only `suspend`, `cancel` and `ttlSecondsAfterFinished` may change, and
    `ctxPatches` may grow.
    """

    place: ClassVar[str] = "execution"
    playbookRef: PlaybookRef | None = key(
        Rec(PlaybookRef), "The Playbook to run; this or `playbook`.", default=None
    )
    playbook: dict[str, Value] | None = key(
        InlinePlaybook(),
        "A playbook written out in place, as a Playbook's spec; this or `playbookRef`.",
        default=None,
    )
    workload: dict[str, Value] = key(
        DataMap(),
        "The inputs of this run, laid over the playbook's `workload`.",
        default_factory=dict,
    )
    suspend: bool = key(
        Boolean(), "While true no new step starts; running ones end.", default=False
    )
    cancel: Cancel | None = key(
        Choice(Cancel, "K3.cancel"),
        "Ends the run: `Graceful` still runs the playbook's final step, `Now` does not.",
        default=None,
    )
    activeDeadlineSeconds: int | None = key(
        Integer(1), "Seconds after which the run is cancelled.", default=None
    )
    ttlSecondsAfterFinished: int | None = key(
        Integer(0),
        "Seconds after which the finished Execution is removed; unset: it is kept.",
        default=None,
    )
    rerunOf: RerunOf | None = key(
        Rec(RerunOf), "An earlier Execution to take up again.", default=None
    )
    ctxPatches: tuple[CtxPatch, ...] = key(
        ListOf(Rec(CtxPatch)),
        "Writes to `ctx` from outside, each applied once; the list only grows.",
        default=(),
    )


@record
class Condition(Record):
    """One aspect of the object's state, in the form that `kubectl wait` understands."""

    type: str = key(Text(), "Which aspect.")
    status: ConditionStatus = key(
        Choice(ConditionStatus, "K3.condition"), "True, False or Unknown."
    )
    reason: str = key(Text(), "Why, in one word.")
    message: str = key(Text(), "Why, in a sentence.", default="")
    lastTransitionTime: str = key(Text(), "When the status last changed.")
    observedGeneration: int | None = key(
        Integer(0), "The generation of the spec this is about.", default=None
    )


@record
class StepCounts(Record):
    """How many step-runs there are; at the end total = done + failed + cancelled (rule K41)."""

    total: int = key(Integer(0), "Tokens that were admitted.", default=0)
    running: int = key(Integer(0), "Started and not ended.", default=0)
    waiting: int = key(Integer(0), "Tokens that wait at a gate.", default=0)
    done: int = key(Integer(0), "Ended well.", default=0)
    failed: int = key(Integer(0), "Ended badly.", default=0)
    cancelled: int = key(Integer(0), "Cut off.", default=0)
    skipped: int = key(Integer(0), "Denied by admission.", default=0)
    progress: str = key(Text(), "Ended and total, as `3/7`.", default="")


@record
class ActiveStep(Record):
    """A step-run that is under way."""

    step: str = key(Text(), "The step's name.")
    state: str = key(Text(), "What it is doing: Scheduled, Running or Waiting.", default="")
    since: str | None = key(Text(), "Since when.", default=None)
    message: str | None = key(Text(), "What holds it up, in words.", default=None)


@record
class RunPlaybook(Record):
    """What is being run."""

    name: str = key(Text(), "The Playbook's name.")
    generation: int | None = key(Integer(0), "Its generation when the run began.", default=None)
    digest: str = key(Text(), "The digest of what runs; later edits do not change it.", default="")


@record
class ExecutionStatus(Record):
    """What the log says of the run. A projection: nothing reads it back."""

    phase: Phase = key(Choice(Phase, "K3.phase"), "Where the run stands.", default=Phase.PENDING)
    observedGeneration: int | None = key(
        Integer(0), "The generation of the spec that was last acted on.", default=None
    )
    conditions: tuple[Condition, ...] = key(
        ListOf(Rec(Condition)), "`Accepted`, and `Succeeded` with the outcome.", default=()
    )
    startedAt: str | None = key(Text(), "When the first step got its token.", default=None)
    finishedAt: str | None = key(Text(), "When the run ended.", default=None)
    duration: str | None = key(Text(), "How long the finished run took, as `1m12s`.", default=None)
    steps: StepCounts = key(Rec(StepCounts), "How many step-runs there are.", default=StepCounts())
    active: tuple[ActiveStep, ...] = key(
        ListOf(Rec(ActiveStep)), f"Steps under way, at most {MOST_ACTIVE} of them.", default=()
    )
    activeSummary: str = key(Text(), "The names of the active steps, in short.", default="")
    message: str = key(Text(), "The story in a sentence.", default="")
    result: Value = key(Data(), "The result, or a reference to it.", default=None)
    executionId: str | None = key(Text(), "The run's id in the log.", default=None)
    lastSeq: int | None = key(Integer(0), "The last event this status knows of.", default=None)
    playbook: RunPlaybook | None = key(Rec(RunPlaybook), "What is being run.", default=None)


@record
class PlaybookProblem(Record):
    """One thing that is wrong with a playbook."""

    code: str = key(Text(), "The rule that was broken, as `A5.unknown-kind`.")
    severity: str = key(Text(), "`error` refuses executions, `warning` does not.")
    path: str = key(Text(), "Where, as `spec.workflow[2].tool[0]`.")
    message: str = key(Text(), "What is wrong.")
    hint: str | None = key(Text(), "What to write instead.", default=None)


@record
class PlaybookStatus(Record):
    """What the checker says of the playbook."""

    observedGeneration: int | None = key(
        Integer(0), "The generation of the spec that was checked.", default=None
    )
    digest: str | None = key(Text(), "What runs, as one name.", default=None)
    steps: int | None = key(Integer(0), "How many steps it has.", default=None)
    conditions: tuple[Condition, ...] = key(
        ListOf(Rec(Condition)), "`Valid`, with every problem.", default=()
    )
    problems: tuple[PlaybookProblem, ...] = key(
        ListOf(Rec(PlaybookProblem)), "The problems, one by one.", default=()
    )


@dataclass(frozen=True, slots=True)
class LoadedSpec:
    """An Execution's spec as far as it could be read."""

    spec: ExecutionSpec | None
    """None when there is an error."""
    problems: tuple[Problem, ...]


def load_spec(spec: Value) -> LoadedSpec:
    """The spec of an Execution as the Kubernetes API gives it.

    Checked again here: it may have been stored under another version of the CRD.
    """
    document = parse(json.dumps(spec))[0]
    reading = Reading(document.text, BUILT_IN, list(document.problems))
    made = None
    if document.root is not None:
        made = Rec(ExecutionSpec).read(document.root, Cursor(reading, (), ("spec",)))
        _check_source(made, Cursor(reading, (), ("spec",)), document.root.line)
    wrong = any(p.severity is Severity.ERROR for p in reading.problems)
    return LoadedSpec(None if wrong else made, tuple(reading.problems))


def _check_source(spec: ExecutionSpec, at: Cursor, line: int) -> None:
    if (spec.playbookRef is None) == (spec.playbook is None):
        message = "name a Playbook in `playbookRef` or write one under `playbook`: one of the two"
        at.reading.problems.append(
            Problem("K1.execution-playbook", Severity.ERROR, "spec", line, 1, message)
        )
