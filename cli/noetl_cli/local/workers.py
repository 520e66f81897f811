"""The worker processes of a local run: started early, watched, replaced when they die.

Each ends when its standard input does, so none outlives this process even if it is killed. They
stand in sessions of their own: a Ctrl-C in the terminal is ours to answer, not theirs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from noetl_cli.errors import CliError, debugging

CAPACITY = 16
"""Runs at once in one worker."""
TOO_SOON_S = 1.5
"""A worker that lived no longer did not really start."""
MOST_FAILED_STARTS = 3
STOP_S = 2.0
"""How long workers may take to end once nothing runs any more."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a worker is told about where it is."""

    url: str
    token: str = field(repr=False)
    pool: str
    keychain: Path
    scratch: Path
    log: Path


@dataclass(slots=True)
class _Worker:
    name: str
    process: subprocess.Popen[bytes]
    since: float


class Workers:
    """All workers of this process."""

    def __init__(self, place: Place, count: int) -> None:
        self._place, self._count = place, count
        self._workers: list[_Worker] = []
        self._made = 0
        self._failed_starts = 0

    def start(self, count: int | None = None) -> None:
        """Have so many of them running, or all."""
        while len(self._workers) < min(self._count, count or self._count):
            self._workers.append(self._spawn())

    def _spawn(self) -> _Worker:
        self._made += 1
        name = f"local-{os.getpid()}-{self._made}"
        place = self._place
        environment = {
            **os.environ,
            "NOETL_URL": place.url,
            "NOETL_TOKEN": place.token,
            "NOETL_POOL": place.pool,
            "NOETL_WORKER": name,
            "NOETL_CAPACITY": str(CAPACITY),
            "NOETL_KEYCHAIN": str(place.keychain),
            "NOETL_SCRATCH": str(place.scratch),
            "NOETL_STOP_GRACE_S": "0",
            "NOETL_EXIT_WITH_STDIN": "1",
        }
        with place.log.open("ab") as log:
            said = None if debugging() else log
            process = subprocess.Popen(
                [sys.executable, "-m", "noetl_worker"],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
                env=environment,
                start_new_session=True,
            )
        return _Worker(name, process, time.monotonic())

    def lost(self) -> list[str]:
        """Names of workers that died since the last look; others were started in their place."""
        dead = [worker for worker in self._workers if worker.process.poll() is not None]
        for worker in dead:
            self._judge(worker)
            self._workers.remove(worker)
            _close(worker)
        if dead:
            self.start(len(self._workers) + len(dead))
        return [worker.name for worker in dead]

    def _judge(self, worker: _Worker) -> None:
        if time.monotonic() - worker.since > TOO_SOON_S:
            self._failed_starts = 0
            return
        self._failed_starts += 1
        if self._failed_starts >= MOST_FAILED_STARTS:
            raise CliError(f"the workers do not start: {self._last_words()}")

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = self._place.log.read_text(errors="replace").strip().splitlines()
            if lines:
                return lines[-1][:300]
        return "they say nothing"

    def stop(self) -> None:
        """End them all, and whatever they started."""
        for worker in self._workers:
            _close(worker)
        until = time.monotonic() + STOP_S
        for worker in self._workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, until - time.monotonic()))
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(worker.process.pid, signal.SIGKILL)
            worker.process.wait()
        self._workers.clear()


def _close(worker: _Worker) -> None:
    if worker.process.stdin is not None:
        with contextlib.suppress(OSError):
            worker.process.stdin.close()
