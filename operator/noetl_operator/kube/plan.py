"""What is to be done about one Execution object. Pure: a snapshot in, a plan out.

`executions` gathers the snapshot, carries the plan out and gathers again, until a plan asks for
nothing more. Everything here is level-triggered: it looks at what is, never at what happened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from noetl_core.crds.resources import FIXED
from noetl_core.engine.clock import later
from noetl_core.engine.state import Phase, State
from noetl_core.engine.triggers import Cancel, CancelMode, Patch, Resume, Suspend, Trigger
from noetl_core.execution import Cancel as SpecCancel
from noetl_core.execution import ConditionStatus, ExecutionSpec, LoadedSpec, load_spec
from noetl_core.problems import Problem
from noetl_core.results import canonical
from noetl_operator.kube.port import Object
from noetl_operator.kube.project import Verdict, problems_text
from noetl_operator.kube.tame import depth_problem
from noetl_operator.store.objects import Link, View

BY = "the Execution's spec"
"""Who asks, where the spec does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One name of a namespace: the object that bears it now, and what the store knows of it."""

    object: Object | None
    spec: ExecutionSpec | None = None
    """None where there is no object, or a spec that cannot be read."""
    problems: tuple[Problem, ...] = ()
    link: Link | None = None
    """Of this very object."""
    others: tuple[Link, ...] = ()
    """Of earlier objects of this name."""
    view: View | None = None
    now: str
    refused: frozenset[str] = frozenset()
    """Ids of patches that were refused and need not be tried again."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Its object is gone and nobody will miss it: end it and take leave."""

    link: Link


@dataclass(frozen=True, slots=True)
class Begin:
    """Register and start the execution."""


@dataclass(frozen=True, slots=True)
class Tell:
    """Something that is asked of the execution."""

    trigger: Trigger


@dataclass(frozen=True, slots=True)
class Remove:
    """Its time after the end is over."""


Act: TypeAlias = Abandon | Begin | Tell | Remove


@dataclass(frozen=True, slots=True)
class Idle:
    """It does not run: this is what its status says."""

    phase: Phase
    why: Verdict


@dataclass(frozen=True, slots=True)
class Plan:
    acts: tuple[Act, ...] = ()
    idle: Idle | None = None
    again_s: float | None = None
    """When time alone changes something."""


def decide(seen: Seen) -> Plan:
    """What is to be done now."""
    # What the operator itself removed keeps its record: made again, it shows its outcome.
    left = tuple(Abandon(link) for link in seen.others if not link.removed)
    if seen.object is None:
        return Plan(left)
    if seen.object["metadata"].get("deletionTimestamp"):
        gone = (Abandon(seen.link),) if seen.link and not seen.link.removed else ()
        return Plan((*left, *gone))
    if seen.link is not None and seen.link.removed:
        return Plan((*left, Remove()))
    if seen.link is not None and seen.link.forgotten:
        return Plan(left)
    if seen.spec is None:
        return Plan(left, idle=_unreadable(seen.problems))
    if seen.view is None or not seen.view.state.seq:
        if seen.spec.suspend and seen.link is None:
            return Plan(left, idle=_held())
        return Plan((*left, Begin()))
    plan = _steer(seen.spec, seen.link, seen.view.state, seen)
    return Plan((*left, *plan.acts), plan.idle, plan.again_s)


def _steer(spec: ExecutionSpec, link: Link | None, state: State, seen: Seen) -> Plan:
    if state.phase.is_final:
        return _after(spec, link, state, seen.now)
    return Plan(tuple(Tell(wish) for wish in _wishes(spec, state, seen.refused)))


def _wishes(spec: ExecutionSpec, state: State, refused: frozenset[str]) -> Iterator[Trigger]:
    """What the spec asks for and the log does not have yet."""
    for patch in spec.ctxPatches:
        if patch.id not in state.patches and patch.id not in refused:
            yield Patch(id=patch.id, set=patch.set, by=patch.by or BY, reason=patch.reason)
    if spec.cancel is SpecCancel.NOW:
        yield Cancel(mode=CancelMode.NOW, by=BY)
    elif state.ending is None:
        if spec.cancel is SpecCancel.GRACEFUL:
            yield Cancel(mode=CancelMode.GRACEFUL, by=BY)
        elif spec.suspend and not state.suspended:
            yield Suspend(by=BY)
    if state.suspended and not spec.suspend and spec.cancel is None:
        yield Resume(by=BY)


def _after(spec: ExecutionSpec, link: Link | None, state: State, now: str) -> Plan:
    """Of a finished one: how long it stays. One that was removed before and made again stays: who
    made it wants it, and removing it over and over would be a quarrel with Git."""
    ttl = spec.ttlSecondsAfterFinished
    if ttl is None or state.finished_at is None or (link is not None and link.adopted):
        return Plan()
    ends = later(state.finished_at, ttl)
    if ends is None:
        return Plan()
    left = (datetime.fromisoformat(ends) - datetime.fromisoformat(now)).total_seconds()
    return Plan((Remove(),)) if left <= 0 else Plan(again_s=left)


def _unreadable(problems: tuple[Problem, ...]) -> Idle:
    told = problems_text([problem.as_json() for problem in problems])
    return Idle(Phase.FAILED, Verdict(ConditionStatus.FALSE, "InvalidSpec", told))


def _held() -> Idle:
    message = "it begins when spec.suspend is false"
    return Idle(Phase.SUSPENDED, Verdict(ConditionStatus.UNKNOWN, "Suspended", message))


def read_spec(obj: Object) -> LoadedSpec:
    """The spec of an object. What may be any data is not looked through: it can be large, and it
    is plain data already."""
    spec = obj.get("spec") or {}
    if (wrong := depth_problem(spec)) is not None:
        return LoadedSpec(None, (wrong,))
    thin = {**spec, **{key: {} for key in _ANY if isinstance(spec.get(key), dict)}}
    read = load_spec(thin)
    if read.spec is None:
        return read
    free = {key: spec[key] for key in _ANY if isinstance(spec.get(key), dict)}
    return replace(read, spec=replace(read.spec, **free))


_ANY = ("workload", "playbook")


def spec_key(obj: Object) -> str:
    """What an Execution is, by its name and what never changes in its spec."""
    spec = obj.get("spec") or {}
    fixed = {field: spec[field] for field in FIXED if field in spec}
    return f"{obj['metadata']['name']}@{hashlib.sha256(canonical(fixed)).hexdigest()}"
