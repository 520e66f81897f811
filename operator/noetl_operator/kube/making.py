"""Makes and removes worker Pods and Jobs, and remembers what was said against them.

`launch` and `singles` decide what should be there; this is the only place that asks the API server
for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from noetl_operator.ingest.service import Ingest
from noetl_operator.kube import port
from noetl_operator.kube.crew import Crew
from noetl_operator.kube.lost import Losses
from noetl_operator.kube.pods import PodView, Stage
from noetl_operator.kube.port import JOB, POD, Cluster, Key, Object, uid_of
from noetl_operator.store.port import Expired

FINISHED_GRACE_S = 5
"""What a Pod gets whose execution is over."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
"""Between tries to have a Pod where they end at once or are refused."""


class Holdings(Protocol):
    async def held_by(self, shard: int, namespace: str, worker: str) -> list[Expired]: ...


@dataclass(slots=True)
class Pause:
    """After a failure."""

    failures: int = 0
    until: float = 0.0


class Maker:
    """Keys are what a Pod is made for: a pool, or a lease that has a Pod of its own."""

    def __init__(
        self,
        cluster: Cluster,
        ingest: Ingest,
        holdings: Holdings,
        losses: Losses,
        crew: Crew,
        clock: Callable[[], float],
        *,
        shard: int,
    ) -> None:
        self._cluster, self._ingest, self._holdings = cluster, ingest, holdings
        self._losses, self._crew, self._clock, self._shard = losses, crew, clock, shard
        self._pauses: dict[str, Pause] = {}
        self._said: dict[str, str] = {}

    def said(self, key: str) -> str | None:
        """What was last said against its Pods."""
        return self._said.get(key)

    def paused(self, key: str) -> bool:
        pause = self._pauses.get(key)
        return pause is not None and self._clock() < pause.until

    def works(self, key: str) -> None:
        """A Pod of it serves: nothing is wrong."""
        self._pauses.pop(key, None)
        self._said.pop(key, None)

    def keep_only(self, keys: Collection[str]) -> None:
        for key in [key for key in self._pauses if key not in keys]:
            del self._pauses[key]
        for key in [key for key in self._said if key not in keys]:
            del self._said[key]

    async def make(self, key: str, body: Object) -> str | None:
        """Create a Pod or Job; answers why the API server will never take it, where that is so."""
        kind = JOB if body["kind"] == JOB.name else POD
        try:
            made = await self._cluster.create(kind, body["metadata"]["namespace"], body)
        except port.Exists:
            # Made before, and not seen yet.
            return None
        except port.Refused as error:
            self._against(key, f"the API server refuses its Pod: {error}")
            return self._said[key]
        except port.ClusterError as error:
            self._against(key, f"its Pod cannot be created: {error}")
            return None
        if kind is POD:
            self._crew.made(made)
        return None

    async def remove(self, key: str, view: PodView, *, finished: bool) -> None:
        """`finished`: whatever it still does is of no use to anybody."""
        if view.stage is Stage.ENDED:
            await self._bury(key, view)
        elif not finished and not self._crew.is_silent(view) and not await self._retired(view):
            return
        pod = Key(POD, view.namespace, view.name)
        grace = FINISHED_GRACE_S if finished else None
        with contextlib.suppress(port.NotFound, port.Conflict):
            await self._cluster.delete(pod, uid=view.uid, grace_s=grace)
        self._crew.gone(pod)

    async def _bury(self, key: str, view: PodView) -> None:
        words = described(view) or f"the Pod {view.name} ended"
        await self._losses.worker(view.namespace, view.name, words)
        if not self._crew.was_heard(view):
            self._against(key, described(view) or f"the Pod {view.name} ended at once")

    async def _retired(self, view: PodView) -> bool:
        """Give it nothing more; then see whether it holds nothing."""
        self._ingest.retiring.add(view.name)
        if await self._holdings.held_by(self._shard, view.namespace, view.name):
            self._ingest.retiring.discard(view.name)
            return False
        return True

    async def remove_job(self, job: Object) -> None:
        meta = job["metadata"]
        with contextlib.suppress(port.NotFound, port.Conflict):
            await self._cluster.delete(Key(JOB, meta["namespace"], meta["name"]), uid=uid_of(job))

    def _against(self, key: str, words: str) -> None:
        """Something speaks against its Pods: the next try waits a while that grows."""
        self._said[key] = words
        pause = self._pauses.setdefault(key, Pause())
        seconds = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(pause.failures, 10))
        pause.failures += 1
        pause.until = self._clock() + seconds


def described(view: PodView) -> str | None:
    """What is wrong with a Pod, and which one it is."""
    return None if view.trouble is None else f"{view.trouble} (Pod {view.name})"
