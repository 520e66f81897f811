"""How many worker Pods there should be. Pure: what waits and what is there in, a plan out.

`launch` looks at the queue and the cluster, asks here and carries the plan out, again and again: a
plan is about what is, never about what was done before.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from noetl_operator.kube.pods import Stage

LEAVING_S = 10.0
"""How long a worker that has done its one command may take to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a pool may have."""

    least: int
    most: int
    capacity: int
    """Step-runs that one Pod serves at once."""
    idle_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What is asked of a pool."""

    waiting: int = 0
    held: int = 0
    """Commands in the hands of workers."""
    alive: bool = True
    """Whether what it belongs to is still there and not over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPod:
    """One Pod of a pool."""

    name: str
    stage: Stage
    leases: int = 0
    idle_s: float = 0.0
    """How long it has held none."""
    silent: bool = False
    """It does not call any more: its node may be gone."""


@dataclass(frozen=True, slots=True)
class PoolPlan:
    create: int = 0
    delete: tuple[str, ...] = ()


def plan_pool(limits: Limits, demand: Demand, pods: Sequence[PoolPod]) -> PoolPlan:
    """What to make and what to remove. A Pod that holds a lease is removed only when all is over,
    or when it has ended or fallen silent anyway."""
    over = [pod.name for pod in pods if pod.stage is Stage.ENDED]
    rest = [pod for pod in pods if pod.stage in (Stage.STARTING, Stage.RUNNING)]
    if not demand.alive:
        return PoolPlan(0, (*over, *(pod.name for pod in rest)))
    over += [pod.name for pod in rest if pod.silent]
    present = [pod for pod in rest if not pod.silent]
    needed = math.ceil((demand.waiting + demand.held) / limits.capacity)
    wanted = min(max(needed, limits.least), limits.most)
    surplus = _idle(present, limits.idle_s)[: max(0, len(present) - wanted)]
    return PoolPlan(max(0, wanted - len(present)), (*over, *surplus))


def _idle(pods: Sequence[PoolPod], idle_s: float) -> list[str]:
    """Those without work for long enough, the longest first."""
    idle = [pod for pod in pods if not pod.leases and pod.idle_s >= idle_s]
    return [pod.name for pod in sorted(idle, key=lambda pod: (-pod.idle_s, pod.name))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Single:
    """A command that has a Pod or Job of its own."""

    lease_id: str
    name: str
    """The name of the Pod or Job that serves it, or will serve it, under its epoch."""
    owner: str | None = None
    """The Pod that holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinglePod:
    """A Pod or Job that was made for one command."""

    name: str
    """The Job's, where it is one."""
    stage: Stage
    pod: str | None = None
    """The Pod's own name, where there is one."""
    idle_s: float = 0.0
    """How long it has held no lease."""


@dataclass(frozen=True, slots=True)
class SinglePlan:
    create: tuple[str, ...] = ()
    """Leases."""
    delete: tuple[str, ...] = ()
    """Names."""
    failed: tuple[str, ...] = ()
    """Leases whose Pod ended without having taken them."""


def plan_singles(
    commands: Sequence[Single], pods: Collection[SinglePod], most: int, *, keep_ended: bool
) -> SinglePlan:
    """One Pod or Job for each command, `most` at once, the oldest first. `keep_ended`: somebody
    else removes those that have ended, as Kubernetes does with Jobs."""
    by_name = {pod.name: pod for pod in pods}
    holders = {one.owner for one in commands if one.owner}
    wanted = {one.name for one in commands if one.owner is None}
    failed = tuple(
        one.lease_id
        for one in commands
        if one.owner is None
        and one.name in by_name
        and by_name[one.name].stage in (Stage.ENDED, Stage.ENDING)
    )
    delete = [pod.name for pod in pods if _is_useless(pod, wanted, holders, keep_ended)]
    there = sum(pod.stage is not Stage.ENDED and pod.name not in delete for pod in pods)
    missing = [one.lease_id for one in commands if one.owner is None and one.name not in by_name]
    return SinglePlan(tuple(missing[: max(0, most - there)]), tuple(delete), failed)


def _is_useless(pod: SinglePod, wanted: set[str], holders: set[str], keep_ended: bool) -> bool:
    if pod.stage is Stage.ENDED:
        # One whose command still waits is removed once that was told.
        return not keep_ended and pod.name not in wanted
    if pod.stage is Stage.ENDING:
        return False
    if keep_ended and pod.pod is not None and pod.idle_s < LEAVING_S:
        # It may have done its command (a Pod shows late that it runs) and be about to end by
        # itself; its Job shows then that it is complete.
        return False
    return pod.name not in wanted and (pod.pod or pod.name) not in holders
