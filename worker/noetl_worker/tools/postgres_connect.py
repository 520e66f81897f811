"""Connections to Postgres, shared by all tasks that use the same credential (rule G2).

A task borrows a session, and whatever it leaves behind (a transaction, settings, temporary tables,
locks) is undone before the next one gets it. A task that is cancelled has its statement cancelled
on the server first; a session that does not come to rest in time is thrown away.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from noetl_core.model import KeychainKind
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_worker.keychain import Credential
from noetl_worker.tools import postgres_errors, postgres_values
from noetl_worker.tools.base import ToolContext
from noetl_worker.tools.postgres_types import Catalog
from noetl_worker.tools.sql_common import SqlFailed, connect_timeout

MAX_CONNECTIONS = 10
"""Connections that one worker process opens with one credential."""
CLEAN_UP_S = 5.0
"""How long a session may take to undo what a task left."""
MAX_PLANS = 200
"""Prepared statements that one session keeps."""
APPLICATION = "noetl"

_CLEAN = """
SELECT pg_catalog.pg_advisory_unlock_all();
RESET SESSION AUTHORIZATION;
RESET ALL;
CLOSE ALL;
UNLISTEN *;
DISCARD SEQUENCES;
DISCARD TEMP;
"""


class Plans:
    """Prepared statements of a session, the least used ones forgotten."""

    def __init__(self) -> None:
        self._held: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        found = self._held.get(key)
        if found is not None:
            self._held.move_to_end(key)
        return found

    def put(self, key: Hashable, plan: object) -> None:
        self._held[key] = plan
        if len(self._held) > MAX_PLANS:
            self._held.popitem(last=False)

    def clear(self) -> None:
        self._held.clear()


@dataclass(slots=True)
class Session:
    """One connection, lent to one task at a time."""

    connection: Any
    catalog: Catalog
    plans: Plans = field(default_factory=Plans)
    transaction: Any = None
    """The one that is open."""

    @contextlib.asynccontextmanager
    async def in_transaction(self) -> AsyncIterator[None]:
        """Everything inside is done or nothing; what is cancelled is undone by `clean`."""
        self.transaction = self.connection.transaction()
        await self.transaction.start()
        try:
            yield
        except Exception:
            await self._end("rollback")
            raise
        await self._end("commit")

    async def _end(self, how: str) -> None:
        transaction, self.transaction = self.transaction, None
        if not self.connection.is_closed():
            await getattr(transaction, how)()

    async def clean(self) -> None:
        """Undo what a task left behind; the connection waits for its cancellation first."""
        if self.transaction is not None:
            await self._end("rollback")
        if self.connection.is_in_transaction():
            await self.connection.execute("ROLLBACK")
        await self.connection.execute(_CLEAN)


class Connections:
    """The sessions of one credential."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments = arguments
        self._idle: list[Session] = []
        self._free = asyncio.Semaphore(MAX_CONNECTIONS)
        self._cleaning: set[asyncio.Task[None]] = set()
        self._catalog = Catalog()

    @contextlib.asynccontextmanager
    async def session(self, connect_s: float) -> AsyncIterator[Session]:
        """Lend a session; raises `SqlFailed` where there is no connection."""
        await self._free.acquire()
        try:
            session = await self._taken(connect_s)
        except BaseException:
            self._free.release()
            raise
        try:
            yield session
        finally:
            # Goes on by itself where a second cancellation comes while it is awaited.
            cleaning = asyncio.ensure_future(self._give_back(session))
            self._cleaning.add(cleaning)
            cleaning.add_done_callback(self._cleaning.discard)
            await asyncio.shield(cleaning)

    async def _taken(self, connect_s: float) -> Session:
        while self._idle:
            session = self._idle.pop()
            if not session.connection.is_closed():
                return session
        return Session(await connect(self._arguments, connect_s), self._catalog)

    async def _give_back(self, session: Session) -> None:
        try:
            async with asyncio.timeout(CLEAN_UP_S):
                if not session.connection.is_closed():
                    await session.clean()
                    self._idle.append(session)
        except Exception:
            session.connection.terminate()
        finally:
            self._free.release()

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for session in idle:
            with contextlib.suppress(Exception):
                await session.connection.close(timeout=CLEAN_UP_S)


async def connect(arguments: Mapping[str, Any], connect_s: float) -> Any:
    """A connection with our codecs; raises `SqlFailed`."""
    import asyncpg

    try:
        connection = await asyncpg.connect(
            **arguments,
            timeout=connect_s,
            statement_cache_size=100,
            server_settings={"application_name": APPLICATION, "TimeZone": "UTC"},
        )
    except (OSError, TimeoutError, ValueError, asyncpg.PostgresError) as error:
        raise SqlFailed(postgres_errors.of_connecting(error)) from None
    except asyncpg.InterfaceError as error:
        raise SqlFailed(postgres_errors.of_connecting(error)) from None
    await postgres_values.set_codecs(connection)
    return connection


def credential_of(ctx: ToolContext, name: str, source: str) -> Credential:
    """The keychain entry of a database; raises `SqlFailed`."""
    found = ctx.keychain.entry(name)
    if found is None:
        message, kind = f"the keychain has no entry `{name}`", ErrorKind.NOT_FOUND
    elif found.kind not in (KeychainKind.POSTGRES, KeychainKind.SECRET):
        message = f"`{name}` is of kind `{found.kind.value}`; a database takes postgres_credential"
        kind = ErrorKind.AUTH
    elif "uri" not in found.fields and not {"host", "user", "dbname"} <= found.fields.keys():
        message = f"`{name}` has neither `uri` nor `host`, `user` and `dbname`"
        kind = ErrorKind.AUTH
    else:
        return found
    raise SqlFailed(TaskError(kind=kind, message=message, code="KEYCHAIN", source=source))


def arguments_of(credential: Credential) -> dict[str, Any]:
    """What the driver connects with."""
    fields = credential.fields
    if "uri" in fields:
        found: dict[str, Any] = {"dsn": fields["uri"]}
        if "password" in fields:
            found["password"] = fields["password"]
        return found
    found = {"host": fields["host"], "user": fields["user"], "database": fields["dbname"]}
    if "password" in fields:
        found["password"] = fields["password"]
    if "port" in fields:
        found["port"] = int(fields["port"]) if fields["port"].isdigit() else fields["port"]
    if "sslmode" in fields:
        found["ssl"] = fields["sslmode"]
    return found


@contextlib.asynccontextmanager
async def session_of(credential: Credential, ctx: ToolContext) -> AsyncIterator[Session]:
    """A session with this credential, of the connections that the worker keeps."""
    arguments = arguments_of(credential)
    key = ("postgres", *sorted((name, str(value)) for name, value in arguments.items()))

    async def make() -> Connections:
        return Connections(arguments)

    connect_s = connect_timeout(ctx.spec.get("timeout"))
    async with (
        ctx.pools.use(key, make, Connections.close) as connections,
        connections.session(connect_s) as session,
    ):
        yield session
