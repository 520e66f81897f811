"""One campaign: load, faults by chance, then calm, then the reckoning."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncpg

from e2e.chaos.check import Findings, check
from e2e.chaos.fleet import LEASE_TTL_S, Fleet, Member
from e2e.chaos.load import Shape, shapes
from noetl_cli.local.postgres import LocalPostgres
from noetl_core.load import digest, dump
from noetl_operator.starting import new_execution_id
from noetl_operator.store.port import NewExecution, StoreError
from noetl_operator.store.postgres import PostgresStore

KEEP = bool(os.environ.get("CHAOS_KEEP"))
"""Keep the folder with the logs in any case."""
LIVE = 24
"""Executions that are kept under way."""
STUCK_S = 30.0
"""Without faults, so long without any progress is for ever."""
PAUSE_S = (0.1, 0.6)
"""Between two faults."""
EFFECT = """
CREATE TABLE effect (call uuid PRIMARY KEY, execution_id text NOT NULL, key text NOT NULL, attempt integer NOT NULL)
"""  # noqa: E501


@dataclass(frozen=True, slots=True)
class Report:
    seed: int
    seconds: float
    faults: Counter[str]
    findings: Findings
    folder: Path | None = None


class Campaign:
    def __init__(self, seed: int, seconds: float, mutant: str | None, folder: Path) -> None:
        self.seed, self.seconds = seed, seconds
        self._random = random.Random(seed)
        self._server = LocalPostgres(folder)
        self.fleet = Fleet(folder, self._server, self._server.uri("chaos"), mutant)
        self._shapes = shapes()
        self._made: dict[str, str] = {}

    async def run(self) -> Report:
        await asyncio.to_thread(self._server.start)
        try:
            return await self._run()
        finally:
            await self.fleet.end()
            await asyncio.to_thread(self._server.release)

    async def _run(self) -> Report:
        await self._prepare()
        async with PostgresStore.connect(self.fleet.dsn, connections=2) as store:
            await self.fleet.start()
            load = asyncio.create_task(self._load(store))
            await self._faults()
            load.cancel()
            await asyncio.wait([load])
            await self.fleet.calm_down()
            await self._settle()
            connection = await asyncpg.connect(self.fleet.dsn)
            try:
                findings = await check(store, connection, self._shapes, self._made)
            finally:
                await connection.close()
        return Report(self.seed, self.seconds, self.fleet.counts, findings)

    async def _prepare(self) -> None:
        admin = await asyncpg.connect(self._server.uri())
        await admin.execute("CREATE DATABASE chaos")
        await admin.close()
        connection = await asyncpg.connect(self.fleet.dsn)
        await connection.execute(EFFECT)
        await connection.close()

    # Load

    async def _load(self, store: PostgresStore) -> None:
        """Keep some executions under way. They are only registered: the leader starts them."""
        while True:
            with contextlib.suppress(StoreError, asyncpg.PostgresError):
                live = len(await store.live(0))
                for _ in range(LIVE - live):
                    await self._register(store)
            await asyncio.sleep(0.05)

    async def _register(self, store: PostgresStore) -> None:
        shape: Shape = self._random.choice([s for s in self._shapes.values() if s.name != "child"])
        execution_id = new_execution_id(await store.now())
        request = NewExecution(
            execution_id=execution_id,
            namespace="chaos",
            name=f"{shape.name}-{execution_id[-6:]}",
            playbook_name=shape.name,
            digest=digest(shape.playbook),
            document=dump(shape.playbook),
            workload={},
        )
        while True:
            with contextlib.suppress(StoreError):
                await store.create(request)
                break
            await asyncio.sleep(0.1)
        self._made[execution_id] = shape.name

    # Faults

    async def _faults(self) -> None:
        until = time.monotonic() + self.seconds
        next_crash = time.monotonic() + self._random.uniform(4, 10)
        while time.monotonic() < until:
            await asyncio.sleep(self._random.uniform(*PAUSE_S))
            if time.monotonic() > next_crash:
                await self.fleet.crash_postgres()
                next_crash = time.monotonic() + self._random.uniform(6, 14)
            else:
                self._fault(self._random.choice(self.fleet.members))

    def _fault(self, member: Member) -> None:
        if self._random.random() < 0.7:
            self.fleet.kill(member)
        else:
            self.fleet.stop_for(member, self._random.uniform(0.2, LEASE_TTL_S * 1.8))

    async def _settle(self) -> None:
        """Until everything has ended, or nothing goes on any more."""
        last: Any = None
        since = time.monotonic()
        while time.monotonic() - since < STUCK_S:
            await asyncio.sleep(0.2)
            with contextlib.suppress(asyncpg.PostgresError, OSError):
                connection = await asyncpg.connect(self.fleet.dsn)
                row = await connection.fetchrow(
                    "SELECT count(*) FILTER (WHERE finished_at IS NULL) AS open, sum(seq) AS seq,"
                    " (SELECT count(*) FROM noetl.action) AS actions FROM noetl.execution"
                )
                await connection.close()
                if row["open"] == 0 and row["actions"] == 0:
                    return
                if row != last:
                    last, since = row, time.monotonic()


def run(seed: int, seconds: float, mutant: str | None = None) -> Report:
    """A campaign in a folder of its own, which stays where something is wrong."""
    folder = Path(tempfile.mkdtemp(prefix="noetl-chaos-"))
    folder.chmod(0o755)
    report = asyncio.run(Campaign(seed, seconds, mutant, folder).run())
    if not (KEEP or report.findings.wrong) or mutant is not None:
        shutil.rmtree(folder, ignore_errors=True)
    return replace(report, folder=folder)
