"""What the runs of a worker have to say, in order, with as few requests as possible.

Each lease has a `Telling`: its facts are numbered and kept until the operator has them. One sender
takes what all of them have and posts it together; while a post is under way the next one fills up.
Ends and writes to `ctx` go at once, other facts may linger for a moment. A post that fails is sent
again, which changes nothing where it had arrived.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TypeAlias

from noetl_core.engine.triggers import Verdict
from noetl_core.values import Value
from noetl_core.wire import Knows
from noetl_core.wire.batches import ReportsAnswer, RunAnswer
from noetl_core.wire.reading import PROTOCOL
from noetl_worker.client import PAUSES_S, ClientError, OperatorClient, Refused
from noetl_worker.telling import Telling, Told

_log = logging.getLogger(__name__)

LINGER_S = 0.05
"""How long facts wait for company, unless something urgent comes."""
MAX_POST_BYTES = 4 * 1024 * 1024
"""A post takes in no more runs once it is as large as this."""
MAX_RUNS = 500
"""Runs that one post speaks of."""

Batch: TypeAlias = list[tuple[Telling, Told]]


class Reporter:
    """Sends what all leases of a worker have to say."""

    def __init__(
        self,
        client: OperatorClient,
        worker: str,
        pool: str,
        knows: Callable[[], Knows],
        took: Callable[[ReportsAnswer], None],
    ) -> None:
        self._client, self._worker, self._pool = client, worker, pool
        self._knows, self._took = knows, took
        self._tellings: dict[tuple[str, int], Telling] = {}
        self._waiting = asyncio.Event()
        self._urgent = asyncio.Event()
        self.accepts = True
        """Whether new commands are welcome with the answers."""

    def open(self, telling: Telling) -> None:
        self._tellings[telling.key] = telling

    def close(self, telling: Telling) -> None:
        self._tellings.pop(telling.key, None)

    def wake(self, urgent: bool) -> None:
        self._waiting.set()
        if urgent:
            self._urgent.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._waiting.wait()
            if not self._urgent.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._urgent.wait(), timeout=LINGER_S)
            self._waiting.clear()
            self._urgent.clear()
            batch = self._collect()
            if batch:
                await self._send(batch)

    def _collect(self) -> Batch:
        """What there is to send, as much as goes into one post."""
        batch: Batch = []
        size = 0
        for telling in list(self._tellings.values()):
            if size > MAX_POST_BYTES or len(batch) >= MAX_RUNS:
                self.wake(True)
                break
            told = telling.next_report()
            if told is not None:
                batch.append((telling, told))
                size += told.size
        # Whoever comes last now comes first the next time.
        for telling, _ in batch:
            self._tellings[telling.key] = self._tellings.pop(telling.key)
        return batch

    async def _send(self, batch: Batch) -> None:
        try:
            answer = await self._post(batch)
        except Refused as refused:
            await self._refused(batch, refused)
            return
        for (telling, told), one in zip(batch, answer.answers, strict=False):
            self._take_note(telling, told, one)
        self._took(answer)

    def _take_note(self, telling: Telling, told: Told, answer: RunAnswer) -> None:
        telling.answered(told, answer)
        if telling.has_more(told):
            self.wake(telling.is_urgent)

    async def _refused(self, batch: Batch, refused: Refused) -> None:
        """Find out whose report it was: one that cannot be taken must not cost the others."""
        if len(batch) > 1:
            for one in batch:
                await self._send([one])
            return
        _log.error("a report was refused: %s", refused)
        for telling, told in batch:
            answer = RunAnswer(
                lease_id=telling.held.lease_id,
                verdict=Verdict.REFUSED,
                expected=telling.sent,
                message=f"the operator does not take what the run reports ({refused.status})",
            )
            self._take_note(telling, told, answer)

    async def _post(self, batch: Batch) -> ReportsAnswer:
        """Post until it is answered."""
        ends = sum(told.is_last for _, told in batch)
        message: dict[str, Value] = {
            "protocol": PROTOCOL,
            "worker": self._worker,
            "pool": self._pool,
            "capacity": ends if self.accepts else 0,
            "knows": self._knows().as_json(),
            "reports": [told.body for _, told in batch],
        }
        attempt = 0
        while True:
            try:
                return await self._client.reports(message)
            except Refused:
                raise
            except ClientError as error:
                _log.warning("the operator did not take a report: %s", error)
                await asyncio.sleep(PAUSES_S[min(attempt, len(PAUSES_S) - 1)])
                attempt += 1
