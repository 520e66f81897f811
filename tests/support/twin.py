"""A store in memory with a twin on Postgres: every call goes to both, and both must agree.

It stands in for `Memory` in the simulation, so each schedule is also one on Postgres. The database
goes by the simulation's clock: a function of the same name stands before the real one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg

from noetl_core.engine.events import Event
from noetl_core.engine.transition import Fence, Transition
from noetl_core.engine.triggers import IterationEnd
from noetl_operator.store.memory import Memory
from noetl_operator.store.port import (
    Action,
    Expired,
    Leased,
    NewExecution,
    Shard,
    Snapshot,
    StoreError,
)
from noetl_operator.store.postgres import PostgresStore
from noetl_operator.store.reading import Reading

T = TypeVar("T")

_CLOCK = """
CREATE SCHEMA twin;
CREATE TABLE twin.time (at timestamptz NOT NULL);
INSERT INTO twin.time VALUES (now());
GRANT USAGE ON SCHEMA twin TO PUBLIC;
GRANT SELECT ON twin.time TO PUBLIC;
CREATE FUNCTION twin.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM twin.time';
"""  # noqa: E501
_RESET = "TRUNCATE noetl.execution, noetl.step_run, noetl.action, noetl.result, noetl.result_use"


class Database:
    """One database for many twins, one after the other."""

    def __init__(self, uri: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        self.store, self.connection = self.run(self._open(uri))

    async def _open(self, uri: str) -> tuple[PostgresStore, Any]:
        connection = await asyncpg.connect(uri)
        await connection.execute(_CLOCK)
        name = urlsplit(uri).path.strip("/")
        path = "twin, pg_catalog, public"
        await connection.execute(f"ALTER DATABASE {name} SET search_path = {path}")
        store = await self._stack.enter_async_context(PostgresStore.connect(uri, connections=1))
        return store, connection

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    def empty(self) -> None:
        """As new; the log itself can only be emptied by its owner, all at once."""
        self.run(self.connection.execute(_RESET))
        self.run(self.connection.execute("TRUNCATE noetl.event, noetl.engine_shard"))
        self.store._heads.clear()

    def close(self) -> None:
        self.run(self.connection.close())
        self.run(self._stack.aclose())
        self._loop.close()


class Twin(Memory):
    """`Memory`, checked against Postgres call by call."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        super().__init__(clock)
        self._database = database
        self._actions: dict[int, int] = {}
        database.empty()

    def _there(self, work: Coroutine[Any, Any, T]) -> T:
        moved = self._database.connection.execute("UPDATE twin.time SET at = $1", self.clock())
        self._database.run(moved)
        return self._database.run(work)

    @property
    def _store(self) -> PostgresStore:
        return self._database.store

    def now(self) -> str:
        here = super().now()
        assert self._there(self._store.now()) == here
        return here

    def take_shard(self, number: int, owner: str, ttl_s: float) -> Shard | None:
        here = super().take_shard(number, owner, ttl_s)
        assert self._there(self._store.take_shard(number, owner, ttl_s)) == here
        return here

    def create(self, request: NewExecution) -> str:
        here = super().create(request)
        assert self._there(self._store.create(request)) == here
        # The column's default was bound to the real clock when the table was made.
        due = self._database.connection.execute(
            "UPDATE noetl.execution SET due_at = $1", self.clock()
        )
        self._database.run(due)
        return here

    def load(self, execution_id: str) -> Snapshot | None:
        here, there = super().load(execution_id), self._there(self._store.load(execution_id))
        assert there == here, "the stores hold different states"
        return here

    def commit(self, shard: Shard, transitions: Sequence[Transition]) -> None:
        refused: type[StoreError] | None = None
        try:
            self._there(self._store.commit(shard, transitions))
        except StoreError as error:
            refused = type(error)
        try:
            super().commit(shard, transitions)
        except StoreError as error:
            if refused is not type(error):
                raise AssertionError(f"{error!r} here, {refused} on Postgres") from error
            raise
        assert refused is None, f"committed here, {refused} on Postgres"

    def lease(
        self, pool: str, owner: str, limit: int, ttl_s: float, lease_id: str | None = None
    ) -> list[Leased]:
        here = super().lease(pool, owner, limit, ttl_s, lease_id)
        for one in here:
            (there,) = self._there(self._store.lease(pool, owner, 1, ttl_s, one.lease_id))
            assert there == one
        return here

    def heartbeat(self, leases: Sequence[Fence], ttl_s: float) -> dict[str, bool]:
        here = super().heartbeat(leases, ttl_s)
        assert self._there(self._store.heartbeat(leases, ttl_s)) == here
        return here

    def expired(self, shard: int, limit: int) -> list[Expired]:
        there = self._there(self._store.expired(shard, 1000))
        assert {one.lease_id for one in there} == {x.lease_id for x in super().expired(shard, 1000)}
        return super().expired(shard, limit)

    def due(self, shard: int, limit: int) -> list[str]:
        here = super().due(shard, limit)
        assert self._there(self._store.due(shard, limit)) == here
        return here

    def actions(self, shard: int, limit: int) -> list[Action]:
        here, there = super().actions(shard, limit), self._there(self._store.actions(shard, limit))
        assert [one.effect for one in there] == [one.effect for one in here]
        self._actions |= {one.id: other.id for one, other in zip(here, there, strict=True)}
        return here

    def acted(self, ids: Sequence[int]) -> None:
        super().acted(ids)
        self._there(self._store.acted([self._actions[one] for one in ids]))

    def events(self, execution_id: str, after: int = 0, limit: int = 1000) -> list[Event]:
        here = super().events(execution_id, after, limit)
        assert self._there(self._store.events(execution_id, after, limit)) == here
        return here

    def iterations(
        self, execution_id: str, run_id: str, upto: int | None = None
    ) -> list[IterationEnd]:
        here = super().iterations(execution_id, run_id, upto)
        if upto is None:
            there = self._there(self._store.iterations(execution_id, run_id))
            assert sorted(there, key=_place) == sorted(here, key=_place)
        return here

    def frames(self, execution_id: str, run_id: str, upto: int | None = None) -> dict[str, int]:
        here = super().frames(execution_id, run_id, upto)
        if upto is None:
            assert self._there(self._store.frames(execution_id, run_id)) == here
        return here

    def put_result(self, key: str, content: bytes) -> None:
        super().put_result(key, content)
        self._there(self._store.put_result(key, content))

    def get_result(self, key: str) -> bytes | None:
        here = super().get_result(key)
        assert self._there(self._store.get_result(key)) == here
        return here

    def check_log(self, execution_id: str) -> None:
        """The whole log is the same on both sides, and its chain of hashes holds."""
        self.events(execution_id, 0, 1_000_000)
        self._database.run(self._follow(execution_id))

    async def _follow(self, execution_id: str) -> None:
        reading, before = Reading(self._store), b""
        async for stored in reading.stored(execution_id):
            assert stored.linked(before) == stored.hash, f"broken at {stored.event.seq}"
            before = stored.hash
        assert (await reading.head(execution_id)).head == before


def _place(end: IterationEnd) -> str:
    return end.iteration
