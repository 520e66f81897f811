"""The store on Postgres: the only importer of asyncpg in the operator.

Callers are the router (commit, load), ingest (lease, heartbeat, results), the sweeper and the read
side. What the statements promise is written beside them, in `queries.sql` and the migrations.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import asyncpg
import orjson

from noetl_core.engine.clock import iso
from noetl_core.engine.codec import decode_state
from noetl_core.engine.events import Event, fact_of
from noetl_core.engine.state import State
from noetl_core.engine.transition import Fence, Transition
from noetl_core.engine.triggers import CancelChild, CreateChild, IterationEnd, TellParent
from noetl_core.values import Value
from noetl_core.wire import Held, LogLine
from noetl_operator.store import port
from noetl_operator.store.batch import STATEMENT, Batch, moment
from noetl_operator.store.durable import Hand
from noetl_operator.store.migrate import AS_ENGINE, migrate
from noetl_operator.store.queries import query

Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"

_REFUSALS: dict[str, type[port.StoreError]] = {
    "NO001": port.Fenced,
    "NO002": port.Conflict,
    "NO003": port.NotLeader,
    "23505": port.Duplicate,
}
_AWAY = ("08", "25", "40", "53", "55", "57", "58")
"""Classes of errors after which trying again may help: no connection, a standby, a deadlock, no
resources, a lock, a shutdown, the disk."""
_TOO_MANY_HEADS = 50_000
"""How many chain heads are remembered before all are forgotten and read again when needed."""


class PostgresStore:
    """The log, the queue and the results of one database, written under one shard."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._heads: dict[str, tuple[int, bytes]] = {}
        """The hash of an execution's event number so-and-so: a fact that stays true."""

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, dsn: str, *, connections: int = 8) -> AsyncIterator[PostgresStore]:
        """Bring the schema up to date, open a pool of connections, close it all in the end."""
        with _translated():
            first = await asyncpg.connect(dsn, command_timeout=60)
            try:
                as_engine = await migrate(first)
            finally:
                await first.close()
            pool = await asyncpg.create_pool(
                dsn,
                min_size=0,
                max_size=connections,
                command_timeout=60,
                init=_become_engine if as_engine else None,
                reset=_keep,
            )
        try:
            yield cls(pool)
        finally:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(pool.close(), timeout=5)
            pool.terminate()

    # Who writes

    async def take_shard(self, number: int, owner: str, ttl_s: float) -> port.Shard | None:
        epoch = await self._value("take_shard", number, owner, ttl_s)
        return None if epoch is None else port.Shard(number, epoch)

    async def release_shard(self, number: int, owner: str) -> None:
        """Let the next one in at once."""
        await self._execute("release_shard", number, owner)

    async def free_shard(self, least: int) -> int:
        """The lowest shard that nobody leads and that holds nothing unfinished."""
        return int(await self._value("free_shard", least))

    async def capability_key(self) -> bytes:
        return bytes(await self._value("capability_key"))

    # Executions

    async def now(self) -> str:
        return iso(await self._value("now"))

    async def create(self, request: port.NewExecution) -> str:
        document = orjson.dumps(request.document).decode()
        await self._execute("keep_playbook", request.digest, document)
        # Somebody else's execution of the same key may be written and not yet visible: look again.
        while (found := await self._created(request)) is None:
            continue
        return found

    async def _created(self, request: port.NewExecution) -> str | None:
        parent = request.parent
        row = await self._row(
            "create",
            request.execution_id,
            request.namespace,
            request.name,
            request.playbook_name,
            request.digest,
            _json(request.workload),
            request.request_key,
            None if parent is None else _json(parent),
            None if parent is None else parent["execution_id"],
            request.depth,
            moment(request.deadline_at),
            None if request.origin is None else _json(request.origin),
            _json(request.problems),
            request.shard,
            request.pool,
            orjson.dumps(request.pools).decode(),
            orjson.dumps(State(execution_id=request.execution_id)).decode(),
        )
        return None if row is None else str(row["execution_id"])

    async def load(self, execution_id: str) -> port.Snapshot | None:
        found = await self.load_many([execution_id])
        return found[0] if found else None

    async def load_many(self, executions: Sequence[str]) -> list[port.Snapshot]:
        found = []
        for row in await self._rows("load", list(executions)):
            self._remember(str(row["execution_id"]), row["seq"], bytes(row["head"]))
            state = decode_state(orjson.loads(row["state"]))
            found.append(port.Snapshot(request=_request(row), state=state))
        return found

    async def playbook(self, digest: str) -> dict[str, Value] | None:
        found = await self._value("get_playbook", digest)
        return None if found is None else orjson.loads(found)

    async def commit(
        self,
        shard: port.Shard,
        transitions: Sequence[Transition],
        hands: Mapping[str, Hand] | None = None,
    ) -> None:
        """All of the transitions or none; see `noetl.commit`."""
        batch = Batch(shard, await self._heads_before(transitions), hands or {})
        for one in transitions:
            batch.add(one)
        with _translated():
            await self._pool.execute(STATEMENT, *batch.arguments())
        for one in transitions:
            self._remember(one.execution_id, one.state.seq, batch.heads[one.execution_id])

    async def _heads_before(self, transitions: Sequence[Transition]) -> dict[str, bytes]:
        """The hashes that the new events follow."""
        found: dict[str, bytes] = {}
        missing: list[str] = []
        for one in transitions:
            seq, head = self._heads.get(one.execution_id, (0, b""))
            found[one.execution_id] = head
            if seq != one.expected:
                missing.append(one.execution_id)
        for row in await self._rows("heads", missing) if missing else ():
            found[str(row["execution_id"])] = bytes(row["head"])
        return found

    def _remember(self, execution_id: str, seq: int, head: bytes) -> None:
        if len(self._heads) > _TOO_MANY_HEADS:
            self._heads.clear()
        # What was read before a commit may arrive after it.
        if seq > self._heads.get(execution_id, (0, b""))[0]:
            self._heads[execution_id] = seq, head

    # The queue

    async def lease(
        self, pool: str, owner: str, limit: int, ttl_s: float, lease_id: str | None = None
    ) -> list[port.Leased]:
        if lease_id is None:
            rows = await self._rows("lease", pool, owner, limit, ttl_s)
        else:
            rows = await self._rows("lease_one", lease_id, pool, owner, ttl_s)
        return [
            port.Leased(
                execution_id=str(row["execution_id"]),
                lease_id=str(row["lease_id"]),
                epoch=row["epoch"],
                command=orjson.loads(row["command"]),
                until=iso(row["lease_until"]),
                stop=row["stop"],
            )
            for row in rows
        ]

    async def heartbeat(self, leases: Sequence[Fence], ttl_s: float) -> dict[str, bool]:
        ids, epochs = [one.lease_id for one in leases], [one.epoch for one in leases]
        rows = await self._rows("heartbeat", ids, epochs, ttl_s)
        return {str(row["lease_id"]): row["stop"] for row in rows}

    async def prolong(self, shard: int, seconds: float) -> None:
        await self._execute("prolong", shard, seconds)

    async def expired(self, shard: int, limit: int) -> list[port.Expired]:
        rows = await self._rows("expired", shard, limit)
        return [
            port.Expired(str(row["execution_id"]), str(row["lease_id"]), row["epoch"])
            for row in rows
        ]

    async def due(self, shard: int, limit: int) -> list[str]:
        return [str(row["execution_id"]) for row in await self._rows("due", shard, limit)]

    async def live(self, shard: int) -> list[str]:
        """Executions that are not finished."""
        return [str(row["execution_id"]) for row in await self._rows("live", shard)]

    async def actions(self, shard: int, limit: int) -> list[port.Action]:
        rows = await self._rows("actions", shard, limit)
        return [
            port.Action(row["action_id"], str(row["execution_id"]), _effect(row["body"]))
            for row in rows
        ]

    async def acted(self, ids: Sequence[int]) -> None:
        await self._execute("acted", list(ids))

    async def action_later(self, action_id: int) -> None:
        """It could not be done now: tried again after a while that grows."""
        await self._execute("action_later", action_id)

    # The log and the results

    async def events(self, execution_id: str, after: int = 0, limit: int = 1000) -> list[Event]:
        return [event_of(row) for row in await self._rows("events", execution_id, after, limit)]

    async def iterations(self, execution_id: str, run_id: str) -> list[IterationEnd]:
        # Of one that ended twice (a redelivered run), the later.
        ends: dict[str, IterationEnd] = {}
        for row in await self._rows("iterations", execution_id, run_id):
            payload = orjson.loads(row["payload"])
            failed = row["name"] == "loop.iteration.failed"
            ends[row["iteration"]] = IterationEnd(
                row["iteration"], payload.get("result"), failed, payload.get("writes")
            )
        return list(ends.values())

    async def frames(self, execution_id: str, run_id: str) -> dict[str, int]:
        rows = await self._rows("frames", execution_id, run_id)
        return {row["iteration"]: orjson.loads(row["payload"])["total"] for row in rows}

    async def put_result(self, key: str, content: bytes, execution_id: str | None = None) -> None:
        _verified(key, content)
        await self._execute("put_result", key, content)
        if execution_id is not None:
            await self._execute("use_result", execution_id, key)

    async def get_result(self, key: str) -> bytes | None:
        found = await self._value("get_result", key)
        if found is None:
            return None
        return _verified(key, bytes(found))

    # What tasks printed

    async def append_logs(
        self, execution_id: str, held: Held, step: str | None, lines: Sequence[LogLine]
    ) -> None:
        columns = [
            (
                execution_id,
                held.lease_id,
                held.epoch,
                line.line,
                moment(line.at),
                step,
                line.task,
                line.attempt,
                line.iteration,
                line.stream,
                line.text.replace("\0", "\ufffd"),
            )
            for line in lines
        ]
        await self._execute("append_logs", *(list(column) for column in zip(*columns, strict=True)))

    # Housekeeping

    async def ensure_partitions(self, weeks_ahead: int) -> None:
        await self._value("ensure_partitions", weeks_ahead)

    async def partitions(self) -> list[str]:
        return [row["relname"] for row in await self._rows("partitions")]

    async def drop_partition(self, name: str) -> bool:
        return bool(await self._value("drop_partition", name))

    async def sweep_results(self, older_s: float, limit: int) -> int:
        return int(await self._value("sweep_results", older_s, limit))

    # Plumbing

    async def _value(self, name: str, *args: object) -> Any:
        return await self._pool_value(query(name), *args)

    async def _pool_value(self, statement: str, *args: object) -> Any:
        with _translated():
            return await self._pool.fetchval(statement, *args)

    async def _row(self, name: str, *args: object) -> asyncpg.Record | None:
        with _translated():
            return await self._pool.fetchrow(query(name), *args)

    async def read(self, name: str, *args: object) -> list[asyncpg.Record]:
        """The rows of a named statement, for the read side."""
        return await self._rows(name, *args)

    async def _rows(self, name: str, *args: object) -> list[asyncpg.Record]:
        with _translated():
            found: list[asyncpg.Record] = await self._pool.fetch(query(name), *args)
            return found

    async def _execute(self, name: str, *args: object) -> None:
        with _translated():
            await self._pool.execute(query(name), *args)


async def _become_engine(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """From here on this connection can add to the log and never change it."""
    await connection.execute(AS_ENGINE)


async def _keep(connection: object) -> None:
    """Connections go back to the pool as they are: no statement here leaves anything behind, and
    asyncpg's own reset would cost a round trip each time."""


def event_of(row: asyncpg.Record) -> Event:
    context: dict[str, Value] = {
        "step": row["step"],
        "run_id": None if row["run_id"] is None else str(row["run_id"]),
        "task": row["task"],
        "attempt": row["attempt"],
        "iteration": row["iteration"],
    }
    return Event(
        str(row["event_id"]),
        str(row["execution_id"]),
        row["seq"],
        iso(row["recorded_at"]),
        row["source"],
        fact_of(row["name"], context, orjson.loads(row["payload"])),
    )


def _request(row: asyncpg.Record) -> port.NewExecution:
    deadline = row["deadline_at"]
    return port.NewExecution(
        execution_id=str(row["execution_id"]),
        namespace=row["namespace"],
        name=row["name"],
        playbook_name=row["playbook"],
        digest=row["digest"],
        document=orjson.loads(row["document"]),
        workload=orjson.loads(row["workload"]),
        request_key=row["request_key"],
        parent=None if row["parent"] is None else orjson.loads(row["parent"]),
        depth=row["depth"],
        deadline_at=None if deadline is None else iso(deadline),
        origin=None if row["origin"] is None else orjson.loads(row["origin"]),
        problems=orjson.loads(row["problems"]),
        shard=row["shard"],
        pool=row["pool"],
        pools=orjson.loads(row["pools"]),
    )


_OUTGOING = {kind.__name__: kind for kind in (CreateChild, CancelChild, TellParent)}


def _effect(body: str) -> port.Outgoing:
    given = orjson.loads(body)
    return _OUTGOING[given.pop("kind")](**given)


def _verified(key: str, content: bytes) -> bytes:
    if hashlib.sha256(content).hexdigest() != key:
        raise port.Corrupt(f"the result {key} does not match its checksum")
    return content


def _json(value: Value) -> str:
    return orjson.dumps(value).decode()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """asyncpg's errors as ours. Their texts may quote values, so they are not passed on."""
    try:
        yield
    except asyncpg.PostgresError as error:
        refusal = _REFUSALS.get(error.sqlstate or "")
        if refusal is not None:
            raise refusal(type(error).__name__) from None
        if (error.sqlstate or "")[:2] in _AWAY:
            raise port.Unavailable(f"{type(error).__name__} ({error.sqlstate})") from None
        raise
    except (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError, TimeoutError) as error:
        raise port.Unavailable(type(error).__name__) from None
