"""Commands whose worker is gone, or for which none can be had: told to the engine, in words.

A Pod that ended or vanished loses what it held at once, not when its leases run out. What nobody
can ever take is taken here, in the operator's own name, so that the engine can end it like any
other lease.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol

from noetl_core.engine.triggers import WorkerLost
from noetl_operator.live import UnknownExecution
from noetl_operator.router import Router
from noetl_operator.store import port
from noetl_operator.store.durable import DurableStore

_log = logging.getLogger(__name__)

OPERATOR = "noetl-operator"
"""The name under which the operator takes what no worker will."""
LEASE_S = 30.0
BATCH = 500


class Holdings(Protocol):
    """Who holds what."""

    async def held_by(self, shard: int, namespace: str, worker: str) -> list[port.Expired]: ...


class Losses:
    """Tells the engine."""

    def __init__(
        self, store: DurableStore, router: Router, holdings: Holdings, *, shard: int
    ) -> None:
        self._store, self._router, self._holdings = store, router, holdings
        self._shard = shard

    async def worker(self, namespace: str, name: str, reason: str) -> int:
        """A worker is gone; answers how much it held."""
        held = await self._holdings.held_by(self._shard, namespace, name)
        if held:
            _log.info("the worker %s/%s is lost: %s", namespace, name, reason)
        await self._tell(held, reason, nowhere=False)
        return len(held)

    async def pool(self, pool: str, reason: str) -> int:
        """No worker can be had for what waits in a pool."""
        leased = await self._store.lease(pool, OPERATOR, BATCH, LEASE_S)
        await self._tell(_ends(leased), reason, nowhere=True)
        return len(leased)

    async def command(self, pool: str, lease_id: str, reason: str, *, nowhere: bool) -> None:
        """No worker can be had for one command, or the one that was to take it ended before."""
        leased = await self._store.lease(pool, OPERATOR, 1, LEASE_S, lease_id)
        await self._tell(_ends(leased), reason, nowhere=nowhere)

    async def _tell(self, held: Iterable[port.Expired], reason: str, *, nowhere: bool) -> None:
        await asyncio.gather(*(self._tell_one(one, reason, nowhere) for one in held))

    async def _tell_one(self, one: port.Expired, reason: str, nowhere: bool) -> None:
        lost = WorkerLost(lease_id=one.lease_id, epoch=one.epoch, reason=reason, nowhere=nowhere)
        try:
            await self._router.apply(one.execution_id, lost)
        except (port.StoreError, UnknownExecution) as error:
            # Its lease runs out all the same.
            _log.warning("a lost run stays for the sweeper: %s", error)


def _ends(leased: Iterable[port.Leased]) -> list[port.Expired]:
    return [port.Expired(one.execution_id, one.lease_id, one.epoch) for one in leased]
