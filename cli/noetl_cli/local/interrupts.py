"""Ctrl-C while a run is under way: the first asks it to end well, the second ends it at once.

From the first moment of the command on nothing is lost: what comes before the engine runs is
remembered and heeded then. A third one leaves, whatever state things are in.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Counts interrupts, and tells whoever listens."""

    def __init__(self) -> None:
        self.count = 0
        self.listener: Callable[[], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._interrupted()
        if self._loop is None and self.count > 1:
            raise KeyboardInterrupt

    def _interrupted(self) -> None:
        self.count += 1
        if self.listener is not None:
            self.listener()
        if self.count > 2 and self._task is not None:
            self._task.cancel()

    def attach(self) -> None:
        """Hear signals inside the running event loop from here on."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        for number in _SIGNALS:
            self._loop.add_signal_handler(number, self._interrupted)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
