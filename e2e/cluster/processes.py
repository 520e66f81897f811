"""Long-running processes: started apart from us, written down, and ended only while they are ours.

A pid alone proves nothing, since the kernel gives it out again. So a process is remembered with the
moment it started, and with a word (the cluster's state folder) that its command line must contain.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

POLL_S = 0.02
"""How often we look whether a process has ended."""

KILL_TIMEOUT_S = 10.0
"""How long a process may take to end after SIGKILL."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process of ours: `started` is in clock ticks since boot, `word` is in its command line."""

    pid: int
    started: int
    word: str

    @classmethod
    def of(cls, pid: int, word: str) -> Process:
        stat = _stat(pid)
        return cls(pid, stat.started if stat else 0, word)

    @classmethod
    def read(cls, path: Path) -> Process | None:
        try:
            return cls(**json.loads(path.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def write(self, path: Path) -> None:
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self)))
        temporary.rename(path)

    def alive(self) -> bool:
        stat = _stat(self.pid)
        if stat is None or stat.started != self.started:
            return False
        if stat.state in "ZX":
            # Its first thread may be over while others still hold its sockets.
            return stat.threads > 1
        words = cmdline(self.pid)
        # For a moment, while a process becomes another program, it has no command line.
        return not any(words) or any(self.word in word for word in words)

    def end(self, *, grace: float = 0.0) -> None:
        """End the process: SIGTERM and `grace` seconds first, then SIGKILL. Dead is fine."""
        if grace and self._signal(signal.SIGTERM) and self._gone_within(grace):
            return
        self._signal(signal.SIGKILL)
        if not self._gone_within(KILL_TIMEOUT_S):
            raise TimeoutError(f"process {self.pid} outlived SIGKILL")

    def kill(self) -> None:
        """Send SIGKILL and do not wait."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> bool:
        if not self.alive():
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)
        return True

    def _gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        _reap(self.pid)
        return True


def spawn(argv: Sequence[str], *, log: Path, word: str) -> Process:
    """Start a process in a session of its own, so that Ctrl-C here does not reach it."""
    program = shutil.which(argv[0])
    if program is None:
        raise FileNotFoundError(argv[0])
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    # posix_spawn and not Popen: these outlive us, and Popen warns about a child nobody waited for.
    pid = os.posix_spawn(program, list(argv), os.environ, file_actions=actions, setsid=True)
    return Process.of(pid, word)


def cmdline(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def all_pids() -> Iterator[int]:
    return (int(entry) for entry in os.listdir("/proc") if entry.isdigit())


def mentioning(word: str) -> list[Process]:
    """Every live process with an argument that contains `word`, but for us."""
    found = (p for p in all_pids() if any(word in argument for argument in cmdline(p)))
    return [Process.of(pid, word) for pid in found if pid != os.getpid()]


class _Stat(NamedTuple):
    state: str
    started: int
    threads: int


def _stat(pid: int) -> _Stat | None:
    """The state letter, the start time and the number of threads of a process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return _Stat(fields[0], int(fields[19]), int(fields[17]))


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
