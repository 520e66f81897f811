"""Has the worker Pods there that are needed, and no others.

Level-triggered: each round looks at the queue and at the Pods and does what `scaling` says. Commits
and changes of Pods poke it; once a second it looks by itself. Only the leader of the shard acts.

A Pod without work is removed only after the ingest was told to give it nothing more and its leases
were counted again. Should it still have got something at the last moment, it finishes it in its
time of grace or hands it back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from noetl_operator.ingest.service import Ingest
from noetl_operator.kube import manifests, port
from noetl_operator.kube.allow import Workers
from noetl_operator.kube.briefs import Brief, Briefs, Seen
from noetl_operator.kube.crew import Crew, Name, Since
from noetl_operator.kube.lost import Losses
from noetl_operator.kube.making import LONGEST_PAUSE_S, Maker, described
from noetl_operator.kube.pods import PodView, Stage
from noetl_operator.kube.pools import PoolName, Scope
from noetl_operator.kube.port import JOB, POD, POOL, Cluster, Key
from noetl_operator.kube.scaling import Demand, Limits, PoolPod, plan_pool
from noetl_operator.kube.singles import Singles, too_long
from noetl_operator.kube.troubles import Troubles
from noetl_operator.live import Live, UnknownExecution
from noetl_operator.router import Committed, Router
from noetl_operator.store.durable import DurableStore
from noetl_operator.store.port import Expired, StoreError
from noetl_operator.store.queues import SingleCommand, Waiting

_log = logging.getLogger(__name__)

EVERY_S = 1.0
LEAST_PAUSE_S = 0.02
"""Between two rounds, however much happens."""
POOLS_AT_ONCE = 16
BANNED_S = 600.0
"""How long a worker that is gone gets nothing, should it call all the same."""


class Queue(Protocol):
    """What waits, and who holds what."""

    async def demand(self, shard: int) -> list[Waiting]: ...

    async def singles(self, shard: int) -> list[SingleCommand]: ...

    async def holders(self, shard: int) -> dict[Name, int]: ...

    async def held_by(self, shard: int, namespace: str, worker: str) -> list[Expired]: ...

    async def unfinished(self, executions: set[str]) -> set[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What launching needs."""

    cluster: Cluster
    seen: Seen
    store: DurableStore
    queue: Queue
    router: Router
    live: Live
    ingest: Ingest
    briefs: Briefs
    workers: Workers
    shard: int = 0
    clock: Callable[[], float] = time.monotonic


@dataclass(slots=True)
class Look:
    """The queue at one moment."""

    holders: Mapping[Name, int]
    pools: dict[str, dict[str, Waiting]] = field(default_factory=lambda: defaultdict(dict))
    """Pool → execution → what it has there."""
    singles: dict[str, list[SingleCommand]] = field(default_factory=lambda: defaultdict(list))
    alive: set[str] = field(default_factory=set)
    """Executions with Pods and without commands that are not over."""
    warm: set[str] = field(default_factory=set)

    def demand(self, name: PoolName) -> Demand:
        rows = self.pools.get(str(name), {}).values()
        shared = name.scope is Scope.PLAYBOOK
        return Demand(
            waiting=sum(row.waiting for row in rows),
            held=sum(row.held for row in rows),
            alive=bool(rows) or shared or name.execution_id in self.alive,
        )


class Launcher:
    """The only maker and remover of worker Pods."""

    def __init__(
        self, parts: Parts, changed: Callable[[str], None] = lambda execution_id: None
    ) -> None:
        """`changed` is told of executions whose Pods have other troubles than before."""
        self._parts = parts
        self._wake = asyncio.Event()
        self._stuck = Since(parts.clock)
        self._banned: dict[str, float] = {}
        """Workers that are gone by all we know, and when that was."""
        self._numbers: dict[str, int] = {}
        """The next Pod of each pool."""
        self.crew = Crew(parts.ingest.heard, parts.clock)
        self.troubles = Troubles(parts.live, changed)
        self._losses = Losses(parts.store, parts.router, parts.queue, shard=parts.shard)
        self._maker = Maker(
            parts.cluster,
            parts.ingest,
            parts.queue,
            self._losses,
            self.crew,
            parts.clock,
            shard=parts.shard,
        )
        self._singles = Singles(
            parts.briefs,
            parts.seen,
            self.crew,
            self._maker,
            self._losses,
            self.troubles,
            parts.workers,
            self._stuck,
        )
        parts.router.observers.append(self._committed)

    # When to look

    def poke(self) -> None:
        """Something may have changed: a Pod, a Job, the queue."""
        self._wake.set()

    def _committed(self, committed: Committed) -> None:
        moved = committed.transition
        queued = any(one.lease_id not in committed.handed for one in moved.enqueue)
        if queued or moved.requeue or moved.revoke or moved.state.phase.is_final:
            self.poke()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), timeout=EVERY_S)
            self._wake.clear()
            try:
                await self.round()
            except (StoreError, port.ClusterError) as error:
                _log.warning("the launcher waits: %s", error)
            except Exception:
                _log.exception("a round of the launcher failed")
            await asyncio.sleep(LEAST_PAUSE_S)

    async def round(self) -> None:
        """One look, and what follows from it."""
        if not self._parts.router.leads:
            self.crew.forget_time()
            self._stuck.clear()
            return
        look = await self._look()
        self.troubles.clear()
        await self._find_lost(look)
        pools = {*look.pools, *look.warm, *self._pools_of_pods()}
        limit = asyncio.Semaphore(POOLS_AT_ONCE)
        await asyncio.gather(*(self._one(pool, look, limit) for pool in pools))
        self._forget(pools, look)
        await self.troubles.publish()

    async def _look(self) -> Look:
        queue, shard = self._parts.queue, self._parts.shard
        look = Look(await queue.holders(shard))
        for row in await queue.demand(shard):
            look.pools[row.pool][row.execution_id] = row
        if any(pool.startswith(f"{Scope.STEP}/") for pool in look.pools):
            for one in await queue.singles(shard):
                look.singles[one.pool].append(one)
        look.warm = set(await self._parts.briefs.warm())
        self.crew.look(self._parts.seen.every(POD), look.holders)
        names = [PoolName.parse(pool) for pool in self._pools_of_pods() - look.pools.keys()]
        owners = {name.execution_id for name in names if name and name.execution_id}
        look.alive = await queue.unfinished(owners) if owners else set()
        return look

    def _pools_of_pods(self) -> set[str]:
        jobs = [one["metadata"].get("annotations") or {} for one in self._parts.seen.every(JOB)]
        found = {view.pool for view in self.crew.pods.values()}
        return {pool for pool in found | {one.get(POOL, "") for one in jobs} if pool}

    def _forget(self, pools: set[str], look: Look) -> None:
        """What is remembered of things that are gone."""
        leases = {one.lease_id for rows in look.singles.values() for one in rows}
        self._stuck.keep_only(pools | leases)
        self._maker.keep_only(pools | leases)
        self._parts.briefs.keep_only(pools)
        self._numbers = {pool: n for pool, n in self._numbers.items() if pool in pools}
        ingest, now = self._parts.ingest, self._parts.clock()
        names = {name for _, name in self.crew.pods}
        self._banned = {name: at for name, at in self._banned.items() if now - at < BANNED_S}
        ingest.retiring &= names | self._banned.keys()
        for name, at in list(ingest.heard.items()):
            if name not in names and now - at > LONGEST_PAUSE_S:
                del ingest.heard[name]

    # Workers that are gone

    async def _find_lost(self, look: Look) -> None:
        for namespace, owner in look.holders:
            reason = await self._why_lost(namespace, owner)
            if reason is not None:
                self._ban(owner)
                await self._losses.worker(namespace, owner, reason)

    def _ban(self, worker: str) -> None:
        """A Pod that was removed by force may live on for a while, and would take again at once
        what it has just lost."""
        self._banned[worker] = self._parts.clock()
        self._parts.ingest.retiring.add(worker)

    async def _why_lost(self, namespace: str, name: str) -> str | None:
        view = self.crew.pods.get((namespace, name))
        if view is not None:
            ended = view.stage is Stage.ENDED
            return (described(view) or f"the Pod {name} ended") if ended else None
        try:
            # The watch may be behind: only the API server knows that a Pod is not there.
            obj = await self._parts.cluster.get(Key(POD, namespace, name))
        except port.NotFound:
            return f"the Pod {name} is gone"
        self.crew.made(obj)
        return None

    # One pool

    async def _one(self, pool: str, look: Look, limit: asyncio.Semaphore) -> None:
        """A pool that fails does not stop the others."""
        name = PoolName.parse(pool)
        if name is None:
            return
        async with limit:
            try:
                if name.scope is Scope.STEP:
                    await self._singles.serve(pool, look.singles.get(pool, []))
                else:
                    await self._pool(pool, name, look)
            except (port.ClusterError, StoreError, UnknownExecution) as error:
                _log.warning("the pool %s waits: %s", pool, error)
            except Exception:
                _log.exception("the pool %s failed", pool)

    def _pods(self, pool: str) -> list[PodView]:
        return [view for view in self.crew.pods.values() if view.pool == pool]

    async def _pool(self, pool: str, name: PoolName, look: Look) -> None:
        demand, views = look.demand(name), self._pods(pool)
        executions = list(look.pools.get(pool, {}))
        brief = await self._parts.briefs.of(pool, executions[0] if executions else None)
        if brief is None and not executions:
            demand = Demand(alive=False)
        limits = self._limits(brief, keeps=name.scope is Scope.EXECUTION or pool in look.warm)
        plan = plan_pool(limits, demand, [self._pool_pod(one, look) for one in views])
        await self._remove(pool, plan.delete, views, finished=not demand.alive)
        if plan.create and brief is not None and not self._maker.paused(pool):
            await self._make_more(pool, brief, plan.create)
        await self._judge(pool, demand, executions)

    def _limits(self, brief: Brief | None, *, keeps: bool) -> Limits:
        capacity = self._parts.workers.capacity
        if brief is None:
            return Limits(least=0, most=0, capacity=capacity, idle_s=0.0)
        shape = brief.shape
        return Limits(
            least=shape.least if keeps else 0,
            most=shape.most,
            capacity=capacity,
            idle_s=shape.idle_s,
        )

    def _pool_pod(self, view: PodView, look: Look) -> PoolPod:
        return PoolPod(
            name=view.name,
            stage=view.stage,
            leases=look.holders.get((view.namespace, view.name), 0),
            idle_s=self.crew.idle_s(view),
            silent=self.crew.is_silent(view),
        )

    async def _make_more(self, pool: str, brief: Brief, count: int) -> None:
        """Names are not used again while this process lives: leases know workers by them."""
        taken = {name for namespace, name in self.crew.pods if namespace == brief.namespace}
        while count:
            number = self._numbers.get(pool, 0)
            name = manifests.pool_pod_name(brief.stem, pool, number)
            self._numbers[pool] = number + 1
            if name in taken:
                continue
            count -= 1
            never = await self._maker.make(
                pool, manifests.pod(brief.order(name), self._parts.workers)
            )
            if never is not None:
                await self._losses.pool(pool, never)
                return

    async def _remove(
        self, pool: str, names: Iterable[str], views: Sequence[PodView], *, finished: bool
    ) -> None:
        by_name = {view.name: view for view in views}
        for name in names:
            await self._maker.remove(pool, by_name[name], finished=finished)

    async def _judge(self, pool: str, demand: Demand, executions: Sequence[str]) -> None:
        """What keeps commands waiting, and whether it has done so for too long."""
        views = self._pods(pool)
        serves = any(self.crew.serves(view) for view in views)
        waited = self._stuck.note(pool, bool(demand.waiting) and not serves)
        if serves:
            self._maker.works(pool)
        if serves or not demand.waiting:
            return
        words = next(filter(None, map(self._trouble, views)), None) or self._maker.said(pool)
        for execution_id in executions if words else ():
            self.troubles.pool(execution_id, pool, words or "")
        if waited > self._parts.workers.pending_timeout_s:
            await self._losses.pool(pool, too_long(self._parts.workers, words))
            self._stuck.note(pool, False)
            await self._remove(pool, [view.name for view in views], views, finished=True)

    def _trouble(self, view: PodView) -> str | None:
        if view.trouble is None and self.crew.is_silent(view):
            where = f" on the node {view.node}" if view.node else ""
            return f"the Pod {view.name}{where} runs and does not call the operator"
        return described(view)
