"""The campaign's processes: two operators, four workers, and a Postgres, each of which may die.

Whatever ends is started again at once, as a Deployment would.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from noetl_cli.local.postgres import LocalPostgres

LEASE_TTL_S = 3.0
SHARD_TTL_S = 2.0
FAILPOINTS = {
    "commit.before": 0.004,
    "commit.after": 0.004,
    "lease.before": 0.003,
    "lease.after": 0.003,
    "ack.before": 0.004,
    "leased": 0.01,
    "effect.before": 0.002,
    "effect.after": 0.002,
    "report.before": 0.004,
    "report.after": 0.004,
    "report.twice": 0.05,
    "report.late": 0.05,
}


@dataclass(slots=True, eq=False)
class Member:
    """A place in the fleet; whoever fills it changes."""

    kind: str
    name: str
    env: dict[str, str]
    pid: int | None = None
    is_stopped: bool = False
    resuming: asyncio.Task[None] | None = None


@dataclass(slots=True)
class Fleet:
    folder: Path
    server: LocalPostgres
    dsn: str
    mutant: str | None = None
    members: list[Member] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    failpoints: bool = True
    _zygote: asyncio.subprocess.Process | None = None
    _reader: asyncio.Task[None] | None = None
    _pids: asyncio.Queue[int] = field(default_factory=asyncio.Queue)
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)
    _restarts: set[asyncio.Task[None]] = field(default_factory=set)
    _running: bool = True

    async def start(self, operators: int = 2, workers: int = 4) -> None:
        env = {**os.environ, "CHAOS_MUTANT": self.mutant or ""}
        self._zygote = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "e2e.chaos.zygote",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=env,
        )  # fmt: skip
        self._reader = asyncio.create_task(self._read())
        ports = [_free_port() for _ in range(operators)]
        common = {
            "CHAOS_DSN": self.dsn,
            "NOETL_TOKEN": "a-token-of-the-campaign",
            "NOETL_URL": ",".join(f"http://127.0.0.1:{port}" for port in ports),
            "NOETL_LEASE_TTL_S": str(LEASE_TTL_S),
            "NOETL_SHARD_TTL_S": str(SHARD_TTL_S),
            "NOETL_SWEEP_INTERVAL_S": "0.3",
            "NOETL_LONG_POLL_S": "2",
            "NOETL_CAPACITY": "8",
            "NOETL_KEYCHAIN": str(self.folder / "keychain"),
            "NOETL_SCRATCH": str(self.folder / "scratch"),
        }
        for number, port in enumerate(ports):
            env = {**common, "CHAOS_PORT": str(port)}
            self.members.append(Member("operator", f"operator-{number}", env))
        for number in range(workers):
            self.members.append(Member("worker", f"worker-{number}", dict(common)))
        for member in self.members:
            await self._spawn(member)

    async def _read(self) -> None:
        assert self._zygote is not None
        assert self._zygote.stdout is not None
        async for line in self._zygote.stdout:
            said = json.loads(line)
            if "pid" in said:
                self._pids.put_nowait(said["pid"])
            else:
                self._gone(said["gone"])
        self._pids.put_nowait(0)

    def _gone(self, pid: int) -> None:
        for member in self.members:
            if member.pid == pid:
                self.counts[f"{member.kind}s ended"] += 1
                member.pid = None
                if self._running:
                    task = asyncio.create_task(self._spawn(member))
                    self._restarts.add(task)
                    task.add_done_callback(self._restarts.discard)

    async def _spawn(self, member: Member) -> None:
        assert self._zygote is not None
        assert self._zygote.stdin is not None
        self.counts["started"] += 1
        env = dict(member.env)
        # Each process has a name of its own, as each Pod has.
        env["NOETL_WORKER"] = f"{member.name}-{self.counts['started']}"
        chances = FAILPOINTS if self.failpoints else {}
        env["CHAOS_FAILPOINTS"] = ",".join(f"{name}={p}" for name, p in chances.items())
        log = str(self.folder / f"{member.name}.log")
        async with self._one:
            order = {"kind": member.kind, "env": env, "log": log}
            self._zygote.stdin.write(json.dumps(order).encode() + b"\n")
            await self._zygote.stdin.drain()
            pid = await self._pids.get()
            if not pid:
                raise RuntimeError("the campaign's processes cannot be started")
            member.pid, member.is_stopped = pid, False

    def kill(self, member: Member) -> None:
        if member.pid is not None:
            self.counts["SIGKILL"] += 1
            _signal(member.pid, signal.SIGKILL)

    def stop_for(self, member: Member, seconds: float) -> None:
        """Stopped, perhaps beyond its lease; then it goes on as if nothing had happened."""
        if member.pid is None or member.is_stopped:
            return
        self.counts["SIGSTOP"] += 1
        member.is_stopped = True
        _signal(member.pid, signal.SIGSTOP)
        member.resuming = asyncio.create_task(self._go_on(member, member.pid, seconds))

    async def _go_on(self, member: Member, pid: int, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if member.pid == pid:
            member.is_stopped = False
            _signal(pid, signal.SIGCONT)

    async def crash_postgres(self) -> None:
        """Ended without a shutdown, then started again: it recovers from its log."""
        self.counts["Postgres crashes"] += 1
        await asyncio.to_thread(self.server.kill)
        await asyncio.to_thread(self.server.start)

    async def calm_down(self) -> None:
        """No faults from here on: everyone starts afresh."""
        self.failpoints = False
        for member in self.members:
            if member.pid is not None:
                _signal(member.pid, signal.SIGKILL)

    async def end(self) -> None:
        self._running = False
        if self._zygote is not None and self._zygote.stdin is not None:
            self._zygote.stdin.close()
            await self._zygote.wait()
        if self._reader is not None:
            self._reader.cancel()
        for member in self.members:
            if member.resuming is not None:
                member.resuming.cancel()


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
