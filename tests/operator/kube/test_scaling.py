"""How many Pods there should be: tables."""

from __future__ import annotations

import pytest

from noetl_operator.kube.pods import Stage
from noetl_operator.kube.scaling import (
    Demand,
    Limits,
    PoolPlan,
    PoolPod,
    Single,
    SinglePlan,
    SinglePod,
    plan_pool,
    plan_singles,
)

OVER = Demand(alive=False)


def limits(least: int = 0, most: int = 4, capacity: int = 10, idle_s: float = 30.0) -> Limits:
    return Limits(least=least, most=most, capacity=capacity, idle_s=idle_s)


def running(name: str, leases: int = 0, idle_s: float = 0.0, silent: bool = False) -> PoolPod:
    return PoolPod(name=name, stage=Stage.RUNNING, leases=leases, idle_s=idle_s, silent=silent)


def at(name: str, stage: Stage) -> PoolPod:
    return PoolPod(name=name, stage=stage)


def wants(waiting: int = 0, held: int = 0) -> Demand:
    return Demand(waiting=waiting, held=held)


POOLS: dict[str, tuple[Limits, Demand, list[PoolPod], PoolPlan]] = {
    "nothing to do, nothing there": (limits(), wants(), [], PoolPlan()),
    "the first command brings a Pod": (limits(), wants(1), [], PoolPlan(1)),
    "a full Pod's worth is one Pod": (limits(), wants(10), [], PoolPlan(1)),
    "one more is two": (limits(), wants(11), [], PoolPlan(2)),
    "what is held counts too": (limits(), wants(1, 10), [running("a", 10)], PoolPlan(1)),
    "free slots are enough": (limits(), wants(3, 5), [running("a", 5)], PoolPlan()),
    "never more than allowed": (limits(), wants(1000), [running("a")], PoolPlan(3)),
    "starting ones count": (limits(), wants(10), [at("a", Stage.STARTING)], PoolPlan()),
    "ending ones do not": (limits(), wants(1), [at("a", Stage.ENDING)], PoolPlan(1)),
    "ended ones are replaced": (limits(), wants(1), [at("a", Stage.ENDED)], PoolPlan(1, ("a",))),
    "an idle one stays for a while": (limits(), wants(), [running("a", idle_s=29)], PoolPlan()),
    "and goes: scale to zero": (
        limits(),
        wants(),
        [running("a", idle_s=30)],
        PoolPlan(0, ("a",)),
    ),
    "at once where idle_s is 0": (limits(idle_s=0), wants(), [running("a")], PoolPlan(0, ("a",))),
    "the least stay": (
        limits(least=1),
        wants(),
        [running("a", idle_s=99), running("b", idle_s=100)],
        PoolPlan(0, ("b",)),
    ),
    "the least are there without work": (limits(least=2), wants(), [], PoolPlan(2)),
    "one that works never goes": (
        limits(),
        wants(held=1),
        [running("a", 1), running("b", idle_s=99)],
        PoolPlan(0, ("b",)),
    ),
    "nor one that is needed": (
        limits(),
        wants(5, 10),
        [running("a", 10), running("b", idle_s=99)],
        PoolPlan(),
    ),
    "a silent one is replaced though it holds something": (
        limits(),
        wants(0, 3),
        [running("a", 3, silent=True)],
        PoolPlan(1, ("a",)),
    ),
    "all go when it is over": (
        limits(least=2),
        OVER,
        [running("a", 1), at("b", Stage.STARTING), at("c", Stage.ENDED), at("d", Stage.ENDING)],
        PoolPlan(0, ("c", "a", "b")),
    ),
}


@pytest.mark.parametrize("case", POOLS)
def test_a_pool(case: str) -> None:
    allowed, demand, pods, plan = POOLS[case]
    assert plan_pool(allowed, demand, pods) == plan


def queued(lease: str, name: str) -> Single:
    return Single(lease_id=lease, name=name)


def held(lease: str, name: str, owner: str) -> Single:
    return Single(lease_id=lease, name=name, owner=owner)


def one(name: str, stage: Stage, pod: str | None = None) -> SinglePod:
    return SinglePod(name=name, stage=stage, pod=pod)


SINGLES: dict[str, tuple[list[Single], list[SinglePod], SinglePlan]] = {
    "nothing": ([], [], SinglePlan()),
    "one Pod for each": (
        [queued("l", "l-1"), queued("m", "m-1")],
        [],
        SinglePlan(create=("l", "m")),
    ),
    "made once": ([queued("l", "l-1")], [one("l-1", Stage.STARTING)], SinglePlan()),
    "held by its Pod": ([held("l", "l-1", "l-1")], [one("l-1", Stage.RUNNING)], SinglePlan()),
    "held by its Job's Pod": (
        [held("l", "l-1", "l-1-x")],
        [one("l-1", Stage.RUNNING, "l-1-x")],
        SinglePlan(),
    ),
    "done": ([], [one("l-1", Stage.RUNNING)], SinglePlan(delete=("l-1",))),
    "done and ended": ([], [one("l-1", Stage.ENDED)], SinglePlan(delete=("l-1",))),
    "ending by itself": ([], [one("l-1", Stage.ENDING)], SinglePlan()),
    "delivered again: the old one goes": (
        [queued("l", "l-2")],
        [one("l-1", Stage.RUNNING)],
        SinglePlan(create=("l",), delete=("l-1",)),
    ),
    "ended before it had begun": (
        [queued("l", "l-1")],
        [one("l-1", Stage.ENDED)],
        SinglePlan(failed=("l",)),
    ),
    "taken away before it had begun": (
        [queued("l", "l-1")],
        [one("l-1", Stage.ENDING)],
        SinglePlan(failed=("l",)),
    ),
    "not more than allowed, the oldest first": (
        [held("a", "a-1", "a-1"), queued("b", "b-1"), queued("c", "c-1"), queued("d", "d-1")],
        [one("a-1", Stage.RUNNING)],
        SinglePlan(create=("b", "c")),
    ),
    "what goes makes room": (
        [queued("b", "b-1"), queued("c", "c-1"), queued("d", "d-1")],
        [one("x-1", Stage.RUNNING), one("y-1", Stage.ENDED)],
        SinglePlan(create=("b", "c", "d"), delete=("x-1", "y-1")),
    ),
}


@pytest.mark.parametrize("case", SINGLES)
def test_commands_with_a_pod_of_their_own(case: str) -> None:
    commands, pods, plan = SINGLES[case]
    assert plan_singles(commands, pods, 3, keep_ended=False) == plan


def test_ended_jobs_are_left_to_kubernetes() -> None:
    assert plan_singles([], [one("l-1", Stage.ENDED)], 3, keep_ended=True) == SinglePlan()


@pytest.mark.parametrize("stage", [Stage.STARTING, Stage.RUNNING])
@pytest.mark.parametrize(("idle_s", "stays"), [(0.0, True), (9.9, True), (10.0, False)])
def test_a_job_that_has_done_its_command_may_end_by_itself(
    stage: Stage, idle_s: float, stays: bool
) -> None:
    done = SinglePod(name="l-1", stage=stage, pod="l-1-x", idle_s=idle_s)
    gone = SinglePlan() if stays else SinglePlan(delete=("l-1",))
    assert plan_singles([], [done], 3, keep_ended=True) == gone


def test_a_job_that_was_not_begun_and_is_not_wanted_goes_at_once() -> None:
    pending = one("l-1", Stage.STARTING)
    assert plan_singles([], [pending], 3, keep_ended=True) == SinglePlan(delete=("l-1",))
