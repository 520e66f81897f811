"""What the launcher reads of the queue, on Postgres; and what becomes of commands nobody takes."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest

from noetl_core.load import digest, dump, load
from noetl_operator.control import ControlPlane, control_plane
from noetl_operator.kube.lost import Losses
from noetl_operator.settings import OperatorSettings
from noetl_operator.starting import new_execution_id
from noetl_operator.store.port import NewExecution
from noetl_operator.store.postgres import PostgresStore
from noetl_operator.store.queues import Queues, SingleCommand, Waiting

TEXT = """
metadata: {name: etl}
keychain: KEYCHAIN
workflow:
- step: one
  spec: {policy: {lifecycle: {max_redeliveries: 3}}}
  tool: {kind: noop}
"""


@contextlib.asynccontextmanager
async def plane(uri: str) -> AsyncIterator[tuple[ControlPlane, PostgresStore]]:
    settings = OperatorSettings(sweep_interval_s=0.05)
    async with (
        PostgresStore.connect(uri, connections=2) as store,
        control_plane(store, None, settings, shard=0, holder="me") as running,  # type: ignore[arg-type]
    ):
        await running.sweeper.led.wait()
        yield running, store


async def started(running: ControlPlane, pool: str, keychain: str = "[]") -> str:
    (loaded,) = load(TEXT.replace("KEYCHAIN", keychain))
    assert loaded.playbook is not None, loaded.problems
    execution_id = new_execution_id(await running.store.now())
    await running.start(
        NewExecution(
            execution_id=execution_id,
            namespace="team",
            name="nightly",
            playbook_name="etl",
            digest=digest(loaded.playbook),
            document=dump(loaded.playbook),
            workload={},
            pool=pool,
        )
    )
    return execution_id


async def test_what_waits_and_who_holds_it(store_uri: str) -> None:
    async with plane(store_uri) as (running, store):
        execution_id = await started(running, "execution/a")
        queues = Queues(store)
        assert await queues.demand(0) == [Waiting("execution/a", execution_id, 1, 0)]
        assert await queues.demand(1) == []
        assert await queues.singles(0) == []
        assert await queues.holders(0) == {}
        (leased,) = await store.lease("execution/a", "pod-1", 5, 30.0)
        assert await queues.demand(0) == [Waiting("execution/a", execution_id, 0, 1)]
        assert await queues.holders(0) == {("team", "pod-1"): 1}
        (held,) = await queues.held_by(0, "team", "pod-1")
        assert (held.lease_id, held.epoch) == (leased.lease_id, 1)
        assert await queues.held_by(0, "other", "pod-1") == []
        assert await queues.unfinished({execution_id}) == {execution_id}
        assert await queues.unfinished(set()) == set()


async def test_commands_with_a_worker_of_their_own(store_uri: str) -> None:
    async with plane(store_uri) as (running, store):
        execution_id = await started(running, "step/a/")
        queues = Queues(store)
        (one,) = await queues.singles(0)
        wanted = SingleCommand("step/a/", execution_id, one.lease_id, 0, "one", None)
        assert one == wanted
        await store.lease("step/a/", "pod-1", 1, 30.0, one.lease_id)
        (held,) = await queues.singles(0)
        assert (held.epoch, held.owner) == (1, "pod-1")


async def test_what_a_lost_worker_held_is_delivered_again(store_uri: str) -> None:
    async with plane(store_uri) as (running, store):
        execution_id = await started(running, "execution/a")
        queues = Queues(store)
        await store.lease("execution/a", "pod-1", 1, 30.0)
        losses = Losses(store, running.router, queues, shard=0)
        assert await losses.worker("team", "pod-1", "it ran out of memory") == 1
        assert await queues.demand(0) == [Waiting("execution/a", execution_id, 1, 0)]
        events = await store.events(execution_id)
        assert events[-1].as_json()["payload"]["reason"] == "it ran out of memory"  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    ("keychain", "reason"),
    [("[]", "StepFailed"), ("[{name: db, kind: secret}]", "KeychainError")],
)
async def test_what_no_worker_can_be_had_for_fails_at_once(
    store_uri: str, keychain: str, reason: str
) -> None:
    async with plane(store_uri) as (running, store):
        execution_id = await started(running, "execution/a", keychain)
        losses = Losses(store, running.router, Queues(store), shard=0)
        assert await losses.pool("execution/a", "no node takes the Pod") == 1
        snapshot = await store.load(execution_id)
        assert snapshot is not None
        assert (snapshot.state.phase.value, snapshot.state.reason) == ("Failed", reason)
        assert snapshot.state.message is not None
        assert "no worker could be had for it: no node takes the Pod" in snapshot.state.message
        assert await Queues(store).unfinished({execution_id}) == set()


async def test_a_pod_that_ended_before_it_began_costs_one_delivery(store_uri: str) -> None:
    async with plane(store_uri) as (running, store):
        await started(running, "step/a/")
        queues = Queues(store)
        losses = Losses(store, running.router, queues, shard=0)
        for epoch in range(3):
            (one,) = await queues.singles(0)
            assert (one.epoch, one.owner) == (epoch, None)
            await losses.command("step/a/", one.lease_id, "it ended", nowhere=False)
        (last,) = await queues.singles(0)
        await losses.command("step/a/", last.lease_id, "it ended", nowhere=False)
        assert await queues.singles(0) == []
