"""The ingest over HTTP: sizes first, then who calls, then what is said.

Every answer that is no success has the body of a `Refusal`. A worker tries again only where it says
so: the database was away, or this replica does not lead.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import orjson
from aiohttp import web

from noetl_core.values import Value
from noetl_core.wire import (
    CAPABILITY_HEADER,
    CHILDREN,
    EPOCH_HEADER,
    HAND_BACK,
    HEARTBEAT,
    LEASE,
    LEASE_HEADER,
    PROTOCOL,
    PROTOCOL_HEADER,
    REPORTS,
    RESULTS,
    ChildRequest,
    HandBack,
    Heartbeat,
    Held,
    LeaseRequest,
    Malformed,
    Refusal,
    Reports,
    WireError,
    check_header,
    checked_digest,
)
from noetl_operator.ingest.peers import Authenticator, Peer
from noetl_operator.ingest.service import Forbidden, Ingest
from noetl_operator.live import UnknownExecution
from noetl_operator.settings import OperatorSettings
from noetl_operator.store import port

_log = logging.getLogger(__name__)

T = TypeVar("T")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
PEER = web.RequestKey("peer", Peer)


class IngestWeb:
    """Routes, limits and refusals around an `Ingest`."""

    def __init__(
        self, ingest: Ingest, authenticator: Authenticator, settings: OperatorSettings
    ) -> None:
        self._ingest, self._authenticator, self._settings = ingest, authenticator, settings

    def application(self) -> web.Application:
        largest = max(self._settings.max_report_bytes, self._settings.max_result_bytes)
        app = web.Application(middlewares=[self._guard], client_max_size=largest)
        app.add_routes(
            [
                web.post(LEASE, self._lease),
                web.post(REPORTS, self._reports),
                web.post(HEARTBEAT, self._heartbeat),
                web.post(HAND_BACK, self._hand_back),
                web.post(CHILDREN, self._child),
                web.put(RESULTS, self._put_result),
                web.get(RESULTS, self._get_result),
            ]
        )
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Size, identity, version; then the handler, with its failures in words."""
        try:
            self._check_size(request)
            request[PEER] = await self._identify(request)
            check_header(request.headers.get(PROTOCOL_HEADER), "the worker")
            return await handler(request)
        except _Refused as refused:
            return _refusal(refused.status, refused.refusal)
        except WireError as error:
            return _refusal(400, Refusal.of_error(error))
        except Forbidden as error:
            return _refused(403, "forbidden", str(error))
        except UnknownExecution:
            return _refused(404, "unknown", "there is no such execution")
        except port.Corrupt as error:
            return _refused(422, "corrupt", str(error))
        except (port.NotLeader, port.Unavailable) as error:
            answer = _refused(503, "unavailable", str(error), retry=True)
            # Behind a Service the next connection may reach the replica that leads.
            answer.force_close()
            return answer
        except web.HTTPException as error:
            return _refused(error.status, "http", error.reason)
        except Exception:
            _log.exception("a request failed", extra={"path": request.path})
            return _refused(500, "internal", "the operator failed; its log says how", retry=True)

    def _check_size(self, request: web.Request) -> None:
        is_result = request.path.startswith(RESULTS.partition("{")[0])
        settings = self._settings
        limit = settings.max_result_bytes if is_result else settings.max_report_bytes
        if (request.content_length or 0) > limit:
            raise _too_large(limit)

    async def _identify(self, request: web.Request) -> Peer:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        peer = await self._authenticator.identify(token) if scheme == "Bearer" else None
        if peer is None:
            raise _Refused(401, Refusal(code="unauthenticated", message="the token is not known"))
        return peer

    async def _data(self, request: web.Request) -> Value:
        try:
            found: Value = orjson.loads(await _body(request, self._settings.max_report_bytes))
        except orjson.JSONDecodeError as error:
            raise Malformed(f"not JSON: {error.msg}") from None
        return found

    def _check_pool(self, request: web.Request, pool: str, worker: str) -> None:
        if not request[PEER].may_serve(pool):
            raise Forbidden(f"this worker may not serve the pool {pool}")
        if not request[PEER].is_called(worker):
            raise Forbidden(f"this worker is not {worker}")

    async def _lease(self, request: web.Request) -> web.Response:
        message = LeaseRequest.of(await self._data(request))
        self._check_pool(request, message.pool, message.worker)
        return _answer((await self._ingest.lease(message)).as_json())

    async def _reports(self, request: web.Request) -> web.Response:
        message = Reports.of(await self._data(request))
        self._check_pool(request, message.pool, message.worker)
        return _answer((await self._ingest.reports(message)).as_json())

    async def _heartbeat(self, request: web.Request) -> web.Response:
        message = Heartbeat.of(await self._data(request))
        return _answer((await self._ingest.heartbeat(message)).as_json())

    async def _hand_back(self, request: web.Request) -> web.Response:
        await self._ingest.hand_back(HandBack.of(await self._data(request)))
        return _answer({})

    async def _child(self, request: web.Request) -> web.Response:
        message = ChildRequest.of(await self._data(request))
        held = Held(
            lease_id=request.match_info["lease"],
            epoch=message.epoch,
            capability=request.headers.get(CAPABILITY_HEADER, ""),
        )
        return _answer((await self._ingest.child(held, message)).as_json())

    async def _put_result(self, request: web.Request) -> web.Response:
        digest = checked_digest(request.match_info["digest"])
        content = await _body(request, self._settings.max_result_bytes)
        await self._ingest.put_result(_held(request), digest, content)
        return _answer({})

    async def _get_result(self, request: web.Request) -> web.Response:
        digest = checked_digest(request.match_info["digest"])
        content = await self._ingest.get_result(_held(request), digest)
        if content is None:
            raise _Refused(404, Refusal(code="unknown", message="there is no such result"))
        return web.Response(body=content, headers=_HEADERS)


@contextlib.asynccontextmanager
async def serving(application: web.Application, host: str, port: int) -> AsyncIterator[int]:
    """Serve it; yields the port. A caller that hangs up ends its request: nobody leases for it."""
    runner = web.AppRunner(
        application, access_log=None, handler_cancellation=True, shutdown_timeout=2.0
    )
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    await site.start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


_HEADERS = {PROTOCOL_HEADER: str(PROTOCOL)}


class _Refused(Exception):
    def __init__(self, status: int, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.status, self.refusal = status, refusal


def _held(request: web.Request) -> Held:
    """The lease in whose name a result is stored or read."""
    epoch = request.headers.get(EPOCH_HEADER, "")
    return Held(
        lease_id=request.headers.get(LEASE_HEADER, ""),
        epoch=int(epoch) if epoch.isascii() and epoch.isdigit() else 0,
        capability=request.headers.get(CAPABILITY_HEADER, ""),
    )


async def _body(request: web.Request, limit: int) -> bytes:
    """What was sent; a caller need not say beforehand how much it is."""
    pieces: list[bytes] = []
    size = 0
    async for piece in request.content.iter_any():
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
        pieces.append(piece)
    return b"".join(pieces)


def _too_large(limit: int) -> _Refused:
    return _Refused(413, Refusal(code="too_large", message=f"more than {limit:,} bytes"))


def _answer(data: Value) -> web.Response:
    return web.Response(body=orjson.dumps(data), content_type="application/json", headers=_HEADERS)


def _refusal(status: int, refusal: Refusal) -> web.Response:
    return web.Response(
        status=status,
        body=orjson.dumps(refusal.as_json()),
        content_type="application/json",
        headers=_HEADERS,
    )


def _refused(status: int, code: str, message: str, *, retry: bool = False) -> web.Response:
    return _refusal(status, Refusal(code=code, message=message, retry=retry))
