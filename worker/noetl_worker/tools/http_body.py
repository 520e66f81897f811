"""The body of an answer: a value where it is JSON or text, a stored result where it is not (D7).

A body is kept in memory up to a limit and goes to a file of the step-run beyond it. It has to come
with at least some speed: a server that sends a byte now and then must not hold a task for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

import httpcore
import httpx

from noetl_core.outcomes import ErrorKind
from noetl_core.values import Value
from noetl_worker.redact_stream import redact_file
from noetl_worker.tools.base import ToolContext
from noetl_worker.tools.http_errors import Fault, fault

T = TypeVar("T")

MIN_BYTES_PER_S = 256
"""A body slower than this over a whole read timeout has stalled."""
THREAD_BYTES = 256 * 1024
"""Beyond this a body is parsed in a thread."""

_TEXT_TYPES = frozenset(
    {
        "application/xml",
        "application/javascript",
        "application/x-javascript",
        "application/x-www-form-urlencoded",
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/sql",
        "application/graphql",
    }
)


class Body:
    """A body that was read to its end."""

    def __init__(self, media_type: str, charset: str | None) -> None:
        self.media_type, self.charset = media_type, charset
        self.size = 0
        self._parts: list[bytes] = []
        self._path: Path | None = None
        self._file: BinaryIO | None = None

    @property
    def is_json(self) -> bool:
        name = self.media_type
        return name in ("application/json", "text/json") or name.endswith("+json")

    @property
    def is_text(self) -> bool:
        name = self.media_type
        return name.startswith("text/") or name.endswith("+xml") or name in _TEXT_TYPES

    def add(self, part: bytes, ctx: ToolContext) -> None:
        self.size += len(part)
        if self.size > ctx.settings.http_max_bytes:
            raise _too_large(ctx.settings.http_max_bytes)
        if self._file is None and self.size > ctx.settings.http_memory_bytes:
            self._path = ctx.scratch / f".http-{uuid.uuid4().hex}"
            self._file = self._path.open("wb")
            self._file.writelines(self._parts)
            self._parts = []
        if self._file is None:
            self._parts.append(part)
        else:
            self._file.write(part)

    def finish(self) -> None:
        if self._file is not None:
            self._file.close()

    def drop(self) -> None:
        """Forget it all, file included."""
        self.finish()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def content(self) -> bytes:
        return b"".join(self._parts) if self._path is None else self._path.read_bytes()

    async def store(self, ctx: ToolContext) -> Value:
        """Keep it as a result of its own, without secrets, and answer the reference."""
        media_type = self.media_type or "application/octet-stream"
        if self._path is None:
            content = await _in_thread(self.size, ctx.redactor.content, self.content())
            return await ctx.results.put(content, media_type)
        await asyncio.to_thread(redact_file, self._path, ctx.redactor)
        return await ctx.results.put_file(self._path, media_type)


@contextlib.contextmanager
def body_of(response: httpx.Response) -> Iterator[Body]:
    """A body to read an answer into; what it wrote is gone afterwards."""
    name, _, _ = response.headers.get("content-type", "").partition(";")
    body = Body(name.strip().lower(), response.charset_encoding)
    try:
        yield body
    finally:
        body.drop()


async def read(
    response: httpx.Response, body: Body, read_s: float | None, ctx: ToolContext
) -> None:
    """Read an answer to its end; raises `Fault` where it is too large."""
    length = response.headers.get("content-length", "")
    if length.isdigit() and int(length) > ctx.settings.http_max_bytes:
        raise _too_large(ctx.settings.http_max_bytes)
    began, count = time.monotonic(), 0
    async for part in response.aiter_bytes():
        body.add(part, ctx)
        count += len(part)
        if read_s is not None and (spent := time.monotonic() - began) > read_s:
            if count < MIN_BYTES_PER_S * spent:
                raise httpcore.ReadTimeout("the body comes too slowly")
            began, count = time.monotonic(), 0
    body.finish()


async def value_of(body: Body, ctx: ToolContext) -> Value:
    """`data` of an answer that is no error; raises `Fault` of kind `parse`."""
    if not body.size:
        return None
    if body.size > ctx.settings.http_value_bytes:
        return await body.store(ctx)
    if body.is_json:
        try:
            return await _in_thread(body.size, parsed, body.content())
        except (ValueError, RecursionError) as error:
            message = f"the answer says it is JSON but is not: {_why(error)}"
            raise fault(ErrorKind.PARSE, "BAD_JSON", message) from None
    text = _text(body)
    return await body.store(ctx) if text is None else text


def error_value(body: Body, limit: int) -> Value:
    """`data` of an answer that is an error: what can be shown of it, never a failure."""
    if not body.size or body.size > limit:
        return None
    if body.is_json:
        try:
            return parsed(body.content())
        except (ValueError, RecursionError):
            return body.content().decode("utf-8", "replace")
    return _text(body)


def _text(body: Body) -> str | None:
    """The body as text, None where it is none. Without a type it is, if it reads as such."""
    if body.is_text or (body.charset and body.media_type):
        try:
            return body.content().decode(body.charset or "utf-8", "replace")
        except LookupError:
            return body.content().decode("utf-8", "replace")
    if body.media_type:
        return None
    try:
        return body.content().decode("utf-8")
    except UnicodeDecodeError:
        return None


def parsed(content: bytes) -> Value:
    """Strict JSON; raises `ValueError`."""
    value: Value = json.loads(content, parse_constant=_no_constant)
    return value


def _no_constant(name: str) -> Value:
    raise ValueError(f"{name} is no JSON")


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno} column {error.colno}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else "it cannot be read"


async def _in_thread(size: int, work: Callable[[bytes], T], content: bytes) -> T:
    return work(content) if size < THREAD_BYTES else await asyncio.to_thread(work, content)


def _too_large(limit: int) -> Fault:
    message = f"the body of the answer is larger than {limit:,} bytes"
    return fault(ErrorKind.LIMIT, "BODY_TOO_LARGE", message)
