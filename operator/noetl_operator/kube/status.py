"""The one writer of statuses.

Whoever knows something new says how the status is made now; what is written is what that gives
when its turn comes. Nothing is written that is already there. A status that only moves on is
written at most once in a while, an end at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from noetl_operator.kube import port
from noetl_operator.kube.port import Cluster, Key, Object
from noetl_operator.kube.queue import DirtyQueue
from noetl_operator.store.port import StoreError

GATHER_S = 0.1
"""How long the first news of an object may wait for more: a short run then needs one write."""
INTERVAL_S = 1.0
"""How often the status of one object that moves on is written at most."""
WRITES_PER_S = 50.0
"""What all objects that move on may write together."""

Make = Callable[[], Object]


@dataclass(slots=True)
class _Entry:
    uid: str
    make: Make
    last: Object | None
    """What is known to be there."""
    at: float = 0.0
    """When it was last written."""
    moves: bool = True
    doubted: object = None
    """The version of the object whose status was last found to be another one."""


class StatusWriter:
    """Writes statuses by server-side apply."""

    def __init__(
        self, cluster: Cluster, leads: Callable[[], bool] = lambda: True, *, workers: int = 8
    ) -> None:
        """`leads` says whether this process may still speak: what it knows may be old."""
        self._cluster, self._leads = cluster, leads
        self._entries: dict[Key, _Entry] = {}
        self._moving = 0
        self._queue: DirtyQueue[Key] = DirtyQueue(
            self._write, is_passing=is_passing, quarantine=self._give_up, workers=workers
        )

    async def run(self) -> None:
        await self._queue.run()

    def want(self, key: Key, uid: str, make: Make, there: Object | None, *, soon: bool) -> None:
        """The status of an object is made so from now on. `there` is the one that it was last seen
        with; what was written here is newer than that."""
        entry = self._entries.get(key)
        if entry is None or entry.uid != uid:
            entry = self._entries[key] = _Entry(uid, make, there)
        entry.make = make
        if soon:
            self._queue.poke(key)
            return
        interval = max(INTERVAL_S, self._moving / WRITES_PER_S)
        self._queue.within(key, max(GATHER_S, entry.at + interval - time.monotonic()))

    def doubt(self, key: Key, obj: Object) -> None:
        """A fresh look at the object: somebody else may have changed its status. What the API
        server itself makes of a status is written once more and then left alone."""
        entry = self._entries.get(key)
        if entry is None or entry.uid != port.uid_of(obj) or entry.last == obj.get("status"):
            return
        version = obj["metadata"].get("resourceVersion")
        if entry.doubted != version:
            entry.doubted, entry.last = version, obj.get("status")
            self._queue.within(key, GATHER_S)

    def forget(self, key: Key) -> None:
        self._entries.pop(key, None)

    async def _write(self, key: Key) -> None:
        entry = self._entries.get(key)
        if entry is None or not self._leads():
            return
        status = entry.make()
        if status == entry.last:
            return
        try:
            await self._cluster.apply_status(key, entry.uid, status)
        except (port.NotFound, port.Conflict):
            # It is gone, or another one of its name: the watch tells.
            if self._entries.get(key) is entry:
                self.forget(key)
            return
        entry.last, entry.at = status, time.monotonic()
        self._count(entry, "finishedAt" not in status)

    def _count(self, entry: _Entry, moves: bool) -> None:
        self._moving = sum(one.moves for one in self._entries.values()) if moves else self._moving
        entry.moves = moves

    async def _give_up(self, key: Key, error: Exception) -> None:
        """It stays unwritten until the next news; the log has said why."""


def is_passing(error: Exception) -> bool:
    """Whether an error is the cluster's or the database's, and not the object's own."""
    passing = (port.Unreachable, port.Denied, port.Gone, StoreError, asyncio.CancelledError)
    return isinstance(error, passing)
