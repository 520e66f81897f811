"""Compares what is known with what is there, now and then: the net under the watch.

A delete while the connection was down never arrives by itself, nor does anything that happened
before this process led. Reading lists costs little; nothing is written for what did not change.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from noetl_operator.kube import port
from noetl_operator.kube.port import EXECUTION, Cluster, Key, Object, key_of
from noetl_operator.kube.status import StatusWriter
from noetl_operator.kube.watch import Watch, Watched
from noetl_operator.store.objects import Objects
from noetl_operator.store.port import StoreError

_log = logging.getLogger(__name__)

LOOK_S = 0.5
"""How often it is looked whether this process has come to lead."""


class Resync:
    """Lists everything that is watched."""

    def __init__(
        self,
        cluster: Cluster,
        watch: Watch,
        objects: Objects,
        writer: StatusWriter,
        poke: Callable[[Key], None],
        *,
        watched: Sequence[Watched],
        namespaces: Sequence[str],
    ) -> None:
        self._cluster, self._watch, self._objects = cluster, watch, objects
        self._writer, self._poke = writer, poke
        self._watched, self._namespaces = watched, tuple(namespaces) or (None,)

    async def run(self, leads: Callable[[], bool], every_s: float) -> None:
        """Look at everything when this process begins to lead, and from time to time."""
        led, last = False, 0.0
        while True:
            if leads() and (not led or time.monotonic() - last >= every_s):
                try:
                    await self.once(everything=not led)
                    led, last = True, time.monotonic()
                except (port.ClusterError, StoreError) as error:
                    _log.warning("the cluster cannot be looked through: %s", error)
            led = led and leads()
            await asyncio.sleep(LOOK_S)

    async def once(self, *, everything: bool) -> None:
        """One comparison; `everything` is looked at again even where nothing seems to be new."""
        for one in self._watched:
            known = self._watch.known(one.kind)
            listed = await self._list(one)
            self._watch.compare(one.kind, listed, known)
            for obj in listed:
                key = key_of(one.kind, obj)
                self._writer.doubt(key, obj)
                if everything:
                    self._poke(key)
        # Objects whose end nobody noticed have nothing but their record left.
        for link in await self._objects.every():
            key = Key(EXECUTION, link.namespace, link.name)
            seen = self._watch.get(key)
            if seen is None or seen["metadata"]["uid"] != link.uid:
                self._poke(key)

    async def _list(self, one: Watched) -> list[Object]:
        found: list[Object] = []
        for namespace in self._namespaces:
            found += await self._cluster.list(one.kind, namespace, one.labels)
        return found
