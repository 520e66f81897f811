"""The local store, opened: the embedded server, its database, the connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from noetl_cli.errors import Unreachable, debugging
from noetl_cli.local.data import DataFolder
from noetl_cli.local.postgres import LocalPostgres

if TYPE_CHECKING:
    from noetl_operator.store.postgres import PostgresStore
    from noetl_operator.store.reading import Reading

DATABASE = "noetl"
T = TypeVar("T")


@contextlib.asynccontextmanager
async def opened(data: DataFolder) -> AsyncIterator[Reading]:
    """The store for questions; the server runs while it is open."""
    data.make()
    server = LocalPostgres(data.path)
    with released(server):
        starting = asyncio.create_task(asyncio.to_thread(server.start))
        from noetl_operator.store.reading import Reading

        await starting
        async with connected(server, connections=2) as store:
            yield Reading(store)


@contextlib.contextmanager
def held(data: DataFolder) -> Iterator[None]:
    """Keep the server up while a command opens the store several times."""
    if not data.is_used:
        yield
        return
    data.make()
    server = LocalPostgres(data.path)
    with released(server):
        server.start()
        yield


@contextlib.contextmanager
def released(server: LocalPostgres) -> Iterator[None]:
    try:
        yield
    finally:
        server.release()


@contextlib.asynccontextmanager
async def connected(server: LocalPostgres, connections: int) -> AsyncIterator[PostgresStore]:
    """The store on a running server; its database is made on first use."""
    import asyncpg

    from noetl_operator.store.port import Unavailable
    from noetl_operator.store.postgres import PostgresStore

    async with contextlib.AsyncExitStack() as stack:
        open_store = PostgresStore.connect(server.uri(DATABASE), connections=connections)
        try:
            try:
                store = await stack.enter_async_context(open_store)
            except asyncpg.InvalidCatalogNameError:
                await _create(server)
                open_store = PostgresStore.connect(server.uri(DATABASE), connections=connections)
                store = await stack.enter_async_context(open_store)
        except Unavailable as error:
            raise Unreachable(
                f"the local store does not answer: {error}", f"its log is {server.log}"
            ) from None
        yield store


async def _create(server: LocalPostgres) -> None:
    import asyncpg

    admin = await asyncpg.connect(server.uri())
    try:
        # Two first runs may come here at the same time.
        with contextlib.suppress(asyncpg.DuplicateDatabaseError, asyncpg.UniqueViolationError):
            await admin.execute(f"CREATE DATABASE {DATABASE}")
        await admin.execute(f"REVOKE CONNECT ON DATABASE {DATABASE} FROM PUBLIC")
    finally:
        await admin.close()


def run(work: Coroutine[Any, Any, T]) -> T:
    """A command's work, with what the store may say turned into our errors."""
    from noetl_operator.store.port import StoreError

    quiet()
    try:
        return asyncio.run(work)
    except StoreError as error:
        raise Unreachable(f"the local store: {error or type(error).__name__}") from None


def quiet() -> None:
    """What the engine logs is for operators of a cluster; here the display tells the story."""
    if debugging():
        logging.basicConfig(level=logging.INFO)
    else:
        logging.getLogger().addHandler(logging.NullHandler())
        logging.getLogger().setLevel(logging.CRITICAL)
