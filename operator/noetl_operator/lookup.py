"""What decisions need beyond the state: stored results and the ended iterations of loops.

`decide` asks synchronously and raises `Needed` for what is not at hand; the router fetches it here
and decides again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import orjson

from noetl_core.engine.triggers import IterationEnd, Needed, Unreadable
from noetl_core.values import Value
from noetl_operator.store.port import Corrupt, EventStore

MAX_CACHED_BYTES = 64 * 1024 * 1024
"""Stored results kept in memory, by the size of their JSON: above all the items of loops."""


class StoreLookup:
    """Answers from memory; `fetch` brings what was missing."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._results: OrderedDict[str, tuple[int, Value]] = OrderedDict()
        self._unreadable: dict[str, Unreadable] = {}
        self._size = 0
        self._loops: dict[str, tuple[list[IterationEnd], dict[str, int]]] = {}

    def result(self, key: str) -> Value | Unreadable | None:
        found = self._results.get(key)
        return self._unreadable.get(key) if found is None else found[1]

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
        """The log moves on: what it said of a loop holds for one decision only. So does that a
        result is not there: another execution may store the same content."""
        self._loops.clear()
        self._unreadable.clear()

    async def _fetch_result(self, key: str) -> None:
        size, value = await self._read(key)
        if isinstance(value, Unreadable):
            self._unreadable[key] = value
            return
        self._results[key] = size, value
        self._size += size
        while self._size > MAX_CACHED_BYTES and len(self._results) > 1:
            _, (size, _) = self._results.popitem(last=False)
            self._size -= size

    async def _read(self, key: str) -> tuple[int, Value | Unreadable]:
        """Content and its size. What cannot be read is an answer too: asking again is no use."""
        try:
            content = await self._store.get_result(key)
        except Corrupt as error:
            return 0, Unreadable(str(error))
        if content is None:
            return 0, Unreadable(f"the stored result {key[:12]} is gone")
        try:
            value: Value = orjson.loads(content)
        except ValueError:
            return 0, Unreadable(f"the stored result {key[:12]} is not JSON")
        if value is None:
            return 0, Unreadable(f"the stored result {key[:12]} is not what its reference says")
        return len(content), value
