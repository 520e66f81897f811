"""What every store promises: the fences, the one transaction, the queue, the outbox, the results.

Times are never waited for: a lease or a shard of zero seconds has run out at once.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from uuid import UUID, uuid5

import pytest

from noetl_core.engine import ids
from noetl_core.engine.events import (
    Event,
    ExecutionSuspended,
    Fact,
    IterationDone,
    IterationFailed,
    LoopOpened,
    LoopStarted,
)
from noetl_core.engine.state import State
from noetl_core.engine.transition import Fence, Transition
from noetl_core.engine.triggers import CancelChild, CancelMode, Enqueue, Requeue, Store
from noetl_operator.store.port import (
    Conflict,
    Corrupt,
    EventStore,
    Fenced,
    NewExecution,
    NotLeader,
    Shard,
)

LONG = 60.0
LONG_AGO = "2020-01-01T00:00:00.000000Z"
FAR = "2999-01-01T00:00:00.000000Z"
RUN = str(uuid5(UUID(int=7), "run"))


def execution(number: int = 1, **more: object) -> NewExecution:
    new = NewExecution(
        execution_id=str(UUID(int=number)),
        namespace="here",
        name=f"one-{number}",
        playbook_name="made",
        digest="sha256:00",
        document={"metadata": {"name": "made"}},
        workload={"a": [1, {"b": None}]},
    )
    return replace(new, **more)  # type: ignore[arg-type]


def step(execution_id: str, expected: int, *facts: Fact, **more: object) -> Transition:
    """The next step of an execution's log; by default one event."""
    given = facts or (ExecutionSuspended(reason=f"after {expected}"),)
    keys = tuple(f"fact/{expected + n}" for n in range(1, len(given) + 1))
    events = tuple(
        Event(ids.event_id(execution_id, key), execution_id, expected + n, LONG_AGO, "control", f)
        for n, (key, f) in enumerate(zip(keys, given, strict=True), 1)
    )
    made = Transition(
        execution_id=execution_id,
        expected=expected,
        events=events,
        dedup_keys=keys,
        state=State(execution_id=execution_id, seq=expected + len(events)),
        due_at=None,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def command(lease: str = RUN, **more: object) -> Enqueue:
    made = Enqueue(lease_id=lease, run_id=RUN, step="load", args={"n": 1})
    return replace(made, **more)  # type: ignore[arg-type]


@pytest.fixture
async def shard(store: EventStore) -> Shard:
    taken = await store.take_shard(0, "me", LONG)
    assert taken is not None
    return taken


@pytest.fixture
async def one(store: EventStore, shard: Shard) -> str:
    return await store.create(execution())


async def seq_of(store: EventStore, execution_id: str) -> int:
    found = await store.load(execution_id)
    assert found is not None
    return found.state.seq


async def queued(store: EventStore, shard: Shard, one: str, *commands: Enqueue) -> None:
    await store.commit(shard, [step(one, 0, enqueue=commands or (command(),))])


# Leadership


async def test_a_shard_is_led_by_one_process_at_a_time(store: EventStore) -> None:
    mine = await store.take_shard(0, "me", LONG)
    assert await store.take_shard(0, "you", LONG) is None
    assert await store.take_shard(0, "me", LONG) == mine


async def test_a_shard_that_nobody_prolonged_is_taken_under_the_next_epoch(
    store: EventStore,
) -> None:
    mine = await store.take_shard(0, "me", 0.0)
    yours = await store.take_shard(0, "you", LONG)
    assert mine is not None
    assert yours == Shard(0, mine.epoch + 1)


async def test_a_released_shard_is_free_at_once_and_only_its_holder_releases_it(
    store: EventStore,
) -> None:
    mine = await store.take_shard(0, "me", LONG)
    await store.release_shard(0, "you")
    assert await store.take_shard(0, "you", LONG) is None
    await store.release_shard(0, "me")
    yours = await store.take_shard(0, "you", LONG)
    assert mine is not None
    assert yours is not None
    assert yours.epoch > mine.epoch


async def test_whoever_lost_its_shard_commits_nothing(store: EventStore, one: str) -> None:
    await store.release_shard(0, "me")
    old = await store.take_shard(0, "me", 0.0)
    await store.take_shard(0, "you", LONG)
    assert old is not None
    with pytest.raises(NotLeader):
        await store.commit(old, [step(one, 0)])
    assert await store.events(one) == []


# Executions


async def test_a_request_key_makes_one_execution(store: EventStore, shard: Shard) -> None:
    first = await store.create(execution(1, request_key="k"))
    again = await store.create(execution(2, request_key="k"))
    other = await store.create(execution(3, request_key="k", namespace="there"))
    assert (first, again) == (str(UUID(int=1)), str(UUID(int=1)))
    assert other == str(UUID(int=3))
    assert await store.load(str(UUID(int=2))) is None


async def test_a_new_execution_is_due_and_has_an_empty_log(
    store: EventStore, shard: Shard, one: str
) -> None:
    found = await store.load(one)
    assert found is not None
    assert found.request == execution()
    assert found.state == State(execution_id=one)
    assert await store.due(0, 10) == [one]
    assert await store.due(1, 10) == []


async def test_an_unknown_execution_is_none(store: EventStore) -> None:
    assert await store.load(str(UUID(int=99))) is None


# The one transaction


async def test_a_commit_appends_and_moves_the_state(
    store: EventStore, shard: Shard, one: str
) -> None:
    first, second = step(one, 0), step(one, 1, ExecutionSuspended(by="a"), ExecutionSuspended())
    await store.commit(shard, [first])
    await store.commit(shard, [second])
    assert await store.events(one) == [*first.events, *second.events]
    assert await store.events(one, after=1, limit=1) == [second.events[0]]
    assert await seq_of(store, one) == 3


async def test_a_commit_on_an_old_seq_is_a_conflict(
    store: EventStore, shard: Shard, one: str
) -> None:
    await store.commit(shard, [step(one, 0)])
    late = step(one, 0, ExecutionSuspended(reason="other"), dedup_keys=("other",))
    late = replace(late, events=(replace(late.events[0], event_id=ids.event_id(one, "other")),))
    with pytest.raises(Conflict):
        await store.commit(shard, [late])
    assert len(await store.events(one)) == 1


async def test_a_batch_is_all_or_nothing(store: EventStore, shard: Shard, one: str) -> None:
    two = await store.create(execution(2))
    wrong = step(two, 5)
    good = step(one, 0, enqueue=(command(),), again=True)
    with pytest.raises(Conflict):
        await store.commit(shard, [good, wrong])
    assert await store.events(one) == []
    assert await seq_of(store, one) == 0
    assert await store.lease("default", "w", 10, LONG) == []


async def test_an_event_is_in_the_log_once(store: EventStore, shard: Shard, one: str) -> None:
    await store.commit(shard, [step(one, 0)])
    again = step(one, 1)
    same = replace(again.events[0], event_id=ids.event_id(one, "fact/1"))
    with pytest.raises(Conflict):
        await store.commit(shard, [replace(again, events=(same,), dedup_keys=("fact/1",))])
    assert await seq_of(store, one) == 1


async def test_an_execution_of_another_shard_is_not_written_to(
    store: EventStore, shard: Shard
) -> None:
    other = await store.create(execution(4, shard=3))
    with pytest.raises((Conflict, NotLeader)):
        await store.commit(shard, [step(other, 0)])
    assert await store.events(other) == []


async def test_content_is_there_with_the_events_that_name_it(
    store: EventStore, shard: Shard, one: str
) -> None:
    key = hashlib.sha256(b"[1]").hexdigest()
    await store.commit(shard, [step(one, 0, store=(Store(key, b"[1]"),))])
    assert await store.get_result(key) == b"[1]"


# The queue


async def test_a_command_is_leased_to_one_worker(store: EventStore, shard: Shard, one: str) -> None:
    await queued(store, shard, one, command(iters=({"item": 1, "index": 0, "total": 1},)))
    (leased,) = await store.lease("default", "w1", 10, LONG)
    assert (leased.execution_id, leased.lease_id, leased.epoch) == (one, RUN, 1)
    assert leased.command["args"] == {"n": 1}
    assert leased.command["iters"] == [{"item": 1, "index": 0, "total": 1}]
    assert leased.until > await store.now()
    assert await store.lease("default", "w2", 10, LONG) == []


async def test_commands_are_leased_in_order_and_by_pool(store: EventStore, shard: Shard) -> None:
    leases = [str(UUID(int=n)) for n in (21, 22, 23)]
    one = await store.create(execution(1, pools={"heavy": "big"}))
    commands = [command(lease) for lease in leases[:2]] + [command(leases[2], step="heavy")]
    await queued(store, shard, one, *commands)
    assert [x.lease_id for x in await store.lease("default", "w", 1, LONG)] == leases[:1]
    assert [x.lease_id for x in await store.lease("big", "w", 9, LONG)] == leases[2:]
    assert [x.lease_id for x in await store.lease("default", "w", 9, LONG)] == leases[1:2]


async def test_a_worker_may_ask_for_one_command(store: EventStore, shard: Shard, one: str) -> None:
    leases = [str(UUID(int=n)) for n in (21, 22)]
    await queued(store, shard, one, *[command(lease) for lease in leases])
    (leased,) = await store.lease("default", "w", 10, LONG, lease_id=leases[1])
    assert leased.lease_id == leases[1]
    assert await store.lease("default", "w", 10, LONG, lease_id=leases[1]) == []


async def test_a_report_needs_its_lease(store: EventStore, shard: Shard, one: str) -> None:
    await queued(store, shard, one)
    for epoch in (0, 1):
        with pytest.raises(Fenced):
            await store.commit(shard, [step(one, 1, held=(Fence(RUN, epoch),))])
    await store.lease("default", "w", 1, LONG)
    await store.commit(shard, [step(one, 1, held=(Fence(RUN, 1),))])
    with pytest.raises(Fenced):
        await store.commit(shard, [step(one, 2, held=(Fence(RUN, 2),))])
    assert await seq_of(store, one) == 2


async def test_an_end_takes_the_lease_with_it(store: EventStore, shard: Shard, one: str) -> None:
    await queued(store, shard, one)
    await store.lease("default", "w", 1, LONG)
    await store.commit(shard, [step(one, 1, ended=(Fence(RUN, 1),))])
    with pytest.raises(Fenced):
        await store.commit(shard, [step(one, 2, ended=(Fence(RUN, 1),))])
    assert await store.heartbeat([Fence(RUN, 1)], LONG) == {}
    assert await store.lease("default", "w", 1, LONG) == []


async def test_a_lost_lease_expires_is_requeued_and_its_zombie_is_fenced(
    store: EventStore, shard: Shard, one: str
) -> None:
    await queued(store, shard, one)
    await store.lease("default", "w1", 1, 0.0)
    (lost,) = await store.expired(0, 10)
    assert (lost.execution_id, lost.lease_id, lost.epoch) == (one, RUN, 1)
    assert await store.expired(1, 10) == []
    with pytest.raises(Fenced):
        await store.commit(shard, [step(one, 1, requeue=(Requeue(RUN, 2),))])
    await store.commit(shard, [step(one, 1, requeue=(Requeue(RUN, 1),))])
    assert await store.expired(0, 10) == []
    with pytest.raises(Fenced):
        await store.commit(shard, [step(one, 2, held=(Fence(RUN, 1),))])
    (again,) = await store.lease("default", "w2", 1, LONG)
    assert again.epoch == 2
    with pytest.raises(Fenced):
        await store.commit(shard, [step(one, 2, ended=(Fence(RUN, 1),))])
    await store.commit(shard, [step(one, 2, ended=(Fence(RUN, 2),))])


async def test_a_heartbeat_prolongs_what_is_still_held(
    store: EventStore, shard: Shard, one: str
) -> None:
    await queued(store, shard, one)
    await store.lease("default", "w", 1, 0.0)
    other = Fence(str(UUID(int=5)), 1)
    assert await store.heartbeat([Fence(RUN, 1), Fence(RUN, 2), other], LONG) == {RUN: False}
    assert await store.expired(0, 10) == []


async def test_a_stop_is_told_with_the_heartbeat(store: EventStore, shard: Shard, one: str) -> None:
    await queued(store, shard, one)
    await store.lease("default", "w", 1, LONG)
    await store.commit(shard, [step(one, 1, stop=(RUN,))])
    assert await store.heartbeat([Fence(RUN, 1)], LONG) == {RUN: True}


async def test_a_revoked_command_is_gone_for_queue_and_holder(
    store: EventStore, shard: Shard, one: str
) -> None:
    held, waiting = str(UUID(int=21)), str(UUID(int=22))
    await queued(store, shard, one, command(held), command(waiting))
    await store.lease("default", "w", 1, LONG)
    await store.commit(shard, [step(one, 1, revoke=(held, waiting))])
    assert await store.lease("default", "w", 9, LONG) == []
    assert await store.heartbeat([Fence(held, 1)], LONG) == {}
    with pytest.raises(Fenced):
        await store.commit(shard, [step(one, 2, ended=(Fence(held, 1),))])


# Time


async def test_an_execution_is_due_when_its_time_has_come_or_more_is_to_do(
    store: EventStore, shard: Shard, one: str
) -> None:
    cases = ((LONG_AGO, False, True), (FAR, False, False), (None, True, True), (None, False, False))
    for expected, (due_at, again, is_due) in enumerate(cases):
        await store.commit(shard, [step(one, expected, due_at=due_at, again=again)])
        assert (one in await store.due(0, 10)) is is_due, (due_at, again)


async def test_the_clock_is_text_of_one_width(store: EventStore) -> None:
    first, second = await store.now(), await store.now()
    assert first <= second
    assert len(first) == len(FAR)
    assert first.endswith("Z")


# The outbox, the log of loops, results


async def test_the_outbox_keeps_an_action_until_it_was_acted(
    store: EventStore, shard: Shard, one: str
) -> None:
    effects = [CancelChild(str(UUID(int=n)), CancelMode.NOW) for n in (31, 32)]
    await store.commit(shard, [step(one, 0, outbox=tuple(effects))])
    found = await store.actions(0, 10)
    assert [(action.execution_id, action.effect) for action in found] == [(one, e) for e in effects]
    assert await store.actions(1, 10) == []
    await store.acted([found[0].id])
    assert [action.effect for action in await store.actions(0, 10)] == effects[1:]


async def test_the_iterations_and_lists_of_a_loop_are_read_from_the_log(
    store: EventStore, shard: Shard, one: str
) -> None:
    other = str(UUID(int=40))
    facts = (
        LoopStarted(step="s", run_id=RUN, total=2),
        LoopOpened(step="s", run_id=RUN, iteration="1", total=3),
        IterationDone(step="s", run_id=RUN, iteration="1.0", result=[1], writes={"k": 2}),
        IterationFailed(step="s", run_id=RUN, iteration="1.1", error={"kind": "schema"}),
        IterationDone(step="s", run_id=other, iteration="0", result=None),
    )
    await store.commit(shard, [step(one, 0, *facts)])
    found = {end.iteration: end for end in await store.iterations(one, RUN)}
    assert set(found) == {"1.0", "1.1"}
    assert (found["1.0"].result, found["1.0"].failed, found["1.0"].writes) == ([1], False, {"k": 2})
    assert found["1.1"].failed
    assert await store.frames(one, RUN) == {"": 2, "1": 3}


async def test_a_result_is_kept_once_under_its_digest(store: EventStore) -> None:
    content = b'{"a":1}'
    key = hashlib.sha256(content).hexdigest()
    assert await store.get_result(key) is None
    await store.put_result(key, content)
    await store.put_result(key, content)
    assert await store.get_result(key) == content
    with pytest.raises(Corrupt):
        await store.put_result(key, b"other")
    assert await store.get_result(key) == content
