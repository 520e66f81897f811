"""The database's clock, without asking for it every time.

All deadlines are compared with this clock and with no other. Between two looks at the database the
process counts on by itself.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from noetl_core.engine.clock import iso
from noetl_operator.store.port import EventStore


class StoreClock:
    """`now()` of the store, as of the last `sync` plus the time that passed here."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._base = datetime.min
        self._at = 0.0

    async def sync(self) -> None:
        before = time.monotonic()
        base = datetime.fromisoformat(await self._store.now())
        # Half of the round trip is the best guess of when the answer was true.
        self._base, self._at = base, (before + time.monotonic()) / 2

    def now(self) -> str:
        return iso(self._base + timedelta(seconds=time.monotonic() - self._at))
