"""What one lease has to say: its facts in order, numbered, kept until the operator has them.

The run says things here; the reporter takes them in pieces and brings back what became of them.
Everything is written as JSON once, when it is said.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, cast

import orjson

from noetl_core.engine.events import CtxPatched, Fact
from noetl_core.engine.triggers import EndStatus, RunEnd, Verdict
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.pipeline.requests import PatchAnswer
from noetl_core.values import Value
from noetl_core.wire import Command, Held
from noetl_core.wire.batches import LogLine, RunAnswer
from noetl_core.wire.ends import end_json
from noetl_core.wire.facts import fact_json

MAX_FACTS = 500
"""Facts of one lease in one post."""
MAX_BYTES = 1024 * 1024
"""No further fact goes into a post once those of the lease are as large as this."""
MAX_LINES = 200
"""Lines of logs of one lease in one post."""
MAX_WAITING = 2_000
"""Facts of one lease that may wait; whoever has more to say waits until some are gone."""
MAX_WAITING_BYTES = 8 * 1024 * 1024
"""The same, by their size."""


class Logs(Protocol):
    def take(self, most: int) -> tuple[LogLine, ...]:
        """What was printed and not sent yet, oldest first."""


@dataclass(frozen=True, slots=True)
class Told:
    """A report as it is sent."""

    body: dict[str, Value]
    facts: int
    is_last: bool
    """It carries the end."""
    has_all_logs: bool
    size: int


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
    stop: Callable[[TaskError], None]
    """Ends the run: what it says is not taken."""
    sent: int = 0
    """Facts that the operator has."""
    facts: deque[bytes] = field(default_factory=deque)
    waiting_bytes: int = 0
    end: bytes | None = None
    refused: bool = False
    """Something was not taken, so only that can be the end."""
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
        stop: Callable[[TaskError], None],
    ) -> Telling:
        held = Held(lease_id=command.lease_id, epoch=command.epoch, capability=command.capability)
        return cls(held, command.run_id, command.step, logs, masked, wake, stop)

    @property
    def key(self) -> tuple[str, int]:
        """A lease that comes back to the same worker is another one."""
        return self.held.lease_id, self.held.epoch

    @property
    def is_urgent(self) -> bool:
        return self.end is not None or self.patch is not None

    async def say(self, fact: Fact) -> None:
        """Report a fact some time soon."""
        while self._is_full and not self.over.done():
            self.room.clear()
            self.wake(True)
            await self.room.wait()
        self._add(fact)
        self.wake(False)

    @property
    def _is_full(self) -> bool:
        return len(self.facts) >= MAX_WAITING or self.waiting_bytes >= MAX_WAITING_BYTES

    def _add(self, fact: Fact) -> None:
        if self.refused or self.over.done():
            return
        written = orjson.dumps(fact_json(self.masked(fact)))
        self.facts.append(written)
        self.waiting_bytes += len(written)

    async def write(self, fact: CtxPatched) -> PatchAnswer:
        """Report a write to `ctx` at once and learn what became of it."""
        while self.patch is not None:
            # Another iteration of this lease is writing: one at a time, each the last of its post.
            await asyncio.wait([self.patch])
        self._add(fact)
        if self.refused or self.over.done():
            return PatchAnswer(_in_other_hands())
        self.cut = len(self.facts)
        patch: asyncio.Future[RunAnswer] = asyncio.get_running_loop().create_future()
        self.patch = patch
        self.wake(True)
        answer = await asyncio.shield(patch)
        return PatchAnswer(_refusal_of(answer, fact))

    async def finish(self, end: RunEnd) -> Verdict:
        """Report the end; returns when it is taken."""
        if not self.refused:
            self.end = orjson.dumps(end_json(end))
        self.wake(True)
        return await asyncio.shield(self.over)

    def drop(self, verdict: Verdict = Verdict.GONE) -> None:
        """The lease is over: nothing of it is sent any more."""
        self._forget_facts()
        if not self.over.done():
            self.over.set_result(verdict)
        self._settle_patch(RunAnswer(lease_id=self.held.lease_id, verdict=verdict))

    def _forget_facts(self) -> None:
        self.facts.clear()
        self.waiting_bytes = 0
        self.room.set()

    def next_report(self) -> Told | None:
        """What to send now, if anything."""
        if self.over.done():
            return None
        facts = self._next_facts()
        logs = self.logs.take(MAX_LINES)
        has_all_logs = len(logs) < MAX_LINES
        is_last = self.end is not None and len(facts) == len(self.facts) and has_all_logs
        if not facts and not is_last and not logs:
            return None
        lines = [orjson.dumps(line.as_json()) for line in logs]
        size = sum(map(len, facts)) + sum(map(len, lines)) + len(self.end or b"")
        return Told(self._body(facts, lines, is_last), len(facts), is_last, has_all_logs, size)

    def _next_facts(self) -> list[bytes]:
        most = min(self.cut if self.patch is not None else len(self.facts), MAX_FACTS)
        found: list[bytes] = []
        size = 0
        for written in self.facts:
            if len(found) >= most or size > MAX_BYTES:
                break
            found.append(written)
            size += len(written)
        return found

    def _body(self, facts: list[bytes], lines: list[bytes], is_last: bool) -> dict[str, Value]:
        report: dict[str, Value] = {
            "run_id": self.run_id,
            "step": self.step,
            "epoch": self.held.epoch,
            "first": self.sent,
            "facts": [_written(fact) for fact in facts],
        }
        if is_last and self.end is not None:
            report["end"] = _written(self.end)
        body: dict[str, Value] = {**self.held.as_json(), "report": report}
        if lines:
            body["logs"] = [_written(line) for line in lines]
        return body

    def has_more(self, told: Told) -> bool:
        """Whether something is left to send after a report was answered."""
        if self.over.done():
            return False
        return bool(self.facts) or self.end is not None or not told.has_all_logs

    def answered(self, told: Told, answer: RunAnswer) -> None:
        """Take note of what became of a report."""
        match answer.verdict:
            case Verdict.ACCEPTED | Verdict.DUPLICATE:
                self._taken(told.facts)
                if self.cut == 0:
                    self._settle_patch(answer)
                if told.is_last:
                    self.drop(Verdict.ACCEPTED)
            case Verdict.CONFLICT | Verdict.TOO_LARGE | Verdict.REFUSED:
                self._taken(max(0, answer.expected - self.sent))
                self._not_taken(told, answer)
            case _:
                self.drop(answer.verdict)

    def _not_taken(self, told: Told, answer: RunAnswer) -> None:
        """The next fact was refused. A write may be; anything else ends the run."""
        if self.patch is not None and self.cut == 1 and answer.verdict is not Verdict.REFUSED:
            self._taken_back()
            self._settle_patch(answer)
            return
        if self.refused:
            # Not even that can be told.
            self.drop(answer.verdict)
            return
        self.refused = True
        self._forget_facts()
        error = _not_reported(answer)
        self.end = orjson.dumps(end_json(RunEnd(status=EndStatus.ERROR, error=error)))
        self._settle_patch(RunAnswer(lease_id=self.held.lease_id, verdict=Verdict.GONE))
        self.stop(error)

    def _taken(self, count: int) -> None:
        for _ in range(min(count, len(self.facts))):
            self.waiting_bytes -= len(self.facts.popleft())
        self.sent += count
        self.cut = max(0, self.cut - count)
        self.room.set()

    def _taken_back(self) -> None:
        """A refused write has no number: what follows takes its place."""
        self.waiting_bytes -= len(self.facts.popleft())
        self.cut = 0

    def _settle_patch(self, answer: RunAnswer) -> None:
        patch, self.patch, self.cut = self.patch, None, 0
        if patch is not None and not patch.done():
            patch.set_result(answer)


def _written(text: bytes) -> Value:
    """JSON that is written already, as a value inside of a message."""
    return cast("Value", orjson.Fragment(text))


def _refusal_of(answer: RunAnswer, fact: CtxPatched) -> TaskError | None:
    """The error that a write which was not taken ends with."""
    keys = ", ".join(fact.set)
    match answer.verdict:
        case Verdict.ACCEPTED | Verdict.DUPLICATE:
            return None
        case Verdict.CONFLICT:
            message = answer.message or f"another iteration wrote a different value to ctx ({keys})"
            return TaskError(kind=ErrorKind.CTX_CONFLICT, message=message, source="ctx")
        case Verdict.TOO_LARGE:
            message = answer.message or f"ctx would be too large ({keys})"
            return TaskError(kind=ErrorKind.LIMIT, message=message, source="ctx")
        case _:
            return _in_other_hands()


def _in_other_hands() -> TaskError:
    return TaskError(kind=ErrorKind.CANCELLED, message="the run is in other hands")


def _not_reported(answer: RunAnswer) -> TaskError:
    message = answer.message or "the operator does not take what the run reports"
    return TaskError(kind=ErrorKind.LIMIT, code="REPORT", message=message, source="worker")
