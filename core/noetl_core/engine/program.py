"""A playbook made ready to run: everything `decide` would otherwise look up or compile again.

Made once per execution and never changed. Holds no secret: `keychain` is no name of the control
plane (rule B4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from noetl_core.layers import loops_of, merge
from noetl_core.load import digest as digest_of
from noetl_core.model import (
    AdmitRule,
    Arc,
    AtEnd,
    FailureMode,
    Lifecycle,
    Limits,
    Loop,
    LoopExec,
    LoopMode,
    OnDeny,
    Playbook,
    Reducer,
    Step,
)
from noetl_core.results import INLINE_MAX_BYTES
from noetl_core.templates import Template, compile_when
from noetl_core.values import Value

ENGINE_VERSION = "1"
"""Recorded at the start of every execution; it rises when a decision changes."""


@dataclass(frozen=True, slots=True)
class ArcPlan:
    """An arc with its guard compiled."""

    index: int
    arc: Arc
    guard: Template | None
    """None: fires on success (rule C5)."""
    place: str | None
    """The place of a join that its tokens fill (rule C9)."""


@dataclass(frozen=True, slots=True)
class AdmitPlan:
    """Admission with its guards compiled; a rule without one is the `else`."""

    rules: tuple[tuple[Template | None, bool], ...]
    on_deny: OnDeny
    deadline_s: float | None


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """The loops of a step, and who schedules which of them."""

    levels: tuple[Loop, ...]
    """Outermost first."""
    leased: int
    """How many levels, from the outermost, the control plane schedules itself (rule E3)."""
    parallel: int
    """The deepest parallel level, from 1: what identifies a writer of `ctx` (rule E7)."""
    best_effort: bool
    reducers: dict[str, Reducer]


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A step as the control plane needs it."""

    name: str
    step: Step
    arcs: tuple[ArcPlan, ...]
    mode: str
    inclusive: bool
    routes: bool
    """It has a `next`."""
    works: bool
    """It has something for a worker to do (rule K13)."""
    admit: AdmitPlan | None
    loop: LoopPlan | None
    places: tuple[str, ...]
    """Of a join: its inbound arcs in workflow order (rule C9)."""
    at_end: AtEnd | None
    """Of a join: what becomes of it half full."""
    best_effort: bool
    """A failure that no arc takes lets other branches end first (rule C7)."""
    lifecycle: Lifecycle
    timeout_s: float | None
    inline_max_bytes: int
    """Of a loop's list of results (rule H1)."""


@dataclass(frozen=True, slots=True)
class Program:
    """A playbook, the merged workload and the identity of one execution."""

    playbook: Playbook | None
    """None: it is invalid, and all that can be done is to say so."""
    name: str
    digest: str
    workload: dict[str, Value]
    execution: dict[str, Value]
    """`{id, name, namespace}` as templates see it."""
    execution_id: str
    steps: dict[str, StepPlan]
    entry_step: str
    final_step: str | None
    result: Value
    limits: Limits
    reference_first: bool

    @classmethod
    def of(
        cls,
        playbook: Playbook | None,
        *,
        execution_id: str,
        name: str,
        namespace: str,
        workload: Mapping[str, Value] | None = None,
        digest: str | None = None,
        playbook_name: str = "",
    ) -> Program:
        """The program of one execution; `workload` is laid over the playbook's own."""
        execution: dict[str, Value] = {"id": execution_id, "name": name, "namespace": namespace}
        if playbook is None:
            given = dict(workload or {})
            return cls(
                None, playbook_name, digest or "", given, execution, execution_id,
                {}, "", None, None, Limits(), False,
            )  # fmt: skip
        spec = playbook.executor.spec
        return cls(
            playbook,
            playbook_name or playbook.metadata.name,
            digest or digest_of(playbook),
            merge(playbook.workload, workload or {}),
            execution,
            execution_id,
            _step_plans(playbook),
            playbook.entry_step,
            spec.final_step,
            spec.result,
            spec.policy.limits,
            spec.policy.results.reference_first,
        )

    def scope(self, ctx: dict[str, Value], args: dict[str, Value]) -> dict[str, Value]:
        """The names that every template of the control plane may read (rule B4)."""
        return {
            "workload": self.workload,
            "ctx": ctx,
            "args": args,
            "execution": self.execution,
            "execution_id": self.execution_id,
        }


def _step_plans(playbook: Playbook) -> dict[str, StepPlan]:
    """The steps in workflow order. What a join waits for is gathered once, for all of them."""
    joins: dict[str, list[str]] = {s.step: [] for s in playbook.workflow if s.spec.join}
    for step in playbook.workflow:
        for index, arc in enumerate(step.arcs):
            if arc.step in joins:
                joins[arc.step].append(place_of(step.step, index))
    return {step.step: _step_plan(playbook, step, joins) for step in playbook.workflow}


def _step_plan(playbook: Playbook, step: Step, joins: dict[str, list[str]]) -> StepPlan:
    policy = step.spec.policy
    defaults = playbook.executor.spec.policy
    join = step.spec.join
    # On a loop step `failure.mode` says how iterations fail, and nothing else (rule C7).
    own = policy.failure.mode if step.loop is None else None
    best_effort = FailureMode.BEST_EFFORT in (own, defaults.failure.mode)
    return StepPlan(
        name=step.step,
        step=step,
        arcs=tuple(_arc_plan(step, i, arc, arc.step in joins) for i, arc in enumerate(step.arcs)),
        mode=step.router_mode.value,
        inclusive=step.is_inclusive,
        routes=step.next is not None,
        works=bool(step.tool),
        admit=_admit_plan(step),
        loop=_loop_plan(step),
        places=tuple(joins.get(step.step, ())),
        at_end=join.at_end if join else None,
        best_effort=best_effort,
        lifecycle=policy.lifecycle,
        timeout_s=policy.lifecycle.timeout_s or defaults.defaults.timeouts.step,
        inline_max_bytes=_inline_max_bytes(playbook, step),
    )


def _arc_plan(step: Step, index: int, arc: Arc, joins: bool) -> ArcPlan:
    guard = None if arc.when is None else compile_when(arc.when)
    return ArcPlan(index, arc, guard, place_of(step.step, index) if joins else None)


def place_of(source: str, index: int) -> str:
    """The name of the place that an arc fills: two arcs of one step are two places (rule K12)."""
    return f"{source}/{index}"


def _admit_plan(step: Step) -> AdmitPlan | None:
    admit = step.spec.policy.admit
    if admit is None:
        return None
    return AdmitPlan(tuple(map(_admit_rule, admit.rules)), admit.on_deny, admit.deadline_s)


def _admit_rule(rule: AdmitRule) -> tuple[Template | None, bool]:
    return (None if rule.when is None else compile_when(rule.when)), rule.allow


def _loop_plan(step: Step) -> LoopPlan | None:
    levels = tuple(loops_of(step))
    if not levels:
        return None
    leased = 0
    while leased < len(levels) and levels[leased].exec is LoopExec.DISTRIBUTED:
        leased += 1
    parallel = [n for n, loop in enumerate(levels, 1) if loop.mode is LoopMode.PARALLEL]
    reducers: dict[str, Reducer] = {}
    for loop in levels:
        reducers.update(loop.spec.policy.reducers)
    best_effort = step.spec.policy.failure.mode is FailureMode.BEST_EFFORT
    return LoopPlan(levels, leased, max(parallel, default=0), best_effort, reducers)


def _inline_max_bytes(playbook: Playbook, step: Step) -> int:
    """The innermost setting around the tasks of a step (rule F1)."""
    found = playbook.executor.spec.policy.results.inline_max_bytes
    for spec in (step.spec, *(loop.spec for loop in loops_of(step))):
        if spec.result.inline_max_bytes is not None:
            found = spec.result.inline_max_bytes
    return INLINE_MAX_BYTES if found is None else found
