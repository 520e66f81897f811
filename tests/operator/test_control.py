"""The control plane as a whole: who leads, what time brings, and what survives a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from noetl_core.engine.transition import Transition
from noetl_core.engine.triggers import CancelChild, CancelMode, Reported, Resume, Suspend, Tick
from noetl_operator.router import Committed
from noetl_operator.store.port import Action, NotLeader, StoreError, Unavailable
from noetl_operator.sweep import Outbox
from tests.support.control import CHAIN, OK, SINGLE, STARTED, Control, controlled


@pytest.fixture
async def control(store_uri: str) -> AsyncIterator[Control]:
    async with controlled(store_uri) as found:
        yield found


async def eventually(holds: Callable[[], Any]) -> None:
    """Until it holds: what is waited for is another task's doing, soon."""
    async with asyncio.timeout(10):
        while not await holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def refusing(control: Control, execution_id: str, error: Exception, times: int = 1_000) -> None:
    """Let the store refuse whatever touches one execution."""
    commit = control.store.commit
    left = [times]

    async def refuse(shard: Any, transitions: Sequence[Transition], hands: Any = None) -> None:
        if left[0] and any(one.execution_id == execution_id for one in transitions):
            left[0] -= 1
            raise error
        await commit(shard, transitions, hands)

    control.store.commit = refuse  # type: ignore[method-assign]


# Leading


async def test_an_execution_that_was_only_registered_is_started(control: Control) -> None:
    request = await control.request(SINGLE)
    await control.store.create(request)

    async def is_started() -> bool:
        return "workflow.started" in await control.names(request.execution_id)

    await eventually(is_started)


async def test_only_the_leader_gives_work_and_verdicts(store_uri: str) -> None:
    async with (
        controlled(store_uri, "first") as leader,
        controlled(store_uri, "second", leads=False) as standby,
    ):
        await leader.start(SINGLE)
        body = {"protocol": 1, "worker": "w", "pool": "default", "capacity": 1, "wait_s": 0}
        status, answer = await standby.call("/v1/lease", body)
        assert (status, answer["retry"]) == (503, True)
        (command,) = await leader.lease()
        status, answer = await standby.report(command, facts=[STARTED], end=OK)
        assert (status, answer["retry"]) == (503, True)
        status, answer = await leader.report(command, facts=[STARTED], end=OK)
        assert answer["answers"][0]["verdict"] == "accepted"


async def test_a_leader_that_slept_beyond_its_time_says_nothing(control: Control) -> None:
    execution_id = await control.start(SINGLE)
    shard = control.plane.router.shard
    assert shard is not None
    control.plane.router.lead(shard, until=0.0)
    unknown = Reported(lease_id="x", epoch=1, first=0, facts=(), end=None)
    with pytest.raises(NotLeader):
        await control.plane.router.apply(execution_id, unknown)


async def test_the_next_replica_goes_on_where_the_last_one_stopped(store_uri: str) -> None:
    async with controlled(store_uri, "first") as first:
        execution_id = await first.start(CHAIN)
        (command,) = await first.lease()
        await first.report(command, facts=[STARTED])
    async with controlled(store_uri, "second") as second:
        _, answer = await second.report(command, 1, first=1, facts=[], end=OK)
        assert answer["answers"][0]["verdict"] == "accepted"
        (following,) = answer["commands"]
        await second.report(following, facts=[STARTED], end=OK)
        names = await second.names(execution_id)
    assert names[-1] == "workflow.finished"
    assert "step.redelivered" not in names


# Commits


async def test_one_refused_trigger_does_not_cost_the_others(control: Control) -> None:
    ids = [await control.start(SINGLE) for _ in range(4)]
    refusing(control, ids[1], ValueError("it cannot be written"))
    applied = [control.plane.router.apply(one, Suspend(by="me")) for one in ids]
    found = await asyncio.gather(*applied, return_exceptions=True)
    assert isinstance(found[1], ValueError)
    for at in (0, 2, 3):
        assert not isinstance(found[at], BaseException)
        assert (await control.names(ids[at]))[-1] == "execution.suspended"


async def test_a_commit_whose_fate_is_unknown_is_asked_for_again(control: Control) -> None:
    execution_id = await control.start(SINGLE)
    refusing(control, execution_id, Unavailable("gone"), times=1)
    with pytest.raises(Unavailable):
        await control.plane.router.apply(execution_id, Suspend(by="me"))
    await control.plane.router.apply(execution_id, Suspend(by="me"))
    await control.plane.router.apply(execution_id, Resume(by="me"))
    names = await control.names(execution_id)
    assert names.count("execution.suspended") == 1


async def test_a_look_that_finds_nothing_is_not_repeated_for_ever(control: Control) -> None:
    execution_id = await control.start(SINGLE)
    connection = control.store._pool
    await connection.execute("UPDATE noetl.execution SET due_at = now() - interval '1 minute'")
    await control.plane.router.apply(execution_id, Tick())
    assert await control.store.due(0, 10) == []


async def test_an_observer_that_fails_stops_nothing(control: Control) -> None:
    def observe(committed: Committed) -> None:
        raise RuntimeError("not my day")

    control.plane.router.observers.insert(0, observe)
    execution_id = await control.start(SINGLE)
    await control.plane.router.apply(execution_id, Suspend(by="me"))
    assert (await control.names(execution_id))[-1] == "execution.suspended"


async def test_a_command_is_never_given_with_an_older_ctx_than_the_log_has(
    control: Control,
) -> None:
    """The commit that queues a command and changes `ctx` stands, its answer is not back yet, and
    a worker leases the command meanwhile."""
    await control.start(CHAIN)
    (command,) = await control.lease()
    commit, stands, go_on = control.store.commit, asyncio.Event(), asyncio.Event()

    async def slowly(*args: Any) -> None:
        await commit(*args)
        stands.set()
        await go_on.wait()

    control.store.commit = slowly  # type: ignore[method-assign]
    patch = {"name": "ctx.patched", "payload": {"set": {"seen": 7}, "by": "one/t", "reason": None}}
    ended = asyncio.create_task(control.report(command, facts=[STARTED, patch], end=OK))
    await stands.wait()
    leased = asyncio.create_task(control.lease())
    await asyncio.sleep(0.1)
    assert not leased.done(), "it was given before the router knew what is in the log"
    go_on.set()
    (following,) = await leased
    assert (following["step"], following["ctx"]) == ("two", {"seen": 7})
    await ended


# Time


async def test_K24_a_worker_that_is_silent_loses_its_run(store_uri: str) -> None:
    async with controlled(store_uri, lease_ttl_s=0.3) as control:
        execution_id = await control.start(SINGLE)
        (command,) = await control.lease()
        (again,) = await control.lease(wait_s=10.0, worker="other")
        assert (again["lease_id"], again["epoch"]) == (command["lease_id"], 2)
        _, late = await control.report(command, facts=[STARTED], end=OK)
        assert late["answers"][0]["verdict"] == "gone"
        assert (await control.names(execution_id)).count("step.redelivered") == 1


async def test_leases_that_ran_out_while_nobody_listened_get_another_moment(
    store_uri: str,
) -> None:
    async with controlled(store_uri, "first") as first:
        execution_id = await first.start(SINGLE)
        (command,) = await first.lease()
        await first.store._pool.execute("UPDATE noetl.step_run SET lease_until = now()")
    async with controlled(store_uri, "second", lease_ttl_s=20.0) as second:
        await second.plane.sweeper.sweep()
        keys = ("lease_id", "epoch", "capability")
        held = [{key: command[key] for key in keys}]
        _, beat = await second.call("/v1/heartbeat", {"protocol": 1, "worker": "w", "leases": held})
        assert "gone" not in beat
        await second.report(command, facts=[STARTED], end=OK)
        assert "step.redelivered" not in await second.names(execution_id)


async def test_K22_a_deadline_passes_without_anyone_saying_so(control: Control) -> None:
    text = SINGLE.replace(
        "{step: one,", "{step: one, spec: {policy: {lifecycle: {deadline_s: 0.2}}},"
    )
    execution_id = await control.start(text)

    async def is_over() -> bool:
        return (await control.names(execution_id))[-1] == "workflow.finished"

    await eventually(is_over)
    assert "step.failed" in await control.names(execution_id)


# The outbox


class _Box:
    """Of a store, only its outbox."""

    def __init__(self) -> None:
        effect = CancelChild("c", CancelMode.NOW)
        self.waiting = [Action(n, "e", effect) for n in range(3)]
        self.later: list[int] = []

    async def actions(self, shard: int, limit: int) -> list[Action]:
        return self.waiting[:limit]

    async def acted(self, ids: Sequence[int]) -> None:
        self.waiting = [one for one in self.waiting if one.id not in ids]

    async def action_later(self, action_id: int) -> None:
        self.later.append(action_id)
        self.waiting = [one for one in self.waiting if one.id != action_id]


async def test_the_outbox_is_left_to_the_leader() -> None:
    box, done = _Box(), []

    async def act(action: Action) -> None:
        done.append(action.id)

    leads = [False]
    outbox = Outbox(box, act, lambda: leads[0], shard=0, every_s=1.0)  # type: ignore[arg-type]
    await outbox.once()
    assert done == []
    leads[0] = True
    await outbox.once()
    assert (done, box.waiting) == ([0, 1, 2], [])


async def test_an_action_that_fails_comes_later_and_holds_up_nobody() -> None:
    box, done = _Box(), []

    async def act(action: Action) -> None:
        if action.id == 1:
            raise RuntimeError("not now")
        done.append(action.id)

    await Outbox(box, act, lambda: True, shard=0, every_s=1.0).once()  # type: ignore[arg-type]
    assert (done, box.later) == ([0, 2], [1])


async def test_an_action_is_not_put_off_because_the_database_is_away() -> None:
    box = _Box()

    async def act(action: Action) -> None:
        raise Unavailable("gone")

    with pytest.raises(StoreError):
        await Outbox(box, act, lambda: True, shard=0, every_s=1.0).once()  # type: ignore[arg-type]
    assert (len(box.waiting), box.later) == (3, [])
