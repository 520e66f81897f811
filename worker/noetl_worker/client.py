"""The protocol as a client: one method per call, JSON in and out.

ClientError
├── Unreachable     no answer, or one that says to try again
└── Refused         an answer that will stay the same
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import orjson

from noetl_core.values import Value
from noetl_core.wire import (
    CAPABILITY_HEADER,
    EPOCH_HEADER,
    HAND_BACK,
    HEARTBEAT,
    LEASE,
    LEASE_HEADER,
    PROTOCOL,
    PROTOCOL_HEADER,
    REPORTS,
    ChildAnswer,
    ChildRequest,
    HandBack,
    Heartbeat,
    HeartbeatAnswer,
    Held,
    LeaseAnswer,
    LeaseRequest,
    Malformed,
    Refusal,
    ReportsAnswer,
    WireError,
    check_content,
    children_of,
    result_at,
)
from noetl_worker.connections import Answer, Broken, Connections
from noetl_worker.settings import WorkerSettings

T = TypeVar("T")

PIECE_BYTES = 1024 * 1024
SLOWEST_BYTES = 1024 * 1024
"""What a connection moves in a second, at least."""
RESULT_S = 300.0
"""How much longer a large result may take."""
ANSWER_S = 30.0
"""How long an answer may take, beyond the time a long poll waits by itself."""
PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Between tries of a call that failed; the last one repeats."""


class ClientError(Exception):
    """A call to the operator did not succeed."""


class Unreachable(ClientError):
    """No answer, or one that says to try again."""


class Refused(ClientError):
    """The operator will not do this."""

    def __init__(self, status: int, refusal: Refusal) -> None:
        super().__init__(f"{status} {refusal.code}: {refusal.message}")
        self.status, self.refusal = status, refusal


class OperatorClient:
    """Calls the ingest in the name of one worker."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._addresses = settings.addresses
        self._at = 0
        self._connections = Connections()

    async def close(self) -> None:
        await self._connections.close()

    async def lease(self, request: LeaseRequest) -> LeaseAnswer:
        data = await self._post(LEASE, request.as_json(), wait_s=request.wait_s)
        return _read(LeaseAnswer.of, data)

    async def reports(self, message: dict[str, Value]) -> ReportsAnswer:
        """`message` is a `Reports` as JSON, parts of which may be written already."""
        return _read(ReportsAnswer.of, await self._post(REPORTS, message))

    async def heartbeat(self, request: Heartbeat) -> HeartbeatAnswer:
        return _read(HeartbeatAnswer.of, await self._post(HEARTBEAT, request.as_json()))

    async def hand_back(self, request: HandBack) -> None:
        await self._post(HAND_BACK, request.as_json())

    async def child(self, held: Held, request: ChildRequest) -> ChildAnswer:
        headers = {CAPABILITY_HEADER: held.capability}
        data = await self._post(children_of(held.lease_id), request.as_json(), headers)
        return _read(ChildAnswer.of, data)

    async def put_result(self, held: Held, digest: str, content: bytes | Path) -> None:
        headers = _named(held)
        if isinstance(content, bytes):
            await self._send("PUT", result_at(digest), content, headers, RESULT_S)
            return
        size = file_size(content)
        headers["Content-Length"] = str(size)
        slowest = size / SLOWEST_BYTES
        await self._send("PUT", result_at(digest), _pieces(content), headers, slowest)

    async def get_result(self, held: Held, digest: str) -> bytes:
        answer = await self._send("GET", result_at(digest), b"", _named(held), RESULT_S)
        check_content(digest, answer.content)
        return answer.content

    async def _post(
        self,
        path: str,
        message: dict[str, Value],
        headers: dict[str, str] | None = None,
        wait_s: float = 0.0,
    ) -> Value:
        answer = await self._send("POST", path, orjson.dumps(message), headers, wait_s)
        try:
            found: Value = orjson.loads(answer.content)
        except orjson.JSONDecodeError:
            raise Unreachable("the answer is not JSON: this is not the operator") from None
        return found

    async def _send(
        self,
        method: str,
        path: str,
        content: bytes | AsyncIterator[bytes],
        headers: dict[str, str] | None = None,
        wait_s: float = 0.0,
    ) -> Answer:
        own = {
            "Authorization": f"Bearer {self._token()}",
            "Content-Type": "application/json",
            PROTOCOL_HEADER: str(PROTOCOL),
            **(headers or {}),
        }
        at = self._at
        url = self._addresses[at] + path
        try:
            answer = await self._connections.request(method, url, own, content, ANSWER_S + wait_s)
        except Broken as error:
            self._turn_from(at)
            raise Unreachable(str(error)) from None
        if 200 <= answer.status < 300:
            return answer
        refused = _refused(answer.status, answer.content)
        if isinstance(refused, Unreachable):
            self._turn_from(at)
        raise refused

    def _turn_from(self, at: int) -> None:
        """Call another replica from now on, unless somebody has turned already."""
        if self._at == at:
            self._at = (at + 1) % len(self._addresses)

    def _token(self) -> str:
        try:
            return self._settings.current_token()
        except OSError as error:
            raise Unreachable(f"the token cannot be read: {type(error).__name__}") from None


def _read(read: Callable[[Value], T], data: Value) -> T:
    try:
        return read(data)
    except WireError as error:
        raise Unreachable(f"the answer is not understood: {error}") from None


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def _named(held: Held) -> dict[str, str]:
    return {
        CAPABILITY_HEADER: held.capability,
        LEASE_HEADER: held.lease_id,
        EPOCH_HEADER: str(held.epoch),
    }


def _refused(status: int, content: bytes) -> ClientError:
    try:
        refusal = Refusal.of(orjson.loads(content))
    except (orjson.JSONDecodeError, Malformed):
        return Unreachable(f"status {status}")
    return Unreachable(refusal.message) if refusal.retry else Refused(status, refusal)


def file_size(path: Path) -> int:
    return path.stat().st_size
