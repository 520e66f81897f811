"""The engine of a foreground run: control plane, ingest and workers of this one process.

Each process leads a shard of its own and has a pool of its own, so that several runs on one data
folder never touch each other. What takes time is started first and awaited last: a worker and the
server come up while this process still imports.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import secrets as random
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noetl_cli.errors import CliError
from noetl_cli.local import opening, scratch
from noetl_cli.local import secrets as secret_files
from noetl_cli.local.catalogue import Catalogue, LocalChildren
from noetl_cli.local.data import DataFolder
from noetl_cli.local.postgres import LocalPostgres
from noetl_cli.local.workers import Place, Workers
from noetl_core.model import KeychainEntry

if TYPE_CHECKING:
    from noetl_operator.control import ControlPlane
    from noetl_operator.store.postgres import PostgresStore
    from noetl_operator.store.reading import Reading

LEASE_TTL_S = 5.0
"""Short: a worker that hangs is noticed soon, and a cancel is heard at the next heartbeat."""
SHARD_TTL_S = 10.0
SWEEP_S = 0.5
CONNECTIONS = 6


@dataclass(frozen=True, slots=True)
class Scratch:
    """A scratch database and the keychain entry it is supplied as."""

    entry: KeychainEntry
    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a foreground run is given."""

    data: DataFolder
    catalogue: Catalogue
    secrets: secret_files.Secrets
    scratch: Scratch | None = None
    workers: int = 2


@dataclass(frozen=True, slots=True)
class Engine:
    """A running one."""

    plane: ControlPlane
    reading: Reading
    server: LocalPostgres
    workers: Workers
    shard: int
    pool: str


@contextlib.asynccontextmanager
async def engine(setup: Setup, holder: str) -> AsyncIterator[Engine]:
    """Everything that a run needs, up and leading."""
    private = setup.data.private(holder)
    listening = _listen()
    token = random.token_urlsafe(24)
    place = Place(
        url=f"http://127.0.0.1:{listening.getsockname()[1]}",
        token=token,
        pool=f"local/{holder}",
        keychain=private / "keychain",
        scratch=private / "scratch",
        log=private / "workers.log",
    )
    workers = Workers(place, setup.workers)
    server = LocalPostgres(setup.data.path)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(listening.close)
        stack.callback(workers.stop)
        stack.enter_context(opening.released(server))
        starting = asyncio.create_task(asyncio.to_thread(server.start))
        # The others follow once the run is under way: a small one never needs them.
        workers.start(1)
        await asyncio.sleep(0)
        with _without_collector():
            _import_engine()
        await starting
        store = await stack.enter_async_context(opening.connected(server, CONNECTIONS))
        await _lay_out_secrets(setup, server, place)
        shard = await take_shard(store, holder)
        plane = await stack.enter_async_context(_plane(store, setup, shard, holder))
        await stack.enter_async_context(_serving(plane, workers, listening, token))
        from noetl_operator.store.reading import Reading

        yield Engine(plane, Reading(store), server, workers, shard, place.pool)


def _import_engine() -> None:
    """What is needed in a moment, while the server starts."""
    import noetl_operator.control
    import noetl_operator.ingest.web
    import noetl_operator.store.postgres
    import noetl_operator.store.reading  # noqa: F401


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Imports make many objects and no garbage: looking for some would only take time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _listen() -> socket.socket:
    """A port on loopback; calls wait there until somebody takes them."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)
    return listening


async def _lay_out_secrets(setup: Setup, server: LocalPostgres, place: Place) -> None:
    given = setup.secrets
    if setup.scratch is not None:
        credential = await scratch.create(server, setup.scratch.database)
        given = secret_files.with_credential(given, setup.scratch.entry, credential)
    secret_files.write(place.keychain, given)
    place.scratch.mkdir(mode=0o700, exist_ok=True)


async def take_shard(store: PostgresStore, holder: str) -> int:
    for _ in range(100):
        number = await store.free_shard(1)
        # Another process may have been quicker.
        if await store.take_shard(number, holder, SHARD_TTL_S) is not None:
            return number
    raise CliError("no shard is free: too many runs start at this moment")


@contextlib.asynccontextmanager
async def _plane(
    store: PostgresStore, setup: Setup, shard: int, holder: str
) -> AsyncIterator[ControlPlane]:
    from noetl_operator.control import control_plane
    from noetl_operator.settings import OperatorSettings

    settings = OperatorSettings(
        lease_ttl_s=LEASE_TTL_S,
        heartbeat_s=LEASE_TTL_S / 3,
        shard_ttl_s=SHARD_TTL_S,
        sweep_interval_s=SWEEP_S,
        connections=CONNECTIONS,
    )
    children = LocalChildren(setup.catalogue)
    async with control_plane(store, children, settings, shard=shard, holder=holder) as plane:
        await plane.sweeper.led.wait()
        yield plane


@contextlib.asynccontextmanager
async def _serving(
    plane: ControlPlane, workers: Workers, listening: socket.socket, token: str
) -> AsyncIterator[None]:
    from aiohttp import web

    from noetl_operator.ingest.peers import SharedToken
    from noetl_operator.ingest.web import Handler, IngestWeb
    from noetl_operator.settings import OperatorSettings

    face = IngestWeb(plane.ingest, SharedToken(token), OperatorSettings()).application()
    called = asyncio.Event()

    @web.middleware
    async def hear(request: web.Request, handler: Handler) -> web.StreamResponse:
        called.set()
        return await handler(request)

    face.middlewares.append(hear)
    # A worker that died must not be given what its last question asked for.
    runner = web.AppRunner(face, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    try:
        # A time limit counts from the start of the execution: it starts when it can begin.
        await _first_call(called, workers)
        yield
    finally:
        plane.ingest.stop()
        await runner.cleanup()


async def _first_call(called: asyncio.Event, workers: Workers) -> None:
    """Wait for a worker; those that do not start are seen to."""
    while not called.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(called.wait(), 0.2)
        workers.lost()
