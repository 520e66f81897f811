"""Dirty keys: each is worked on by one worker at a time, as often as it was touched meanwhile.

Whoever notices that an object may have changed pokes its key; many pokes before its turn are one.
A key whose work fails comes again after a while that grows. One that fails for a reason of its own
is reported after a few tries and then looked at rarely, so that it never stops the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

_log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

Work = Callable[[K], Awaitable[float | None]]
"""Bring one key up to date; answers in how many seconds it shall be looked at again, if at all."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How failures are taken."""

    first_s: float = 0.2
    """The pause after a first failure; each that follows doubles it."""
    longest_s: float = 30.0
    quarantined_s: float = 300.0
    """The pause of a key that keeps failing for a reason of its own."""
    tries: int = 5
    """Failures of its own before a key is quarantined."""

    def pause(self, failures: int) -> float:
        return float(min(self.longest_s, self.first_s * 2 ** min(failures - 1, 20)))


class DirtyQueue(Generic[K]):
    """The keys to be worked on."""

    def __init__(
        self,
        work: Work[K],
        *,
        is_passing: Callable[[Exception], bool],
        quarantine: Callable[[K, Exception], Awaitable[None]],
        workers: int = 16,
        pace: Pace | None = None,
    ) -> None:
        self._work, self._is_passing, self._quarantine = work, is_passing, quarantine
        self._count, self._pace = workers, pace or Pace()
        self._dirty: dict[K, None] = {}
        self._ready: deque[K] = deque()
        self._busy: set[K] = set()
        self._failures: dict[K, int] = {}
        self._faults: dict[K, int] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._arrived = asyncio.Event()

    def poke(self, key: K) -> None:
        """Something about it may have changed."""
        self._cancel_timer(key)
        if key in self._dirty:
            return
        self._dirty[key] = None
        if key not in self._busy:
            self._ready.append(key)
            self._arrived.set()

    def later(self, key: K, seconds: float) -> None:
        """Look at it again after a while, or as soon as it is poked."""
        self._cancel_timer(key)
        loop = asyncio.get_running_loop()
        self._timers[key] = loop.call_later(max(0.0, seconds), self._due, key)

    def within(self, key: K, seconds: float) -> None:
        """Look at it after a while; where it is to be looked at earlier, that stays."""
        when = asyncio.get_running_loop().time() + seconds
        timer = self._timers.get(key)
        if key not in self._dirty and (timer is None or timer.when() > when):
            self.later(key, seconds)

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.poke(key)

    def _cancel_timer(self, key: K) -> None:
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()

    @property
    def depth(self) -> int:
        """Keys that wait for their turn."""
        return len(self._dirty)

    async def run(self) -> None:
        """Work until cancelled."""
        workers = [asyncio.create_task(self._worker()) for _ in range(self._count)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            for key in list(self._timers):
                self._cancel_timer(key)

    async def _worker(self) -> None:
        while True:
            while not self._ready:
                self._arrived.clear()
                await self._arrived.wait()
            key = self._ready.popleft()
            self._dirty.pop(key, None)
            self._busy.add(key)
            try:
                await self._once(key)
            finally:
                self._busy.discard(key)
                if key in self._dirty:
                    self._ready.append(key)
                    self._arrived.set()

    async def _once(self, key: K) -> None:
        try:
            again_s = await self._work(key)
        except Exception as error:
            await self._failed(key, error)
            return
        self._failures.pop(key, None)
        self._faults.pop(key, None)
        if again_s is not None and key not in self._dirty:
            self.later(key, again_s)

    async def _failed(self, key: K, error: Exception) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = self._pace.pause(failures)
        if self._is_passing(error):
            _log.warning("%s waits: %s", key, error)
        else:
            _log.exception("%s failed", key)
            faults = self._faults[key] = self._faults.get(key, 0) + 1
            if faults >= self._pace.tries:
                pause = self._pace.quarantined_s
                await self._set_aside(key, error)
        if key not in self._dirty:
            self.later(key, pause)

    async def _set_aside(self, key: K, error: Exception) -> None:
        try:
            await self._quarantine(key, error)
        except Exception:
            _log.exception("%s cannot even be told that it is quarantined", key)
