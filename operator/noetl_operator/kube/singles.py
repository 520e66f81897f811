"""Commands of kind `pod` and `job`: each has a Pod or Job of its own.

The name of a Pod holds the lease and the epoch, so making it twice is making it once. A Pod that
ends without having taken its command is a worker lost like any other: the command gets another
epoch, and with it another Pod, as often as its step allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from noetl_core.model import ExecutorKind
from noetl_operator.kube import manifests
from noetl_operator.kube.allow import Workers
from noetl_operator.kube.briefs import Brief, Briefs, Seen
from noetl_operator.kube.crew import Crew, Since
from noetl_operator.kube.lost import Losses
from noetl_operator.kube.making import Maker, described
from noetl_operator.kube.pods import PodView, Stage, is_over, job_trouble
from noetl_operator.kube.port import JOB, POOL, Object
from noetl_operator.kube.scaling import Single, SinglePod, plan_singles
from noetl_operator.kube.troubles import Troubles
from noetl_operator.store.queues import SingleCommand


@dataclass(slots=True)
class _Bench:
    """The Pods and Jobs of one pool of this kind."""

    views: list[PodView]
    jobs: dict[str, Object]

    def of(self, name: str) -> list[PodView]:
        return [view for view in self.views if name in (view.job, view.name)]

    def words(self, name: str) -> str | None:
        """What is wrong with the Pod or Job of this name."""
        found = next((described(view) for view in self.of(name) if view.trouble), None)
        if found is None and name in self.jobs:
            return job_trouble(self.jobs[name])
        return found


class Singles:
    """Has a Pod or Job for every such command."""

    def __init__(
        self,
        briefs: Briefs,
        seen: Seen,
        crew: Crew,
        maker: Maker,
        losses: Losses,
        troubles: Troubles,
        workers: Workers,
        stuck: Since,
    ) -> None:
        self._briefs, self._seen, self._crew, self._maker = briefs, seen, crew, maker
        self._losses, self._troubles, self._workers = losses, troubles, workers
        self._stuck = stuck

    async def serve(self, pool: str, commands: Sequence[SingleCommand]) -> None:
        """One look at the commands of a pool."""
        bench = self._bench(pool)
        brief = await self._briefs.of(pool, None)
        singles = {one.lease_id: _single(one, brief.stem if brief else "") for one in commands}
        plan = plan_singles(
            list(singles.values()),
            self._there(bench),
            self._workers.most_pods,
            keep_ended=brief is not None and brief.shape.kind is ExecutorKind.JOB,
        )
        await self._remove(plan.delete, bench)
        by_lease = {one.lease_id: one for one in commands}
        for lease_id in plan.failed:
            await self._never_taken(by_lease[lease_id], singles[lease_id].name, bench)
        for lease_id in plan.create:
            if brief is not None and not self._maker.paused(lease_id):
                await self._make(brief, by_lease[lease_id], singles[lease_id].name)
        for one in commands:
            await self._judge(one, singles[one.lease_id].name, bench)

    def _bench(self, pool: str) -> _Bench:
        jobs = {
            one["metadata"]["name"]: one
            for one in self._seen.every(JOB)
            if (one["metadata"].get("annotations") or {}).get(POOL) == pool
        }
        return _Bench([view for view in self._crew.pods.values() if view.pool == pool], jobs)

    def _there(self, bench: _Bench) -> list[SinglePod]:
        """Pods, and Jobs with theirs; a Job is as far as its Pod is."""
        found = [
            SinglePod(
                name=view.job or view.name,
                stage=view.stage,
                pod=view.name,
                idle_s=self._crew.idle_s(view),
            )
            for view in bench.views
            if view.job is None or view.job in bench.jobs
        ]
        with_pods = {one.name for one in found}
        for name, job in bench.jobs.items():
            if name not in with_pods:
                found.append(SinglePod(name=name, stage=_job_stage(job)))
        return found

    async def _remove(self, names: Sequence[str], bench: _Bench) -> None:
        by_name = {view.name: view for view in bench.views}
        for name in names:
            if name in bench.jobs:
                await self._maker.remove_job(bench.jobs[name])
            elif name in by_name:
                view = by_name[name]
                await self._maker.remove(view.lease_id or "", view, finished=True)

    async def _never_taken(self, one: SingleCommand, name: str, bench: _Bench) -> None:
        reason = bench.words(name) or f"the Pod {name} ended before it had begun"
        await self._losses.command(one.pool, one.lease_id, reason, nowhere=False)

    async def _make(self, brief: Brief, one: SingleCommand, name: str) -> None:
        order = brief.order_one(name, one.step, one.lease_id)
        build = manifests.job if brief.shape.kind is ExecutorKind.JOB else manifests.pod
        never = await self._maker.make(one.lease_id, build(order, self._workers))
        if never is not None:
            await self._losses.command(one.pool, one.lease_id, never, nowhere=True)

    async def _judge(self, one: SingleCommand, name: str, bench: _Bench) -> None:
        """What keeps a command waiting, and whether it has done so for too long."""
        waited = self._stuck.note(one.lease_id, one.owner is None)
        if one.owner is not None:
            self._maker.works(one.lease_id)
            return
        words = bench.words(name) or self._maker.said(one.lease_id)
        if words is not None:
            self._troubles.step(one.execution_id, one.step, words)
        if waited > self._workers.pending_timeout_s:
            reason = too_long(self._workers, words)
            await self._losses.command(one.pool, one.lease_id, reason, nowhere=True)


def too_long(workers: Workers, words: str | None) -> str:
    limit = f"no Pod was ready within {workers.pending_timeout_s:g} s"
    return f"{limit}: {words}" if words else limit


def _single(one: SingleCommand, stem: str) -> Single:
    # The epoch of the lease that its Pod will take, or has taken.
    epoch = one.epoch + 1 if one.owner is None else one.epoch
    name = manifests.lease_pod_name(stem, one.step, one.lease_id, epoch)
    return Single(lease_id=one.lease_id, name=name, owner=one.owner)


def _job_stage(job: Object) -> Stage:
    if job["metadata"].get("deletionTimestamp"):
        return Stage.ENDING
    return Stage.ENDED if is_over(job) else Stage.STARTING
