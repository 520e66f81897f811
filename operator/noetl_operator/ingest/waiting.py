"""Requests for work that wait until there is some.

A commit that queued a command for a pool wakes those who wait for that pool; a poll once a second
is the net for commits of other replicas.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Iterator

POLL_S = 1.0


class Waiting:
    """Who waits for which pool."""

    def __init__(self) -> None:
        self._events: dict[str, set[asyncio.Event]] = defaultdict(set)

    def wake(self, pool: str) -> None:
        for event in self._events.get(pool, ()):
            event.set()

    @contextlib.contextmanager
    def watching(self, pool: str) -> Iterator[asyncio.Event]:
        """An event that is set when something was queued for the pool, from here on: whoever looks
        into the queue begins to watch before, or what comes between is noticed late."""
        event = asyncio.Event()
        waiting = self._events[pool]
        waiting.add(event)
        try:
            yield event
        finally:
            waiting.discard(event)
            if not waiting:
                self._events.pop(pool, None)


async def waited(event: asyncio.Event, seconds: float) -> None:
    """Until the event is set, or a while has passed."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), timeout=min(seconds, POLL_S))
