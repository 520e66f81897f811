"""What the store on Postgres promises beyond the contract: its schema, its log, its results."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import asyncpg
import pytest

from noetl_cli.local.verifying import verify
from noetl_core.engine.clock import iso
from noetl_core.engine.transition import Fence
from noetl_core.engine.triggers import Store
from noetl_operator.starting import new_execution_id
from noetl_operator.store.durable import Hand
from noetl_operator.store.port import Corrupt, Fenced, NewExecution, Shard, Unavailable
from noetl_operator.store.postgres import PostgresStore
from noetl_operator.store.queries import migrations
from noetl_operator.store.reading import Reading
from noetl_operator.sweep import week_end
from tests.contract.test_store import LONG, command, execution, step

LEASE = str(UUID(int=21))


@pytest.fixture
async def store(store_uri: str) -> AsyncIterator[PostgresStore]:
    async with PostgresStore.connect(store_uri) as found:
        yield found


@pytest.fixture
async def owner(store_uri: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await asyncpg.connect(store_uri)
    yield connection
    await connection.close()


@pytest.fixture
async def shard(store: PostgresStore) -> Shard:
    taken = await store.take_shard(0, "me", LONG)
    assert taken is not None
    return taken


@pytest.fixture
async def one(store: PostgresStore, shard: Shard) -> str:
    return await store.create(execution())


# The schema

_MIGRATE = """
import asyncio, sys
from noetl_operator.store.postgres import PostgresStore
async def run():
    async with PostgresStore.connect(sys.argv[1]) as store:
        await store.take_shard(int(sys.argv[2]), "me", 60)
asyncio.run(run())
"""


async def test_replicas_that_start_together_migrate_once(postgres_uri: str) -> None:
    running = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", _MIGRATE, postgres_uri, str(n))
        for n in range(3)
    ]
    assert [await process.wait() for process in running] == [0, 0, 0]
    async with PostgresStore.connect(postgres_uri) as store:
        rows = await store.read("partitions")
        assert len(rows) >= 5
    connection = await asyncpg.connect(postgres_uri)
    versions = await connection.fetch("SELECT version FROM noetl.schema_version ORDER BY 1")
    await connection.close()
    assert [row["version"] for row in versions] == [number for number, _ in migrations()]


def test_migrations_are_numbered_without_gaps() -> None:
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))


async def test_no_database_is_unavailable(postgres_uri: str) -> None:
    nowhere = postgres_uri.replace("host=/", "host=/nowhere/")
    with pytest.raises(Unavailable):
        async with PostgresStore.connect(nowhere):
            pass


# The log

_CHANGES = (
    "UPDATE {table} SET name = 'other'",
    "DELETE FROM {table}",
    "TRUNCATE {table}",
)


async def test_J_nobody_changes_the_log(
    store: PostgresStore,
    shard: Shard,
    one: str,
    owner: asyncpg.Connection[asyncpg.Record],
) -> None:
    await store.commit(shard, [step(one, 0)])
    for change in _CHANGES[:2]:
        with pytest.raises(asyncpg.PostgresError, match="append-only"):
            await owner.execute(change.format(table="noetl.event"))
    assert len(await store.events(one)) == 1


async def test_J_the_role_of_the_engine_can_only_add_to_the_log(
    store: PostgresStore, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    assert await store._pool_value("SELECT current_user") == "noetl_engine"
    await owner.execute("SET ROLE noetl_engine")
    for table in ["noetl.event", *[f"noetl.{part}" for part in await store.partitions()]]:
        for change in _CHANGES:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await owner.execute(change.format(table=table))
    for table in ("noetl.schema_version", "noetl.secret"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await owner.execute(f"DELETE FROM {table}")


async def test_J_a_changed_event_breaks_the_chain(
    store: PostgresStore,
    shard: Shard,
    one: str,
    owner: asyncpg.Connection[asyncpg.Record],
) -> None:
    for n in range(4):
        await store.commit(shard, [step(one, n)])
    before = b""
    async for stored in Reading(store).stored(one):
        assert stored.linked(before) == stored.hash
        before = stored.hash
    assert (await Reading(store).head(one)).head == before
    await owner.execute("ALTER TABLE noetl.event DISABLE TRIGGER append_only")
    await owner.execute('UPDATE noetl.event SET payload = \'{"reason": "mine"}\' WHERE seq = 2')
    found = await verify(Reading(store), one)
    assert found.difference is not None
    assert (found.difference.seq, found.difference.path) == (2, "hash")


async def test_J_the_chain_holds_whoever_wrote_the_event_before(store_uri: str) -> None:
    """Each replica goes on from the last event in the log, not from the last it wrote itself."""
    async with (
        PostgresStore.connect(store_uri) as first,
        PostgresStore.connect(store_uri) as second,
    ):
        one = await first.create(execution())
        for seq, store in enumerate((first, second, first, second, second, first)):
            owner = f"{id(store)}"
            shard = await store.take_shard(0, owner, LONG)
            assert shard is not None
            await store.commit(shard, [step(one, seq)])
            await store.release_shard(0, owner)
        before = b""
        async for stored in Reading(first).stored(one):
            assert stored.linked(before) == stored.hash, stored.event.seq
            before = stored.hash


# Handing over


async def test_a_new_command_can_be_leased_with_the_commit_that_brings_it(
    store: PostgresStore, shard: Shard, one: str
) -> None:
    other = str(UUID(int=22))
    commands = (command(LEASE), command(other))
    await store.commit(shard, [step(one, 0, enqueue=commands)], {LEASE: Hand("w1", LONG)})
    assert [leased.lease_id for leased in await store.lease("default", "w2", 9, LONG)] == [other]
    assert await store.heartbeat([Fence(LEASE, 1)], LONG) == {LEASE: False}
    await store.commit(shard, [step(one, 1, ended=(Fence(LEASE, 1),))])


async def test_what_was_handed_over_expires_like_any_lease(
    store: PostgresStore, shard: Shard, one: str
) -> None:
    await store.commit(shard, [step(one, 0, enqueue=(command(LEASE),))], {LEASE: Hand("w", 0.0)})
    assert [expired.lease_id for expired in await store.expired(0, 9)] == [LEASE]
    await store.prolong(0, LONG)
    assert await store.expired(0, 9) == []


async def test_leases_and_heartbeats_never_wait_for_each_other_in_a_circle(
    store: PostgresStore, shard: Shard, one: str
) -> None:
    leases = [str(UUID(int=n)) for n in range(100, 140)]
    await store.commit(shard, [step(one, 0, enqueue=tuple(command(x) for x in leases))])
    await store.lease("default", "w", 64, LONG)
    fences = [Fence(lease, 1) for lease in leases]

    async def beat() -> None:
        for _ in range(30):
            await store.heartbeat(fences[::-1], LONG)

    async def commit() -> None:
        for n in range(1, 30):
            await store.commit(shard, [step(one, n, held=tuple(fences[n % 7 :: 3][::-1]))])

    await asyncio.gather(beat(), commit(), beat())


async def test_a_lease_of_another_epoch_fences_the_whole_batch(
    store: PostgresStore, shard: Shard, one: str
) -> None:
    two = await store.create(execution(2))
    await store.commit(shard, [step(one, 0, enqueue=(command(LEASE),))])
    await store.lease("default", "w", 1, LONG)
    bad = step(one, 1, ended=(Fence(LEASE, 2),))
    with pytest.raises(Fenced):
        await store.commit(shard, [step(two, 0), bad])
    assert await store.events(two) == []


# Executions


async def test_one_key_asked_for_by_many_at_once_is_one_execution(store: PostgresStore) -> None:
    async def ask(n: int) -> str:
        return await store.create(execution(n, request_key="k"))

    found = await asyncio.gather(*(ask(n) for n in range(1, 9)))
    assert len(set(found)) == 1


# Weeks


async def test_weeks_are_made_ahead_even_by_several_at_once(store: PostgresStore) -> None:
    await asyncio.gather(*(store.ensure_partitions(9) for _ in range(4)))
    weeks = await store.partitions()
    assert len(weeks) == len(set(weeks)) >= 11
    ends = [week_end(name) for name in weeks if name != "event_1999w01"]
    assert all((b - a).days == 7 for a, b in pairwise(ends))


async def test_a_week_is_dropped_only_when_nothing_in_it_runs(
    store: PostgresStore, shard: Shard
) -> None:
    _, last_week, *_ = await store.partitions()
    during = iso(week_end(last_week) - timedelta(days=3))
    one = await store.create(execution(execution_id=new_execution_id(during)))
    key = hashlib.sha256(b"[1]").hexdigest()
    await store.commit(shard, [step(one, 0, store=(Store(key, b"[1]"),))])
    assert not await store.drop_partition(last_week)
    assert len(await store.events(one)) == 1
    ended = step(one, 1)
    ended.state.finished_at = "2020-01-01T00:00:00.000000Z"
    await store.commit(shard, [ended])
    assert await store.drop_partition(last_week)
    assert await store.events(one) == []
    assert await store.load(one) is None
    assert last_week not in await store.partitions()
    assert not await store.drop_partition(last_week)
    assert not await store.drop_partition("execution")


# Results


async def test_H2_content_that_rotted_is_not_handed_out(
    store: PostgresStore, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    key = hashlib.sha256(b"true").hexdigest()
    await store.put_result(key, b"true")
    await owner.execute("UPDATE noetl.result SET content = 'false'")
    with pytest.raises(Corrupt):
        await store.get_result(key)


async def test_only_old_results_that_nothing_names_are_swept(
    store: PostgresStore, one: str, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    contents = [b"1", b"2", b"3", b"4"]
    keys = [hashlib.sha256(content).hexdigest() for content in contents]
    await store.put_result(keys[0], contents[0], one)
    for key, content in zip(keys[1:3], contents[1:3], strict=True):
        await store.put_result(key, content)
    await owner.execute("UPDATE noetl.result SET created_at = now() - interval '1 day'")
    await store.put_result(keys[3], contents[3])
    await store.put_result(keys[2], contents[2])
    assert await store.sweep_results(older_s=3600, limit=10) == 1
    found = [await store.get_result(key) for key in keys]
    assert found == [b"1", None, b"3", b"4"], "named, old, stored again, young"


def test_a_request_names_the_pool_of_a_step() -> None:
    made: NewExecution = execution(pools={"heavy": "big"})
    assert (made.pool_of("heavy"), made.pool_of("other"), made.pool_of(None)) == (
        "big",
        "default",
        "default",
    )
