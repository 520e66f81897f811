"""The processes that run DuckDB, kept ready and used again (see `duckdb_host`).

A task has one to itself. One whose task was cancelled, or that does not answer as it should, is
killed; the others wait for the next task and end when the worker has no use for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import struct
import sys
from collections.abc import AsyncIterator
from typing import Any

MAX_IDLE = 4
"""Hosts that wait for a task."""
MODULE = "noetl_worker.tools.duckdb_host"
_LENGTH = struct.Struct("!Q")
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")
"""What a host gets of the worker's environment: nothing that opens anything."""


class HostEnded(Exception):
    """The process is gone in the middle of a request."""


class Host:
    """One process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @staticmethod
    async def start() -> Host:
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", MODULE),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",
            env={**environment, "HOME": "/nonexistent"},
        )
        return Host(process)

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def ask(self, request: Any) -> None:
        assert self._process.stdin is not None
        # In ASCII: a text that is not valid Unicode gets there too, and is refused there.
        content = json.dumps(request, separators=(",", ":")).encode()
        try:
            self._process.stdin.write(_LENGTH.pack(len(content)) + content)
            await self._process.stdin.drain()
        except OSError:
            raise HostEnded from None

    async def answer(self) -> dict[str, Any]:
        """The next frame of the answer; raises `HostEnded`."""
        assert self._process.stdout is not None
        try:
            head = await self._process.stdout.readexactly(_LENGTH.size)
            content = await self._process.stdout.readexactly(_LENGTH.unpack(head)[0])
        except (asyncio.IncompleteReadError, OSError):
            raise HostEnded from None
        # Not orjson, which makes a float of a whole number beyond 64 bits.
        found: dict[str, Any] = json.loads(content)
        return found

    async def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        # Else its pipes would be closed by the garbage collector, with a complaint.
        self._process._transport.close()  # type: ignore[attr-defined]


class Hosts:
    """The hosts of a worker."""

    def __init__(self) -> None:
        self._idle: list[Host] = []

    @contextlib.asynccontextmanager
    async def host(self) -> AsyncIterator[Host]:
        host = await self._taken()
        try:
            yield host
        except BaseException:
            await asyncio.shield(asyncio.ensure_future(host.kill()))
            raise
        if len(self._idle) < MAX_IDLE and host.is_alive:
            self._idle.append(host)
        else:
            await host.kill()

    async def _taken(self) -> Host:
        while self._idle:
            host = self._idle.pop()
            if host.is_alive:
                return host
            await host.kill()
        return await Host.start()

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for host in idle:
            await host.kill()
