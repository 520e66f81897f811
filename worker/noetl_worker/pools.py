"""Things that are expensive to open and good to share: HTTP clients, database connections.

A tool asks for one by a key that holds everything the thing was made from (so a changed Secret
gives a new one). Whatever nobody used for a while is closed, and everything is when the worker
ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

T = TypeVar("T")

IDLE_S = 60.0
"""How long an unused thing is kept open."""


@dataclass(slots=True)
class _Held(Generic[T]):
    thing: T
    close: Callable[[T], Awaitable[None]]
    users: int = 0
    used_at: float = field(default_factory=time.monotonic)
    dropped: bool = False


class Pools:
    """Shared things by key."""

    def __init__(self, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._held: dict[Hashable, _Held[object]] = {}
        self._locks: dict[Hashable, asyncio.Lock] = {}

    @contextlib.asynccontextmanager
    async def use(
        self,
        key: Hashable,
        make: Callable[[], Awaitable[T]],
        close: Callable[[T], Awaitable[None]],
    ) -> AsyncIterator[T]:
        """The thing of this key, made if there is none; it stays open for the next user."""
        held = await self._get(key, make, close)
        held.users += 1
        try:
            yield held.thing
        finally:
            held.users -= 1
            held.used_at = time.monotonic()
            if held.dropped and not held.users:
                await self._close(cast("_Held[object]", held))

    async def _get(
        self,
        key: Hashable,
        make: Callable[[], Awaitable[T]],
        close: Callable[[T], Awaitable[None]],
    ) -> _Held[T]:
        async with self._locks.setdefault(key, asyncio.Lock()):
            found = self._held.get(key)
            if found is None:
                made = _Held(await make(), close)
                self._held[key] = cast("_Held[object]", made)
                return made
            return cast("_Held[T]", found)

    async def drop(self, key: Hashable) -> None:
        """Never hand this one out again; it is closed when its last user is done."""
        held = self._held.pop(key, None)
        if held is None:
            return
        held.dropped = True
        lock = self._locks.get(key)
        if lock is not None and not lock.locked():
            del self._locks[key]
        if not held.users:
            await self._close(held)

    async def close_idle(self) -> None:
        """Called now and then by the worker."""
        now = time.monotonic()
        for key, held in list(self._held.items()):
            if not held.users and now - held.used_at > self._idle_s:
                await self.drop(key)

    async def close(self) -> None:
        for key in list(self._held):
            await self.drop(key)

    async def _close(self, held: _Held[object]) -> None:
        # What cannot be closed properly is gone all the same.
        with contextlib.suppress(Exception):
            await held.close(held.thing)
