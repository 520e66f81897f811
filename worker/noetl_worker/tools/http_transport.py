"""Connections that http tasks share: one set per way of verifying, kept by the worker's pools.

HTTP/2 where a server offers it (TLS only, so plain HTTP is never slowed down), proxies from the
environment. Nothing here knows of tasks: cookies and credentials never outlive one.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]  # the stubs lack it

import httpcore
import httpx

from noetl_worker.tools.http_guard import GuardedBackend, check_host

MAX_CONNECTIONS = 200
MAX_IDLE = 50
IDLE_S = 15.0
"""Shorter than most servers wait, so that a reused connection is rarely a dead one."""
UPLOAD_BYTES_PER_S = 64 * 1024
"""A request may take so much longer until its answer begins, by its size."""

Verify = bool | str
_Pool = httpcore.AsyncConnectionPool


class BadVerify(ValueError):
    """`verify` names no usable CA file."""


class Transports:
    """Connection pools by scheme and proxy."""

    def __init__(self, verify: Verify, allow_link_local: bool) -> None:
        self._verify = verify
        self._allow = allow_link_local
        self._backend = GuardedBackend(allow_link_local)
        self._proxies = {k: v for k, v in getproxies_environment().items() if v}
        self._pools: dict[tuple[str, str | None], _Pool] = {}
        self._making = asyncio.Lock()

    async def handle(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the answer's body is still to be read."""
        if not self._allow:
            check_host(request.url.host)
        pool = await self._pool_for(request.url)
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            async with asyncio.timeout(_until_answer(request)):
                answer = await pool.handle_async_request(asked)
        except TimeoutError:
            raise httpcore.ReadTimeout("the answer did not begin in time") from None
        return httpx.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()

    def _proxy_for(self, url: httpx.URL) -> str | None:
        proxy = self._proxies.get(url.scheme) or self._proxies.get("all")
        if proxy is None:
            return None
        netloc = url.netloc.decode("ascii")
        return None if proxy_bypass_environment(netloc, self._proxies) else proxy

    async def _pool_for(self, url: httpx.URL) -> _Pool:
        key = (url.scheme, self._proxy_for(url))
        if key not in self._pools:
            async with self._making:
                if key not in self._pools:
                    self._pools[key] = await self._make(*key)
        return self._pools[key]

    async def _make(self, scheme: str, proxy: str | None) -> _Pool:
        context = None
        if scheme == "https":
            # Reading the list of authorities takes tens of milliseconds.
            context = await asyncio.to_thread(ssl_context, self._verify)
        if proxy is not None:
            return self._proxied(proxy, context)
        return httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_IDLE,
            keepalive_expiry=IDLE_S,
            http2=context is not None,
            network_backend=self._backend,
        )

    def _proxied(self, proxy: str, context: ssl.SSLContext | None) -> _Pool:
        address = httpx.Proxy(proxy if "://" in proxy else f"http://{proxy}")
        return httpcore.AsyncHTTPProxy(
            proxy_url=str(address.url),
            proxy_auth=address.raw_auth,
            ssl_context=context,
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_IDLE,
            keepalive_expiry=IDLE_S,
            http2=context is not None,
            network_backend=self._backend,
        )


class SharedTransport(httpx.AsyncBaseTransport):
    """Lends shared connections to the client of one task, which must not close them."""

    def __init__(self, transports: Transports) -> None:
        self._transports = transports

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._transports.handle(request)


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._answer.aiter_stream():
            yield part

    async def aclose(self) -> None:
        await self._answer.aclose()


def _until_answer(request: httpx.Request) -> float | None:
    """A server that sends headers a byte at a time must not get around the read timeout."""
    timeout = request.extensions.get("timeout", {})
    connect, read = timeout.get("connect"), timeout.get("read")
    if connect is None or read is None:
        return None
    size = request.headers.get("content-length", "0")
    upload = int(size) / UPLOAD_BYTES_PER_S if size.isdigit() else 0.0
    return float(connect + read + upload)


def ssl_context(verify: Verify) -> ssl.SSLContext:
    """How servers are verified; raises `BadVerify`."""
    if isinstance(verify, bool):
        return httpx.create_ssl_context(verify=verify)
    try:
        return ssl.create_default_context(cafile=verify)
    except OSError as error:
        raise BadVerify(f"the CA file cannot be used: {error.strerror or error}") from None


def pool_key(verify: Verify, allow_link_local: bool) -> tuple[object, ...]:
    """What a set of connections is made from; a CA file that changed makes a new one."""
    changed = None
    if isinstance(verify, str):
        try:
            changed = Path(verify).stat().st_mtime_ns
        except OSError as error:
            raise BadVerify(f"the CA file cannot be used: {error.strerror}") from None
    return ("http", verify, changed, allow_link_local)
