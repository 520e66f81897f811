"""Large results, kept by the operator and read from it (rules H1, H2)."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from pathlib import Path

import orjson

from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.results import JSON, reference
from noetl_core.values import Value
from noetl_core.wire import Held, Malformed
from noetl_worker.client import PAUSES_S, ClientError, OperatorClient, Refused, file_size

TRIES = 12
"""How often a result is sent or asked for while the operator does not answer."""
_HEAD = 4_096
_PIECE = 1024 * 1024
KNOWN = 1_000
"""Digests of results that the operator is known to have."""


class LeaseResults:
    """Results in the name of one lease."""

    def __init__(self, client: OperatorClient, held: Held) -> None:
        self._client, self._held = client, held
        self._known: OrderedDict[str, None] = OrderedDict()

    async def put(self, content: bytes, media_type: str) -> dict[str, Value]:
        """Store content and answer its reference."""
        ref = reference(content, media_type=media_type)
        error = await self.keep(ref, content)
        if error is not None:
            raise ResultLost(error)
        return ref

    async def put_file(self, path: Path, media_type: str) -> dict[str, Value]:
        """The same with what a file holds, without reading it into memory as a whole."""
        digest = hashlib.sha256()
        with path.open("rb") as file:
            head = file.read(_HEAD)
            digest.update(head)
            while piece := file.read(_PIECE):
                digest.update(piece)
        ref = reference(head, media_type=media_type)
        key = digest.hexdigest()
        ref |= {"key": key, "checksum": f"sha256:{key}", "size": file_size(path)}
        error = await self.keep(ref, path)
        if error is not None:
            raise ResultLost(error)
        return ref

    async def keep(self, ref: dict[str, Value], content: bytes | Path) -> TaskError | None:
        """Store content under its reference; None when it is kept."""
        digest = str(ref["key"])
        if digest in self._known:
            return None
        for attempt in range(TRIES):
            try:
                await self._client.put_result(self._held, digest, content)
            except Refused as refused:
                return _error(ErrorKind.LIMIT, f"the result was not stored: {refused}")
            except ClientError:
                await asyncio.sleep(PAUSES_S[min(attempt, len(PAUSES_S) - 1)])
            else:
                self._known[digest] = None
                if len(self._known) > KNOWN:
                    self._known.popitem(last=False)
                return None
        return _error(ErrorKind.CONNECTION, "the result was not stored: the operator is away")

    async def fetch(self, ref: dict[str, Value]) -> Value | TaskError:
        """The value behind a reference, verified against its checksum."""
        digest = str(ref["key"])
        for attempt in range(TRIES):
            try:
                content = await self._client.get_result(self._held, digest)
            except (Refused, Malformed) as error:
                return _error(ErrorKind.NOT_FOUND, f"the stored result {digest[:12]}: {error}")
            except ClientError:
                await asyncio.sleep(PAUSES_S[min(attempt, len(PAUSES_S) - 1)])
            else:
                return _value(content, str(ref.get("media_type", JSON)))
        return _error(ErrorKind.CONNECTION, "a stored result cannot be read: the operator is away")


class ResultLost(Exception):
    """A tool's large result could not be stored."""

    def __init__(self, error: TaskError) -> None:
        super().__init__(error.message)
        self.error = error


def _value(content: bytes, media_type: str) -> Value:
    if media_type != JSON:
        return content.decode("utf-8", "replace")
    found: Value = orjson.loads(content)
    return found


def _error(kind: ErrorKind, message: str) -> TaskError:
    return TaskError(kind=kind, message=message, code="RESULT", source="results")
