"""Requests for work that wait until there is some.

A commit that queued a command for a pool wakes those who wait for that pool; a poll once a second
is the net for commits of other replicas.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict

POLL_S = 1.0


class Waiting:
    """Who waits for which pool."""

    def __init__(self) -> None:
        self._events: dict[str, set[asyncio.Event]] = defaultdict(set)

    def wake(self, pool: str) -> None:
        for event in self._events.get(pool, ()):
            event.set()

    async def wait(self, pool: str, seconds: float) -> None:
        """Until something was queued for the pool, or a while has passed."""
        event = asyncio.Event()
        waiting = self._events[pool]
        waiting.add(event)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), timeout=min(seconds, POLL_S))
        finally:
            waiting.discard(event)
            if not waiting:
                self._events.pop(pool, None)
