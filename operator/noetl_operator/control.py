"""The control plane put together: store, router, ingest, sweeper and outbox in one event loop.

The operator's process and a local run start the same thing; what differs is who may call (the
authenticator) and where the playbooks of children come from.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from noetl_core.engine.triggers import Decision
from noetl_operator.clock import StoreClock
from noetl_operator.ingest.capability import Capabilities
from noetl_operator.ingest.commands import Packer
from noetl_operator.ingest.service import Ingest
from noetl_operator.live import Live
from noetl_operator.outbox import Actor, Children
from noetl_operator.router import Committed, Router
from noetl_operator.settings import OperatorSettings
from noetl_operator.starting import start_of
from noetl_operator.store import port
from noetl_operator.store.durable import DurableStore
from noetl_operator.sweep import Housekeeping, Outbox, Sweeper


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """Everything that runs, for whoever puts a face on it."""

    store: DurableStore
    router: Router
    ingest: Ingest
    sweeper: Sweeper
    clock: StoreClock
    live: Live

    async def start(self, request: port.NewExecution) -> tuple[str, Decision | None]:
        """Register and start an execution; None where the request key had one already."""
        execution_id = await self.store.create(request)
        if execution_id != request.execution_id:
            return execution_id, None
        return execution_id, await self.router.apply(execution_id, start_of(request))


@contextlib.asynccontextmanager
async def control_plane(
    store: DurableStore,
    children: Children,
    settings: OperatorSettings,
    *,
    shard: int,
    holder: str,
) -> AsyncIterator[ControlPlane]:
    """A running control plane that leads, or waits to lead, one shard."""
    clock = StoreClock(store)
    await clock.sync()
    live = Live(store, settings.live_executions)
    router = Router(store, clock, live)
    capabilities = Capabilities(await store.capability_key())
    packer = Packer(router, clock, capabilities, settings.lease_ttl_s)
    ingest = Ingest(store, router, packer, capabilities, settings)
    sweeper = Sweeper(store, router, clock, settings, shard=shard, holder=holder)
    actor = Actor(store, router, children)
    outbox = Outbox(
        store, actor.act, lambda: router.leads, shard=shard, every_s=settings.sweep_interval_s
    )
    router.observers.append(lambda committed: _poke(outbox, committed))
    loops = [
        asyncio.create_task(work, name=name)
        for name, work in (
            ("router", router.run()),
            ("sweeper", sweeper.run()),
            ("outbox", outbox.run()),
            ("housekeeping", Housekeeping(store, settings).run()),
        )
    ]
    try:
        yield ControlPlane(store, router, ingest, sweeper, clock, live)
    finally:
        ingest.stop()
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        with contextlib.suppress(port.StoreError):
            await store.release_shard(shard, holder)


def _poke(outbox: Outbox, committed: Committed) -> None:
    if committed.transition.outbox:
        outbox.poke()
