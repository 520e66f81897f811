"""What tasks print: captured, masked, cut at limits, and numbered for the operator.

A `RunLog` belongs to one lease: it numbers lines and hands them over in batches (`take`). Each run
of a task writes through a `TaskLog` of its own, which has the limits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from noetl_core.wire import LogLine
from noetl_worker.redact import Redactor
from noetl_worker.redact_stream import StreamRedactor

BATCH_LINES = 2_000
"""Lines that one report carries."""
WAITING_LINES = 20_000
"""Lines of one lease that may wait to be sent; the oldest give way."""
_UNSTORABLE = {0: "\ufffd"}
"""Characters that no text column takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """How much of the output of one run of a task is kept."""

    lines: int = 2_000
    chars: int = 512 * 1024
    line_chars: int = 8 * 1024
    """A longer line becomes several."""


class RunLog:
    """The log of one lease."""

    def __init__(
        self,
        redactor: Redactor,
        now: Callable[[], str],
        limits: LogLimits | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        self._redactor = redactor
        self._now = now
        self._limits = limits or LogLimits()
        self._wake = wake
        self._number = 0
        self._waiting: deque[LogLine] = deque(maxlen=WAITING_LINES)

    def task(self, task: str, attempt: int, iteration: str | None = None) -> TaskLog:
        """The log of one run of a task."""
        return TaskLog(self, self._redactor, self._limits, task, attempt, iteration)

    def add(
        self, stream: str, text: str, task: str | None, attempt: int | None, iteration: str | None
    ) -> None:
        """Keep one line as it is."""
        line = LogLine(
            line=self._number,
            at=self._now(),
            stream=stream,
            text=text,
            task=task,
            attempt=attempt,
            iteration=iteration,
        )
        self._number += 1
        self._waiting.append(line)
        if self._wake is not None:
            self._wake()

    def take(self, most: int = BATCH_LINES) -> tuple[LogLine, ...]:
        """What was printed and not taken yet, oldest first."""
        count = min(most, len(self._waiting))
        return tuple(self._waiting.popleft() for _ in range(count))


class TaskLog:
    """The log of one run of a task; `close` it, or its last words are lost."""

    def __init__(
        self,
        log: RunLog,
        redactor: Redactor,
        limits: LogLimits,
        task: str,
        attempt: int,
        iteration: str | None,
    ) -> None:
        self._log, self._redactor, self._limits = log, redactor, limits
        self._task, self._attempt, self._iteration = task, attempt, iteration
        self._streams: dict[str, StreamRedactor] = {}
        self._tails: dict[str, str] = {}
        """What came after the last line break, by stream; masked already."""
        self._lines = self._chars = 0
        self._cut_lines = self._cut_chars = 0

    def write(self, stream: str, text: str) -> None:
        """Keep text of a stream; lines are made of it as they are complete."""
        if self._is_full:
            self._cut_lines += text.count("\n")
            self._cut_chars += len(text)
            return
        if stream not in self._streams:
            self._streams[stream] = StreamRedactor(self._redactor)
        self._take(stream, self._streams[stream].feed(text))

    def close(self) -> None:
        """The task is over: what was held back comes out, and how much was cut."""
        for stream, redactor in self._streams.items():
            self._take(stream, redactor.end())
            if self._tails.get(stream):
                self._keep(stream, self._tails[stream])
        self._streams, self._tails = {}, {}
        if self._cut_chars:
            text = f"cut: {self._cut_lines:,} more lines ({self._cut_chars:,} characters)"
            self._log.add("tool", text, self._task, self._attempt, self._iteration)
            self._cut_lines = self._cut_chars = 0

    def _take(self, stream: str, text: str) -> None:
        if not text:
            return
        *lines, tail = (self._tails.get(stream, "") + text).split("\n")
        for line in lines:
            self._keep(stream, line.removesuffix("\r"))
        size = self._limits.line_chars
        while len(tail) > size:
            self._keep(stream, tail[:size])
            tail = tail[size:]
        self._tails[stream] = tail

    def _keep(self, stream: str, line: str) -> None:
        if self._is_full:
            self._cut_lines += 1
            self._cut_chars += len(line) + 1
            return
        size = self._limits.line_chars
        for at in range(0, len(line) or 1, size):
            self._keep_piece(stream, line[at : at + size])

    def _keep_piece(self, stream: str, piece: str) -> None:
        if self._is_full:
            self._cut_chars += len(piece)
            return
        self._lines += 1
        self._chars += len(piece)
        clean = piece.translate(_UNSTORABLE).encode("utf-8", "replace").decode()
        self._log.add(stream, clean, self._task, self._attempt, self._iteration)

    @property
    def _is_full(self) -> bool:
        return self._lines >= self._limits.lines or self._chars >= self._limits.chars
