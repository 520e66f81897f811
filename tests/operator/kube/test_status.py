"""The writer of statuses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from noetl_operator.kube.port import EXECUTION, Key, Object, uid_of
from noetl_operator.kube.status import StatusWriter
from tests.support.cluster import FakeCluster

KEY = Key(EXECUTION, "n", "x")


def made(cluster: FakeCluster) -> str:
    meta = {"name": "x", "namespace": "n"}
    return uid_of(cluster.put(EXECUTION, {"metadata": meta, "spec": {}}))


@contextlib.asynccontextmanager
async def running(writer: StatusWriter) -> AsyncIterator[None]:
    task = asyncio.create_task(writer.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def settled(cluster: FakeCluster, status: Object) -> None:
    await cluster.until(lambda: cluster.objects[KEY].get("status") == status)


async def test_what_is_already_there_is_not_written() -> None:
    cluster = FakeCluster()
    uid, writer = made(cluster), StatusWriter(cluster)
    async with running(writer):
        writer.want(KEY, uid, lambda: {"phase": "Running"}, {"phase": "Running"}, soon=True)
        writer.want(KEY, uid, lambda: {"phase": "Failed"}, None, soon=True)
        await settled(cluster, {"phase": "Failed"})
        writer.want(KEY, uid, lambda: {"phase": "Failed"}, {"phase": "Running"}, soon=True)
        writer.want(KEY, uid, lambda: {"phase": "Done"}, None, soon=True)
        await settled(cluster, {"phase": "Done"})
    assert cluster.writes == [("status", KEY)] * 2


async def test_news_that_come_together_are_one_write() -> None:
    cluster = FakeCluster()
    uid, writer = made(cluster), StatusWriter(cluster)
    async with running(writer):
        for number in range(50):
            writer.want(KEY, uid, lambda number=number: {"n": number}, None, soon=False)
        writer.want(KEY, uid, lambda: {"n": "end"}, None, soon=True)
        await settled(cluster, {"n": "end"})
    assert cluster.writes == [("status", KEY)]


async def test_it_is_written_once_the_cluster_answers_again() -> None:
    cluster = FakeCluster()
    uid, writer = made(cluster), StatusWriter(cluster)
    cluster.down = True
    async with running(writer):
        writer.want(KEY, uid, lambda: {"n": 1}, None, soon=True)
        await asyncio.sleep(0)
        cluster.down = False
        await settled(cluster, {"n": 1})


async def test_another_object_of_the_name_gets_its_own_status_in_the_end() -> None:
    cluster = FakeCluster()
    uid, writer = made(cluster), StatusWriter(cluster)
    async with running(writer):
        writer.want(KEY, "one before", lambda: {"n": 1}, None, soon=True)
        writer.want(KEY, uid, lambda: {"n": 2}, None, soon=True)
        await settled(cluster, {"n": 2})
    async with running(writer):
        writer.want(KEY, "one before", lambda: {"n": 1}, None, soon=True)
        await settled(cluster, {"n": 1})
        writer.want(KEY, uid, lambda: {"n": 2}, {"n": 1}, soon=True)
        await settled(cluster, {"n": 2})


async def test_what_somebody_else_wrote_is_put_right() -> None:
    cluster = FakeCluster()
    uid, writer = made(cluster), StatusWriter(cluster)
    async with running(writer):
        writer.want(KEY, uid, lambda: {"n": 1}, None, soon=True)
        await settled(cluster, {"n": 1})
        forged = cluster.put(EXECUTION, {**cluster.objects[KEY], "status": {"n": "forged"}})
        writer.doubt(KEY, forged)
        await settled(cluster, {"n": 1})


async def test_what_the_api_server_makes_of_a_status_is_no_reason_to_write_for_ever() -> None:
    cluster = FakeCluster()
    uid, writer = made(cluster), StatusWriter(cluster)
    async with running(writer):
        writer.want(KEY, uid, lambda: {"n": 1}, None, soon=True)
        await settled(cluster, {"n": 1})
        other = cluster.put(EXECUTION, {**cluster.objects[KEY], "status": {"n": 1.0000001}})
        for _ in range(3):
            writer.doubt(KEY, other)
            writer.want(KEY, uid, lambda: {"n": 1}, None, soon=True)
            await settled(cluster, {"n": 1})
    assert len(cluster.writes) == 2


async def test_who_does_not_lead_writes_nothing() -> None:
    cluster, leads = FakeCluster(), False
    uid, writer = made(cluster), StatusWriter(cluster, lambda: leads)
    async with running(writer):
        writer.want(KEY, uid, lambda: {"n": 1}, None, soon=True)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        leads = True
        writer.want(KEY, uid, lambda: {"n": 2}, None, soon=True)
        await settled(cluster, {"n": 2})
    assert cluster.writes == [("status", KEY)]
