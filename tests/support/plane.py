"""The local engine for many executions at once: one control plane, two real workers, one session.

`Plane` runs the building blocks of `noetl run` (embedded Postgres, router, ingest, worker
processes) in a thread of its own, with an HTTP server on loopback beside it, and gives back what
each execution said: its document, its log, what its tools printed.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from noetl_cli.commands.result import _full
from noetl_cli.local import scratch, starting, wishes, workload
from noetl_cli.local.catalogue import Catalogue
from noetl_cli.local.data import DataFolder, Memory
from noetl_cli.local.documents import run_document
from noetl_cli.local.engine import Engine, Scratch, Setup, engine
from noetl_cli.local.verifying import verify
from noetl_core.check import check_data
from noetl_core.model import Playbook
from noetl_operator.router import Committed
from tests.support.http_server import serving
from tests.support.web_answers import answer

T = TypeVar("T")
Json = dict[str, Any]
ENTRY = "pg"
"""The keychain entry that the scratch database is supplied as."""
LIMIT_S = 60.0
WORKERS = 2
AT_ONCE = 24
"""Executions under way: more would starve a slow machine of its heartbeats."""
_OWNER = {
    "keychain": [{"name": ENTRY, "kind": "postgres_credential"}],
    "workflow": [{"step": "only", "tool": {"kind": "noop"}}],
}


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of an execution."""

    document: Json
    events: list[Json]
    logs: list[str]
    value: Any
    """The result itself, also where it was stored."""


def loaded(document: Json) -> Playbook:
    """A playbook of a test; one that is not valid is a mistake of the test."""
    checked = check_data(document)
    assert checked.playbook is not None, [p.as_json() for p in checked.problems]
    return checked.playbook


def _cancel_others() -> None:
    slow = [task for task in asyncio.all_tasks() if "RequestHandler" in repr(task)]
    for task in slow:
        task.cancel()


class Plane:
    """One engine in a thread of its own."""

    def __init__(self, folder: Path, playbooks: list[Playbook], secrets: dict[str, Any]) -> None:
        self._folder, self._playbooks, self._secrets = folder, playbooks, secrets
        self._loop = asyncio.new_event_loop()
        self._ready: Future[None] = Future()
        self._stop = asyncio.Event()
        self._room = asyncio.Semaphore(AT_ONCE)
        self._news: dict[str, asyncio.Event] = {}
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._live(),))

    @contextlib.contextmanager
    def running(self) -> Iterator[Plane]:
        self._thread.start()
        try:
            self._ready.result(LIMIT_S)
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
            self._loop.close()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Do something in the engine's thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _live(self) -> None:
        try:
            async with self._engine() as self.engine, serving(answer) as self.api:
                self.engine.plane.router.observers.append(self._committed)
                self.engine.workers.start()
                self._ready.set_result(None)
                await self._stop.wait()
                # Answers that nobody waits for any more.
                _cancel_others()
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    @contextlib.asynccontextmanager
    async def _engine(self) -> AsyncIterator[Engine]:
        own = loaded({"metadata": {"name": "owner"}, **_OWNER})
        data = DataFolder(str(self._folder))
        entry = scratch.entry_of(Catalogue((own,)), ENTRY)
        setup = Setup(
            data=data,
            catalogue=Catalogue(tuple(self._playbooks)),
            secrets=self._secrets,
            scratch=Scratch(entry, scratch.new_name()),
            workers=WORKERS,
        )
        self._prepared = starting.Prepared(setup, Memory())
        with data.process() as holder:
            async with engine(setup, holder) as running:
                yield running

    def _committed(self, committed: Committed) -> None:
        execution_id = committed.transition.execution_id
        phase = committed.transition.state.phase
        if phase.is_final or phase.value == "Waiting":
            self._news.setdefault(execution_id, asyncio.Event()).set()

    # One execution

    async def run(self, playbook: Playbook, given: Json, ask: list[Json]) -> Ran:
        """Run a playbook to its end; each thing to ask is asked when the execution waits."""
        async with self._room:
            return await self._run(playbook, given, ask)

    async def _run(self, playbook: Playbook, given: Json, ask: list[Json]) -> Ran:
        if given.get("api_url") == "{api}":
            given = {**given, "api_url": self.api}
        layers = [{"api": self.api}, given]
        merged = workload.composed(playbook.workload, layers, [])
        execution_id = await starting.new(self._prepared, playbook, merged)(self.engine)
        for wish in ask:
            await self._settled(execution_id)
            trigger = wishes.trigger_of(str(uuid4()), {"by": "tester", **wish})
            self._news[execution_id].clear()
            await self.engine.plane.router.apply(execution_id, trigger)
        return await self._told(execution_id)

    async def _settled(self, execution_id: str) -> None:
        news = self._news.setdefault(execution_id, asyncio.Event())
        await asyncio.wait_for(news.wait(), LIMIT_S)

    async def _told(self, execution_id: str) -> Ran:
        store, reading = self.engine.plane.store, self.engine.reading
        news = self._news.setdefault(execution_id, asyncio.Event())
        while True:
            await asyncio.wait_for(news.wait(), LIMIT_S)
            snapshot = await store.load(execution_id)
            assert snapshot is not None
            if snapshot.state.phase.is_final:
                break
            news.clear()
        verified = await verify(reading, execution_id)
        assert verified.difference is None, verified.difference
        events = [event.as_json() async for event in reading.matching(execution_id)]
        document = run_document(snapshot.request, snapshot.state)
        logs = [line.text for line in await reading.logs(execution_id)]
        return Ran(document, events, logs, await _full(reading, snapshot.state.result))
