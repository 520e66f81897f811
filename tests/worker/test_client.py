"""The protocol's client over real sockets: answers of every shape, and none at all."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from noetl_core.wire import Held, LeaseRequest
from noetl_worker.client import OperatorClient, Refused, Unreachable
from noetl_worker.settings import WorkerSettings

HELD = Held(lease_id="l", epoch=1, capability="c")
REQUEST = LeaseRequest(worker="w", pool="default", capacity=1, wait_s=0.0)
EMPTY = b'{"protocol":1}'


def plain(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


@contextlib.asynccontextmanager
async def answering(
    *answers: bytes | Callable[[bytes], bytes],
) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that gives these answers in turn; b"" hangs up."""
    left, seen = list(answers), []
    served: list[asyncio.Event] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        over = asyncio.Event()
        served.append(over)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while left:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
                seen.append(head + await reader.readexactly(length))
                answer = left.pop(0)
                found = answer if isinstance(answer, bytes) else answer(seen[-1])
                if not found:
                    break
                writer.write(found)
                await writer.drain()
                if left[:1] == [b""]:
                    break
        writer.close()
        over.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", seen
        for over in served:
            await over.wait()


def client(url: str, **more: object) -> OperatorClient:
    return OperatorClient(WorkerSettings.model_validate({"url": url, "token": "t", **more}))


async def test_a_connection_is_used_again_and_every_call_says_who_and_which_protocol() -> None:
    async with answering(plain(EMPTY), plain(EMPTY)) as (url, seen):
        made = client(url)
        for _ in range(2):
            assert (await made.lease(REQUEST)).commands == ()
        await made.close()
    assert len(seen) == 2
    for request in seen:
        assert b"Authorization: Bearer t\r\n" in request
        assert b"Noetl-Protocol: 1\r\n" in request


async def test_an_answer_may_come_in_chunks_or_end_with_its_connection() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunked += b'5\r\n{"pro\r\n9;x=y\r\ntocol":1}\r\n0\r\n\r\n'
    until_end = b"HTTP/1.0 200 OK\r\n\r\n" + EMPTY
    for answer in (chunked, until_end):
        async with answering(answer, b"") as (url, _):
            made = client(url)
            assert (await made.lease(REQUEST)).commands == ()
            await made.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}",
        b"HTTP/1.1 two\r\n\r\n",
        b"SMTP hello\r\n\r\n",
        plain(b"not json"),
        plain(b'{"protocol": 2}'),
        plain(b"<html>", "502 Bad Gateway"),
        plain(b'{"error":{"code":"unavailable","message":"later","retry":true}}', "503 x"),
    ],
)
async def test_whatever_is_no_whole_answer_is_tried_again(answer: bytes) -> None:
    async with answering(answer, b"") as (url, _):
        made = client(url)
        with pytest.raises(Unreachable):
            await made.lease(REQUEST)
        await made.close()


async def test_a_refusal_stays_one() -> None:
    refusal = b'{"error":{"code":"forbidden","message":"no","retry":false}}'
    async with answering(plain(refusal, "403 Forbidden")) as (url, _):
        made = client(url)
        with pytest.raises(Refused, match="403 forbidden: no"):
            await made.lease(REQUEST)
        await made.close()


async def test_the_next_replica_is_called_when_one_does_not_answer() -> None:
    async with answering(plain(EMPTY), plain(EMPTY)) as (url, seen):
        made = client(f"http://127.0.0.1:1,{url}")
        with pytest.raises(Unreachable):
            await made.lease(REQUEST)
        await made.lease(REQUEST)
        await made.lease(REQUEST)
        await made.close()
    assert len(seen) == 2


async def test_a_token_file_is_read_anew_and_may_be_missing_for_a_moment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    async with answering(plain(EMPTY), plain(EMPTY)) as (url, seen):
        made = client(url, token="", token_file=file)
        with pytest.raises(Unreachable, match="token"):
            await made.lease(REQUEST)
        for token in ("one", "two"):
            file.write_text(f"{token}\n")
            await made.lease(REQUEST)
        await made.close()
    assert [b"Bearer one" in seen[0], b"Bearer two" in seen[1]] == [True, True]


async def test_no_header_can_be_smuggled_in() -> None:
    async with answering(plain(EMPTY)) as (url, seen):
        made = client(url, token="t\r\nX-Evil: 1")
        with pytest.raises(Unreachable):
            await made.lease(REQUEST)
        await made.close()
    assert seen == []


async def test_H2_a_file_is_streamed_and_a_result_is_verified(tmp_path: Path) -> None:
    content = b"x" * 3_000_000
    digest = hashlib.sha256(content).hexdigest()
    path = tmp_path / "large"
    path.write_bytes(content)
    async with answering(plain(b"{}"), plain(content), plain(b"other")) as (url, seen):
        made = client(url)
        await made.put_result(HELD, digest, path)
        assert seen[0].endswith(content)
        assert await made.get_result(HELD, digest) == content
        with pytest.raises(Exception, match=r"digest|checksum|content"):
            await made.get_result(HELD, digest)
        await made.close()
