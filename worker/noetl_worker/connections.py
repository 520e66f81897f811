"""HTTP/1.1 to the operator, and nothing else: a post costs a fifth of what a full client takes.

Connections are kept and used again. Whatever goes wrong closes the connection and is raised as
`Broken`: every call of the protocol may be made twice, so the caller simply tries again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

MAX_HEAD = 64 * 1024
MAX_IDLE = 8
CONNECT_S = 5.0


class Broken(Exception):
    """No whole answer came."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    content: bytes


@dataclass(slots=True, eq=False)
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def is_usable(self) -> bool:
        return not (self.reader.at_eof() or self.writer.is_closing())


@dataclass(slots=True, eq=False)
class Connections:
    """Kept connections by address."""

    _idle: dict[str, list[_Connection]] = field(default_factory=dict)

    async def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.writer.close()
        self._idle.clear()

    async def request(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        content: bytes | AsyncIterator[bytes],
        seconds: float,
    ) -> Answer:
        """Send a request and read its answer; `headers` name the length of what is streamed."""
        address = urlsplit(url)
        place = f"{address.scheme}://{address.netloc}"
        try:
            connection = await self._connected(place)
            try:
                async with asyncio.timeout(seconds):
                    target = (method, url[len(place) :], address.netloc)
                    await _send(connection, target, headers, content)
                    answer, is_kept = await _answer(connection.reader)
            except BaseException:
                connection.writer.close()
                raise
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise Broken(type(error).__name__) from None
        idle = self._idle.setdefault(place, [])
        if is_kept and len(idle) < MAX_IDLE:
            idle.append(connection)
        else:
            connection.writer.close()
        return answer

    async def _connected(self, place: str) -> _Connection:
        idle = self._idle.get(place, [])
        while idle:
            connection = idle.pop()
            if connection.is_usable:
                return connection
            connection.writer.close()
        address = urlsplit(place)
        is_secure = address.scheme == "https"
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(
                address.hostname,
                address.port or (443 if is_secure else 80),
                ssl=True if is_secure else None,
                limit=MAX_HEAD,
            )
        return _Connection(reader, writer)


async def _send(
    connection: _Connection,
    target: tuple[str, str, str],
    headers: dict[str, str],
    content: bytes | AsyncIterator[bytes],
) -> None:
    method, path, host = target
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if isinstance(content, bytes):
        lines.append(f"Content-Length: {len(content)}")
    head = "\r\n".join(lines)
    if head.count("\r\n") != len(lines) - 1 or "\n" in head.replace("\r\n", ""):
        raise ValueError("a header holds a line break")
    start = f"{head}\r\n\r\n".encode("latin-1", "replace")
    if isinstance(content, bytes):
        connection.writer.write(start + content)
        await connection.writer.drain()
        return
    connection.writer.write(start)
    # Whoever is refused hears of it while the rest is still on its way, and stops reading.
    with contextlib.suppress(ConnectionError):
        async for piece in content:
            connection.writer.write(piece)
            await connection.writer.drain()


async def _answer(reader: asyncio.StreamReader) -> tuple[Answer, bool]:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("this is not HTTP")
    status = int(rest[:3])
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
    }
    if 100 <= status < 200:
        return await _answer(reader)
    is_kept = headers.get("connection", "").lower() != "close" and version == "HTTP/1.1"
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Answer(status, await _chunks(reader)), is_kept
    if "content-length" in headers:
        return Answer(status, await reader.readexactly(int(headers["content-length"]))), is_kept
    return Answer(status, await reader.read()), False


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    pieces: list[bytes] = []
    while True:
        size = int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16)
        piece = await reader.readexactly(size + 2)
        if not size:
            return b"".join(pieces)
        pieces.append(piece[:-2])
