"""Steps: admission, loop, pipeline of tasks, router (sections C, D and E of the language)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from noetl_core.model.sections import Failure, LayeredSpec, ReservedPolicy, StepExecutor
from noetl_core.model.words import (
    Action,
    AtEnd,
    Backoff,
    JoinMode,
    LoopExec,
    LoopMode,
    OnDeny,
    OnUnmatched,
    OnWorkerLost,
    Reducer,
    RouterMode,
)
from noetl_core.scopes import Scope
from noetl_core.shape import (
    Boolean,
    Choice,
    DataMap,
    Guard,
    Integer,
    ListOf,
    MapOf,
    Missing,
    Number,
    Placeholder,
    Rec,
    Record,
    Templated,
    Text,
    key,
    name_text,
    record,
)
from noetl_core.shapes_forms import (
    Empty,
    ExecutorShape,
    JoinShape,
    LoopIn,
    NextShape,
    PolicyShape,
    RefusedHooks,
    ThenShape,
)
from noetl_core.shapes_rules import AdmitRules, TaskRules
from noetl_core.shapes_tasks import StepTools
from noetl_core.values import Value


@record
class AdmitRule(Record):
    """One admission rule; without `when` it is the `else`."""

    when: str | bool | None = key(Guard(Scope.ADMIT), "The condition.", default=None)
    allow: bool = key(Boolean(), "Whether the token may enter.")


@record
class Admit(Record):
    """Who may enter a step (rules C2, C3)."""

    place: ClassVar[str] = "admit"
    rules: tuple[AdmitRule, ...] = key(
        AdmitRules(lambda: AdmitRule), "Judged top to bottom; the first match wins.", default=()
    )
    mode: RouterMode | None = key(Choice(RouterMode, "K5.admit-mode"), "Reserved.", default=None)
    on_deny: OnDeny = key(
        Choice(OnDeny, "C3.on-deny"),
        "`skip` ends the branch; `wait` keeps the token until `ctx` changes.",
        default=OnDeny.SKIP,
    )
    deadline_s: float | None = key(Number(0, above=True), "Seconds a token may wait.", default=None)


@record
class Lifecycle(Record):
    """How long a step may take, and what happens when its worker is lost."""

    timeout_s: float | None = key(Number(0, above=True), "Seconds the step may run.", default=None)
    deadline_s: float | None = key(
        Number(0, above=True), "Seconds from the token's arrival.", default=None
    )
    max_redeliveries: int = key(
        Integer(0), "How often a lost step-run is given to another worker.", default=3
    )
    on_worker_lost: OnWorkerLost = key(
        Choice(OnWorkerLost, "K3.on-worker-lost"),
        "`redeliver`, or `fail` with error kind `worker_lost`.",
        default=OnWorkerLost.REDELIVER,
    )


@record
class StepPolicy(ReservedPolicy):
    """Admission, lifecycle and failure of a step. Control actions belong to tasks."""

    place: ClassVar[str] = "policy"
    admit: Admit | None = key(Rec(Admit), "Who may enter; omitted: everyone.", default=None)
    lifecycle: Lifecycle = key(Rec(Lifecycle), "Time limits.", default=Lifecycle())
    failure: Failure = key(Rec(Failure), "How a failure is taken.", default=Failure())


@record
class Join(Record):
    """A step that waits for one token on each inbound arc (rule C9)."""

    mode: JoinMode = key(Choice(JoinMode, "C9.join"), "`all`.", default=JoinMode.ALL)
    at_end: AtEnd = key(
        Choice(AtEnd, "C9.at-end"),
        "What to do when it can never fill: `fail`, `fire` or `drop`.",
        default=AtEnd.FAIL,
    )


_RESULT_PATH = Text(
    re.compile(r"((\$|[^.\[\]$]+)(\.[^.\[\]]+|\[[0-9]+\])*|(\.[^.\[\]]+|\[[0-9]+\])+)"),
    "H3.select",
    "a path: `data.items[0].id`, also with `$.` before it",
)


@record
class ResultSpec(Record):
    """How a task's result is kept (rules H1, H3)."""

    inline_max_bytes: int | None = key(
        Integer(0), "The largest result that travels in events (default 64 KiB).", default=None
    )
    select: dict[str, str] | None = key(
        MapOf(_RESULT_PATH), "Fields to keep beside the reference: name → path.", default=None
    )


@record
class InnerSpec(LayeredSpec):
    """Settings of steps, loops and tasks."""

    result: ResultSpec = key(Rec(ResultSpec), "How results are kept.", default=ResultSpec())


@record
class StepSpec(InnerSpec):
    """Settings of a step."""

    place: ClassVar[str] = "step.spec"
    policy: StepPolicy = key(
        Rec(StepPolicy), "Admission, lifecycle and failure.", default=StepPolicy()
    )
    join: Join | None = key(
        JoinShape(lambda: Join), "`all`: fire once per full set of inbound tokens.", default=None
    )
    executor: StepExecutor | None = key(
        ExecutorShape(lambda: StepExecutor), "Where this step runs.", default=None
    )


@record
class LoopPolicy(ReservedPolicy):
    """How iterations are scheduled."""

    place: ClassVar[str] = "policy"
    exec: LoopExec | None = key(
        Choice(LoopExec, "E3.exec"), "`local` or `distributed`.", default=None
    )
    mode: LoopMode | None = key(Choice(LoopMode, "E2.mode"), "As `loop.spec.mode`.", default=None)
    max_in_flight: Value = key(
        Templated(Scope.LOOP, Integer(1)), "As `loop.spec.max_in_flight`.", default=None
    )
    reducers: dict[str, Reducer] = key(
        MapOf(Choice(Reducer, "E7.reducer")),
        "`ctx` key → how writes of parallel iterations come together.",
        default_factory=dict,
    )


@record
class LoopSpec(InnerSpec):
    """Settings of a loop."""

    place: ClassVar[str] = "loop.spec"
    mode: LoopMode | None = key(
        Choice(LoopMode, "E2.mode"), "`sequential` (default) or `parallel`.", default=None
    )
    max_in_flight: Value = key(
        Templated(Scope.LOOP, Integer(1)), "Iterations at once (default 10).", default=None
    )
    policy: LoopPolicy = key(Rec(LoopPolicy), "How iterations are scheduled.", default=LoopPolicy())


@record
class Loop(Record):
    """Runs the step's pipeline once per element."""

    place: ClassVar[str] = "loop"
    missing: ClassVar[Mapping[str, Missing]] = {
        "in": Missing("A5.loop-without-in", 'in: "{{ workload.some_list }}"'),
        "iterator": Missing("A5.loop-without-iterator", "iterator: item (then `iter.item`)"),
    }
    in_: Value = key(LoopIn(), "The list to go through, or a template that yields it.")
    iterator: str = key(name_text(), "The element's name: `iter.<iterator>`.")
    spec: LoopSpec = key(Rec(LoopSpec), "Settings of the loop.", default=LoopSpec())
    loop: Loop | None = key(
        Rec(lambda: Loop), "A loop inside each iteration of this one.", default=None
    )

    @property
    def mode(self) -> LoopMode:
        """Rules E2, K5."""
        return self.spec.mode or self.spec.policy.mode or LoopMode.SEQUENTIAL

    @property
    def max_in_flight(self) -> Value:
        """Rules E2, K5: a number or a template."""
        for given in (self.spec.max_in_flight, self.spec.policy.max_in_flight):
            if given is not None:
                return given
        return 10

    @property
    def exec(self) -> LoopExec:
        """Rule E3: local for sequential loops, distributed for parallel ones."""
        parallel = self.mode is LoopMode.PARALLEL
        return self.spec.policy.exec or (LoopExec.DISTRIBUTED if parallel else LoopExec.LOCAL)


@record
class Then(Record):
    """What a rule of a task policy does."""

    place: ClassVar[str] = "then"
    missing: ClassVar[Mapping[str, Missing]] = {
        "do": Missing("A5.then-without-do", "do: continue, retry, jump, break or fail")
    }
    do: Action = key(Choice(Action, "A5.unknown-do"), "The control action.")
    attempts: int | None = key(
        Integer(1), "retry: runs of the task including the first (default 3).", default=None
    )
    backoff: Backoff | None = key(
        Choice(Backoff, "D2.backoff"), "retry: how the delay grows.", default=None
    )
    delay: Value = key(
        Templated(Scope.DELAY, Number(0)), "retry: seconds (default 1.0).", default=None
    )
    max_delay: float | None = key(
        Number(0), "retry: the longest delay (default 300).", default=None
    )
    to: str | None = key(Text(), "jump: a label of this pipeline.", default=None)
    set_iter: dict[str, Value] = key(
        DataMap(Scope.POLICY), "Writes to `iter`.", default_factory=dict
    )
    set_ctx: dict[str, Value] = key(DataMap(Scope.POLICY), "Writes to `ctx`.", default_factory=dict)
    message: Value = key(Templated(Scope.POLICY, Text()), "fail: the error's text.", default=None)


@record
class Rule(Record):
    """One rule of a task policy; without `when` it is the `else`."""

    when: str | bool | None = key(Guard(Scope.POLICY), "The condition.", default=None)
    then: Then = key(ThenShape(Then), "What to do.")


@record
class TaskPolicy(Record):
    """What happens after a task, by its outcome (rules D1–D4)."""

    place: ClassVar[str] = "task.policy"
    missing: ClassVar[Mapping[str, Missing]] = {
        "rules": Missing("A5.policy-shape", "a task policy is an object with a list of `rules`")
    }
    rules: tuple[Rule, ...] = key(
        TaskRules(lambda: Rule), "Judged top to bottom; the first match wins."
    )
    on_unmatched: OnUnmatched = key(
        Choice(OnUnmatched, "D1.on-unmatched"),
        "When no rule matches: `continue` or `fail`.",
        default=OnUnmatched.CONTINUE,
    )
    mode: RouterMode | None = key(Choice(RouterMode, "K5.policy-mode"), "Reserved.", default=None)
    before: Value = key(RefusedHooks(), "Reserved: must be empty.", default=None)
    after: Value = key(RefusedHooks(), "Reserved: must be empty.", default=None)
    finally_: Value = key(RefusedHooks(), "Reserved: must be empty.", default=None)


@record
class TaskSpec(InnerSpec):
    """Settings of a task."""

    place: ClassVar[str] = "task.spec"
    policy: TaskPolicy | None = key(
        PolicyShape(TaskPolicy), "What happens after the task; omitted: error → fail.", default=None
    )


@record
class Task(Record):
    """One tool call of a pipeline. Further keys are what its tool kind takes."""

    place: ClassVar[str] = "task"
    name: str = key(name_text(), "The task's label.")
    kind: str = key(Text(), "The tool kind.")
    spec: TaskSpec = key(Rec(TaskSpec), "Settings of the task.", default=TaskSpec())
    inputs: dict[str, Value] = key(
        DataMap(), "What the tool kind takes; its texts are templates.", default_factory=dict
    )


@record
class Arc(Record):
    """A way to a next step."""

    place: ClassVar[str] = "arc"
    step: str = key(Text(), "The step that gets the token.")
    when: str | bool | None = key(
        Guard(Scope.ARC), "The guard; without one it fires on success.", default=None
    )
    args: dict[str, Value] = key(
        DataMap(Scope.ARC), "What the token carries.", default_factory=dict
    )
    spec: Value = key(Placeholder(), "Reserved.", default=None)


@record
class NextSpec(Record):
    """Settings of a router."""

    place: ClassVar[str] = "next.spec"
    mode: RouterMode = key(
        Choice(RouterMode, "C4.mode"),
        "`exclusive`: the first match fires; `inclusive`: every match.",
        default=RouterMode.EXCLUSIVE,
    )
    policy: Value = key(Empty(), "Reserved.", default=None)


@record
class Next(Record):
    """The router of a step."""

    place: ClassVar[str] = "next"
    spec: NextSpec = key(Rec(NextSpec), "Settings of the router.", default=NextSpec())
    arcs: tuple[Arc, ...] = key(ListOf(Rec(Arc)), "The arcs, in order.", default=())


@record
class Step(Record):
    """A transition of the net: admission, a pipeline of tasks, a router."""

    place: ClassVar[str] = "step"
    step: str = key(name_text(), "The step's name.")
    desc: str | None = key(Text(), "What it does, in words.", default=None)
    spec: StepSpec = key(Rec(StepSpec), "Settings of the step.", default=StepSpec())
    loop: Loop | None = key(Rec(Loop), "Run the pipeline once per element.", default=None)
    tool: tuple[Task, ...] = key(
        StepTools(lambda: Task), "The pipeline: tasks in order.", default=()
    )
    next: Next | None = key(NextShape(lambda: Next), "Where to go from here.", default=None)

    @property
    def arcs(self) -> tuple[Arc, ...]:
        return self.next.arcs if self.next else ()

    @property
    def router_mode(self) -> RouterMode:
        return self.next.spec.mode if self.next else RouterMode.EXCLUSIVE

    @property
    def is_inclusive(self) -> bool:
        return self.router_mode is RouterMode.INCLUSIVE
