"""Time, looked at once a second: what no message will ever announce.

Leases that ran out, deadlines that passed, executions that were registered and never started,
actions whose first try failed, the leadership itself. Everything here is found by the database's
clock and is safe to find twice.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from noetl_core.engine.triggers import WorkerLost
from noetl_operator.clock import StoreClock
from noetl_operator.router import Router
from noetl_operator.settings import OperatorSettings
from noetl_operator.store import port
from noetl_operator.store.durable import DurableStore

_log = logging.getLogger(__name__)

LOST = "its worker did not report in time"


class Sweeper:
    """Leads one shard and keeps its time."""

    def __init__(
        self,
        store: DurableStore,
        router: Router,
        clock: StoreClock,
        settings: OperatorSettings,
        *,
        shard: int,
        holder: str,
    ) -> None:
        self._store, self._router, self._clock = store, router, clock
        self._settings = settings
        self._shard, self._holder = shard, holder
        self._was_deaf = True
        """While nobody listens no worker is heard: leases that run out meanwhile get the time of a
        heartbeat, so that a restart is not taken for the loss of every worker."""
        self.led = asyncio.Event()
        """Set while this process leads its shard."""

    async def run(self) -> None:
        """Sweep until cancelled; a look that fails is tried again with the next."""
        while True:
            try:
                await self.sweep()
            except port.StoreError as error:
                _log.warning("the database did not answer: %s", error)
                self._was_deaf = True
            except Exception:
                _log.exception("a sweep failed")
            await asyncio.sleep(self._settings.sweep_interval_s)

    async def sweep(self) -> None:
        """One look at everything."""
        if not await self._lead():
            return
        await self._clock.sync()
        batch = self._settings.sweep_batch
        if self._was_deaf:
            await self._store.prolong(self._shard, self._settings.lease_ttl_s / 2)
            self._was_deaf = False
        lost = [self._lost(one) for one in await self._store.expired(self._shard, batch)]
        await asyncio.gather(*lost)
        for execution_id in await self._store.due(self._shard, batch):
            self._router.poke(execution_id)

    async def _lead(self) -> bool:
        ttl = self._settings.shard_ttl_s
        asked = time.monotonic()
        shard = await self._store.take_shard(self._shard, self._holder, ttl)
        if shard is None:
            self._router.resign()
            self.led.clear()
            return False
        if shard != self._router.shard:
            _log.info("leading shard %d under epoch %d", shard.number, shard.epoch)
            self._was_deaf = True
        self._router.lead(shard, asked + ttl)
        self.led.set()
        return True

    async def _lost(self, expired: port.Expired) -> None:
        trigger = WorkerLost(lease_id=expired.lease_id, epoch=expired.epoch, reason=LOST)
        try:
            await self._router.apply(expired.execution_id, trigger)
        except port.StoreError as error:
            _log.warning("a lost run stays for the next look: %s", error)
        except Exception:
            _log.exception("a lost run stays", extra={"execution": expired.execution_id})


class Housekeeping:
    """What is done once an hour: partitions ahead of time, retention, results nobody names."""

    def __init__(self, store: DurableStore, settings: OperatorSettings) -> None:
        self._store, self._settings = store, settings

    async def run(self, every_s: float = 3600.0) -> None:
        while True:
            try:
                await self.once()
            except port.StoreError as error:
                _log.warning("housekeeping waits for the database: %s", error)
            except Exception:
                _log.exception("housekeeping failed")
            await asyncio.sleep(every_s)

    async def once(self) -> None:
        await self._store.ensure_partitions(self._settings.partitions_ahead)
        if self._settings.retention_days:
            now = datetime.fromisoformat(await self._store.now())
            before = now - timedelta(days=self._settings.retention_days)
            for part in await self._store.partitions():
                if week_end(part) <= before:
                    await self._store.drop_partition(part)
        await self._store.sweep_results(older_s=3600.0, limit=1000)


def week_end(partition: str) -> datetime:
    """When the week of a partition was over: `event_2026w07`."""
    year, week = partition.removeprefix("event_").split("w")
    return datetime.fromisocalendar(int(year), int(week), 1).replace(tzinfo=UTC) + timedelta(days=7)


Act = Callable[[port.Action], Awaitable[None]]


class Outbox:
    """Does what committed transitions ask for outside of their own execution, at least once."""

    def __init__(
        self,
        store: DurableStore,
        act: Act,
        leads: Callable[[], bool],
        *,
        shard: int,
        every_s: float,
    ) -> None:
        self._store, self._act, self._leads = store, act, leads
        self._shard, self._every_s = shard, every_s
        self._wake = asyncio.Event()

    def poke(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.once()
            except port.StoreError as error:
                _log.warning("the outbox waits for the database: %s", error)
            except Exception:
                _log.exception("the outbox failed")
            try:
                await asyncio.wait_for(self._wake.wait(), timeout=self._every_s)
            except TimeoutError:
                continue

    async def once(self) -> None:
        """Every action that is due, in order; one that fails comes again later. Whoever does not
        lead leaves them alone."""
        while self._leads() and (actions := await self._store.actions(self._shard, 100)):
            for action in actions:
                try:
                    await self._act(action)
                except port.StoreError:
                    raise
                except Exception:
                    _log.exception("an action failed", extra={"execution": action.execution_id})
                    await self._store.action_later(action.id)
                else:
                    await self._store.acted([action.id])
