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
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from noetl_core.engine.events import CtxPatched, Fact
from noetl_core.engine.triggers import RunEnd, Verdict
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.pipeline.requests import PatchAnswer
from noetl_core.wire import (
    Command,
    Held,
    Knows,
    LogLine,
    Report,
    Reports,
    ReportsAnswer,
    RunAnswer,
    RunReport,
)
from noetl_worker.client import ClientError, OperatorClient, Refused

_log = logging.getLogger(__name__)

LINGER_S = 0.05
"""How long facts wait for company, unless something urgent comes."""
MAX_FACTS = 500
"""Facts of one lease in one post."""
MAX_WAITING = 2_000
"""Facts of one lease that may wait; whoever has more to say waits until some are gone."""
PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Between tries of a post that failed; the last one repeats."""


class Logs(Protocol):
    def take(self) -> tuple[LogLine, ...]:
        """What was printed and not sent yet."""


@dataclass(slots=True, eq=False)
class Telling:
    """What one lease has to say."""

    held: Held
    run_id: str
    step: str | None
    logs: Logs
    masked: Callable[[Fact], Fact]
    """Secrets leave no worker."""
    wake: Callable[[bool], None]
    sent: int = 0
    """Facts that the operator has."""
    facts: deque[Fact] = field(default_factory=deque)
    end: RunEnd | None = None
    patch: asyncio.Future[RunAnswer] | None = None
    """Set while the last of `facts[:cut]` is a write to `ctx` that waits for its verdict."""
    cut: int = 0
    over: asyncio.Future[Verdict] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """Resolved when the end was taken, or when the lease is gone."""
    room: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of(
        cls,
        command: Command,
        logs: Logs,
        masked: Callable[[Fact], Fact],
        wake: Callable[[bool], None],
    ) -> Telling:
        held = Held(lease_id=command.lease_id, epoch=command.epoch, capability=command.capability)
        return cls(held, command.run_id, command.step, logs, masked, wake)

    async def say(self, fact: Fact) -> None:
        """Report a fact some time soon."""
        while len(self.facts) >= MAX_WAITING and not self.over.done():
            self.room.clear()
            self.wake(True)
            await self.room.wait()
        self.facts.append(self.masked(fact))
        self.wake(False)

    async def write(self, fact: CtxPatched) -> PatchAnswer:
        """Report a write to `ctx` at once and learn what became of it."""
        while self.patch is not None:
            # Another iteration of this lease is writing: one at a time, each the last of its post.
            await asyncio.wait([self.patch])
        self.facts.append(self.masked(fact))
        self.cut = len(self.facts)
        patch: asyncio.Future[RunAnswer] = asyncio.get_running_loop().create_future()
        self.patch = patch
        self.wake(True)
        answer = await asyncio.shield(patch)
        return PatchAnswer(_refusal_of(answer, fact))

    async def finish(self, end: RunEnd) -> Verdict:
        """Report the end; returns when it is taken."""
        self.end = end
        self.wake(True)
        return await asyncio.shield(self.over)

    def drop(self, verdict: Verdict = Verdict.GONE) -> None:
        """The lease is over: nothing of it is sent any more."""
        self.facts.clear()
        self.room.set()
        if not self.over.done():
            self.over.set_result(verdict)
        if self.patch is not None and not self.patch.done():
            self.patch.set_result(RunAnswer(lease_id=self.held.lease_id, verdict=verdict))

    def next_report(self) -> RunReport | None:
        """What to send now, if anything."""
        if self.over.done():
            return None
        most = min(self.cut if self.patch is not None else len(self.facts), MAX_FACTS)
        facts = tuple(fact for fact, _ in zip(self.facts, range(most), strict=False))
        is_all = most == len(self.facts) and self.patch is None
        end = self.end if is_all else None
        logs = self.logs.take()
        if not facts and end is None and not logs:
            return None
        report = Report(
            run_id=self.run_id,
            step=self.step,
            epoch=self.held.epoch,
            first=self.sent,
            facts=facts,
            end=end,
        )
        return RunReport(held=self.held, report=report, logs=logs)

    def answered(self, sent: RunReport, answer: RunAnswer) -> None:
        """Take note of what became of a report."""
        verdict = answer.verdict
        count = len(sent.report.facts)
        if verdict is Verdict.ACCEPTED:
            self._taken(count)
            self._settle_patch(answer, count)
            if sent.report.end is not None:
                self.drop(verdict)
        elif verdict in (Verdict.CONFLICT, Verdict.TOO_LARGE):
            self._taken(answer.expected - self.sent)
            if self.patch is None:
                self.drop(verdict)
                return
            # The write was the last fact of the post, and it was not taken.
            self.facts.popleft()
            self._settle_patch(answer, 0)
        elif verdict is Verdict.AHEAD and answer.expected < self.sent:
            self.drop()
        elif verdict is not Verdict.AHEAD:
            self.drop(verdict)

    def _taken(self, count: int) -> None:
        for _ in range(count):
            self.facts.popleft()
        self.sent += count
        self.cut = max(0, self.cut - count)
        self.room.set()

    def _settle_patch(self, answer: RunAnswer, count: int) -> None:
        patch = self.patch
        if patch is None or (self.cut and count):
            return
        self.patch, self.cut = None, 0
        if not patch.done():
            patch.set_result(answer)


def _refusal_of(answer: RunAnswer, fact: CtxPatched) -> TaskError | None:
    """The error that a write which was not taken ends with."""
    keys = ", ".join(fact.set)
    match answer.verdict:
        case Verdict.ACCEPTED:
            return None
        case Verdict.CONFLICT:
            message = answer.message or f"another iteration wrote a different value to ctx ({keys})"
            return TaskError(kind=ErrorKind.CTX_CONFLICT, message=message, source="ctx")
        case Verdict.TOO_LARGE:
            message = answer.message or f"ctx would be too large ({keys})"
            return TaskError(kind=ErrorKind.LIMIT, message=message, source="ctx")
        case _:
            return TaskError(kind=ErrorKind.CANCELLED, message="the run is in other hands")


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
        self._tellings: dict[str, Telling] = {}
        self._waiting = asyncio.Event()
        self._urgent = asyncio.Event()
        self.accepts = True
        """Whether new commands are welcome with the answers."""

    def open(self, telling: Telling) -> None:
        self._tellings[telling.held.lease_id] = telling

    def close(self, telling: Telling) -> None:
        self._tellings.pop(telling.held.lease_id, None)

    def wake(self, urgent: bool) -> None:
        self._waiting.set()
        if urgent:
            self._urgent.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._waiting.wait()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._urgent.wait(), timeout=LINGER_S)
            self._waiting.clear()
            self._urgent.clear()
            await self._send()

    async def _send(self) -> None:
        batch = [
            (telling, report)
            for telling in list(self._tellings.values())
            if (report := telling.next_report()) is not None
        ]
        if not batch:
            return
        ends = sum(report.report.end is not None for _, report in batch)
        request = Reports(
            worker=self._worker,
            pool=self._pool,
            capacity=ends if self.accepts else 0,
            knows=self._knows(),
            reports=tuple(report for _, report in batch),
        )
        answer = await self._post(request)
        if answer is None:
            for telling, _ in batch:
                telling.drop()
            return
        for (telling, report), one in zip(batch, answer.answers, strict=True):
            telling.answered(report, one)
            if telling.facts or telling.end is not None:
                self.wake(telling.end is not None)
        self._took(answer)

    async def _post(self, request: Reports) -> ReportsAnswer | None:
        """Post until it is answered; None when it is refused for good."""
        for attempt in range(1_000_000):
            try:
                return await self._client.reports(request)
            except Refused as refused:
                _log.error("a report was refused: %s", refused)
                return None
            except ClientError as error:
                _log.warning("the operator did not take a report: %s", error)
                await asyncio.sleep(PAUSES_S[min(attempt, len(PAUSES_S) - 1)])
        return None
