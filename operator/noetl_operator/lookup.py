"""What decisions need beyond the state: stored results and the ended iterations of loops.

`decide` asks synchronously and raises `Needed` for what is not at hand; the router fetches it here
and decides again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import orjson

from noetl_core.engine.triggers import IterationEnd, Needed
from noetl_core.values import Value
from noetl_operator.store.port import EventStore

MAX_CACHED_BYTES = 64 * 1024 * 1024
"""Stored results kept in memory, by the size of their JSON: above all the items of loops."""


class StoreLookup:
    """Answers from memory; `fetch` brings what was missing."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._results: OrderedDict[str, tuple[int, Value]] = OrderedDict()
        self._size = 0
        self._loops: dict[str, tuple[list[IterationEnd], dict[str, int]]] = {}

    def result(self, key: str) -> Value | None:
        found = self._results.get(key)
        return None if found is None else found[1]

    def iterations(self, run_id: str) -> Sequence[IterationEnd] | None:
        found = self._loops.get(run_id)
        return None if found is None else found[0]

    def frames(self, run_id: str) -> dict[str, int] | None:
        found = self._loops.get(run_id)
        return None if found is None else found[1]

    async def fetch(self, execution_id: str, needed: Needed) -> None:
        if needed.result is not None:
            await self._fetch_result(needed.result)
        if needed.loop is not None:
            ends = await self._store.iterations(execution_id, needed.loop)
            self._loops[needed.loop] = ends, await self._store.frames(execution_id, needed.loop)

    def forget_loops(self) -> None:
        """The log moves on: what it said of a loop holds for one decision only."""
        self._loops.clear()

    async def _fetch_result(self, key: str) -> None:
        content = await self._store.get_result(key)
        if content is None:
            raise LookupError(f"the stored result {key} is gone")
        self._results[key] = len(content), orjson.loads(content)
        self._size += len(content)
        while self._size > MAX_CACHED_BYTES and len(self._results) > 1:
            _, (size, _) = self._results.popitem(last=False)
            self._size -= size
