"""The worker's ends of a child's pipes: read as data comes, without a thread or a task each."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
from collections.abc import Callable
from types import TracebackType
from typing import Self

CHUNK = 64 * 1024


class Pipe:
    """A pipe whose write end somebody else gets; `over` is done when all of those are closed."""

    def __init__(self) -> None:
        self.content = bytearray()

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = self._loop.create_future()
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._loop.add_reader(self._read_end, self._readable)
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.close_write_end()
        if self._read_end >= 0:
            self._end()
        self.over.cancel()

    def close_write_end(self) -> None:
        """Our copy of it, once it was handed over."""
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    def _readable(self) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._read_end, CHUNK)
            if data:
                self.take(data)
            else:
                self._end()

    def _end(self) -> None:
        self._loop.remove_reader(self._read_end)
        os.close(self._read_end)
        self._read_end = -1
        if not self.over.done():
            self.over.set_result(None)

    def take(self, data: bytes) -> None:
        self.content += data


class TextPipe(Pipe):
    """A pipe that hands on text as it comes."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._write = write
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self, data: bytes) -> None:
        if text := self._decoder.decode(data):
            self._write(text)
