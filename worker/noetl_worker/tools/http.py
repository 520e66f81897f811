"""`http`: one request and what came of it (rules D7, K34, K42).

Connections are shared by all tasks of the worker, cookies and credentials by none. A status of 400
and more is an error outcome that still has the answer as its result.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import httpcore
import httpx
from pydantic import BaseModel

from noetl_core.model import KeychainKind
from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.values import Value
from noetl_worker.keychain import Credential, NoToken
from noetl_worker.oauth import Post, Posted, token_error
from noetl_worker.pools import Pools
from noetl_worker.tools import http_args, http_body
from noetl_worker.tools.base import ToolContext, ToolSettings
from noetl_worker.tools.http_args import HttpArgs, Timeouts
from noetl_worker.tools.http_errors import Asked, Fault, fault, network_error, status_error
from noetl_worker.tools.http_guard import AddressRefused
from noetl_worker.tools.http_transport import (
    BadVerify,
    SharedTransport,
    Transports,
    Verify,
    pool_key,
)

AGAIN_S = 0.2
"""Between the two tries of `retry_statuses`, unless the server names a time."""
AGAIN_MAX_S = 5.0
"""A server that wants us to wait longer is left to the task's policy."""
SAID_CHARS = 300
"""How much of the answer an error message shows."""
SHOWN_BYTES = 8 * 1024 * 1024
"""The largest body that an error outcome carries."""

_NETWORK = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    httpx.HTTPError,
    httpx.InvalidURL,
    AddressRefused,
    OSError,
)


class HttpTool:
    """Sends one request."""

    kind: ClassVar[str] = "http"
    Args: ClassVar[type[BaseModel]] = HttpArgs

    async def run(self, args: HttpArgs, ctx: ToolContext) -> Outcome:
        try:
            verify: Verify = True if args.verify is None else args.verify
            key = pool_key(verify, ctx.settings.allow_link_local)
            async with (
                ctx.pools.use(key, _maker(verify, ctx.settings), Transports.aclose) as transports,
                httpx.AsyncClient(transport=SharedTransport(transports), trust_env=False) as client,
            ):
                return await _Exchange(client, args, ctx).run()
        except Fault as found:
            return Outcome(error=found.error)
        except BadVerify as error:
            return Outcome(error=fault(ErrorKind.SCHEMA, "BAD_VERIFY", f"`verify`: {error}").error)


def _maker(verify: Verify, settings: ToolSettings) -> Callable[[], Awaitable[Transports]]:
    async def make() -> Transports:
        return Transports(verify, settings.allow_link_local)

    return make


@dataclass(frozen=True, slots=True)
class _Answer:
    outcome: Outcome
    status: int


class _Exchange:
    """The requests of one task: mostly one; more for redirects, a fresh token, a second try."""

    def __init__(self, client: httpx.AsyncClient, args: HttpArgs, ctx: ToolContext) -> None:
        self._client, self._args, self._ctx = client, args, ctx
        self._timeouts = Timeouts.of(ctx.spec)
        self._credential = self._find_credential()
        self._token: str | None = None
        self._secret_header: str | None = None

    async def run(self) -> Outcome:
        again = http_args.retry_statuses(self._ctx.spec)
        tries, rejected = 1, False
        while True:
            answer = await self._once()
            if answer.status == 401 and self._token is not None and not rejected:
                rejected = True
                await self._fetch_token(self._token)
            elif answer.status in again and tries < 2 and (wait := _pause(answer)) is not None:
                tries += 1
                await asyncio.sleep(wait)
            else:
                return answer.outcome

    def _find_credential(self) -> Credential | None:
        name = self._args.auth
        if name is None:
            return None
        found = self._ctx.keychain.entry(name)
        if found is None:
            raise fault(ErrorKind.SCHEMA, "NO_ENTRY", f"`auth`: the keychain has no entry `{name}`")
        if found.kind in (KeychainKind.SECRET, KeychainKind.POSTGRES):
            header = f'headers: {{Authorization: "Bearer {{{{ keychain.{name}.<key> }}}}"}}'
            message = f"`auth`: {name} is of kind {found.kind}, which says not how to send it"
            raise fault(ErrorKind.SCHEMA, "AUTH_KIND", f"{message}; write a header: {header}")
        return found

    async def _fetch_token(self, rejected: str | None) -> None:
        assert self._credential is not None
        try:
            self._token = await self._ctx.keychain.token(self._credential.name, rejected)
        except NoToken as error:
            raise Fault(replace(token_error(error), source="http")) from None

    async def _sign(self, request: httpx.Request) -> None:
        """Add the credential of `auth`, over a header that says the same."""
        credential = self._credential
        if credential is None:
            return
        fields = credential.fields
        name, value = "Authorization", ""
        match credential.kind:
            case KeychainKind.BEARER:
                value = f"Bearer {fields['token']}"
            case KeychainKind.BASIC:
                value = http_args.basic(fields["username"], fields["password"])
            case KeychainKind.API_KEY:
                name, value = fields.get("header") or "X-API-Key", fields["api_key"]
            case _:
                if self._token is None:
                    await self._fetch_token(None)
                value = f"Bearer {self._token}"
        self._secret_header = name
        try:
            request.headers[name] = value.strip()
        except (UnicodeError, ValueError):
            message = f"`auth`: {credential.name} cannot be sent as a header"
            raise fault(ErrorKind.SCHEMA, "BAD_REQUEST", message) from None

    async def _once(self) -> _Answer:
        """Ask, follow redirects, read the answer."""
        request = http_args.build(self._client, self._args, self._ctx.call.inputs)
        request.extensions["timeout"] = {
            "connect": self._timeouts.connect,
            "read": self._timeouts.read,
            "write": self._timeouts.read,
            "pool": self._timeouts.read,
        }
        await self._sign(request)
        asked = _asked(request)
        started = time.monotonic()
        try:
            response = await self._follow(request)
            try:
                with http_body.body_of(response) as body:
                    await http_body.read(response, body, self._timeouts.read, self._ctx)
                    elapsed = (time.monotonic() - started) * 1000
                    outcome = await self._outcome(response, body, asked, elapsed)
            finally:
                await response.aclose()
        except _NETWORK as error:
            raise Fault(network_error(error, asked)) from None
        return _Answer(outcome, response.status_code)

    async def _follow(self, request: httpx.Request) -> httpx.Response:
        left = self._args.redirects
        while True:
            response = await self._client.send(request, stream=True, auth=None)
            following = response.next_request
            if following is None or self._args.redirects == 0:
                return response
            await response.aclose()
            if left == 0:
                message = f"{_asked(request)}: more than {self._args.redirects} redirects"
                raise fault(ErrorKind.CLIENT_ERROR, "TOO_MANY_REDIRECTS", message)
            left -= 1
            if not _same_place(request.url, following.url):
                await self._disarm(following)
            following.extensions["timeout"] = request.extensions["timeout"]
            request = following

    async def _disarm(self, request: httpx.Request) -> None:
        """Nothing secret goes to another host."""
        redactor = self._ctx.redactor
        secret = {"authorization", "proxy-authorization", "cookie"}
        if self._secret_header is not None:
            secret.add(self._secret_header.lower())
        for name, value in list(request.headers.items()):
            if name.lower() in secret or redactor.text(value) is not value:
                del request.headers[name]
        if redactor.is_idle:
            return
        content = await request.aread()
        if redactor.content(content) is not content:
            message = f"{_asked(request)}: a redirect to another host would send it a secret"
            raise fault(ErrorKind.POLICY, "REDIRECT_REFUSED", message)

    async def _outcome(
        self, response: httpx.Response, body: http_body.Body, asked: Asked, elapsed: float
    ) -> Outcome:
        headers = {name.lower(): value for name, value in response.headers.items()}
        is_error = response.status_code >= 400
        shown: Fault | None = None
        try:
            if is_error:
                data = http_body.error_value(body, SHOWN_BYTES)
            else:
                data = await http_body.value_of(body, self._ctx)
        except Fault as found:
            shown, data = found, http_body.error_value(body, SHOWN_BYTES)
        error = shown.error if shown else None
        if is_error:
            error = status_error(response.status_code, headers, asked, _said(data))
        listed: dict[str, Value] = {**headers}
        return Outcome(
            result={
                "status": response.status_code,
                "headers": listed,
                "data": data,
                "url": str(response.request.url.copy_with(userinfo=b"")),
                "elapsed_ms": round(elapsed, 3),
            },
            error=_with_status(error, response.status_code),
            helpers={"http": {"status": response.status_code, "headers": listed}},
        )


def _with_status(error: TaskError | None, status: int) -> TaskError | None:
    return None if error is None else replace(error, http_status=status)


def _asked(request: httpx.Request) -> Asked:
    address = request.url.copy_with(userinfo=b"", query=None, fragment=None)
    return Asked(request.method, str(address))


def _same_place(old: httpx.URL, new: httpx.URL) -> bool:
    """The same origin, or the same host upgraded to TLS."""
    if old.host != new.host:
        return False
    ports = (old.port or _PORTS.get(old.scheme), new.port or _PORTS.get(new.scheme))
    if old.scheme == new.scheme:
        return ports[0] == ports[1]
    return (old.scheme, new.scheme) == ("http", "https") and ports == (80, 443)


_PORTS = {"http": 80, "https": 443}


def _pause(answer: _Answer) -> float | None:
    """How long to wait before the second try; None: too long to wait here."""
    error = answer.outcome.error
    wait = AGAIN_S if error is None or error.retry_after is None else error.retry_after
    return wait if wait <= AGAIN_MAX_S else None


def _said(data: Value) -> str | None:
    """The words of an error answer, on one line."""
    if isinstance(data, Mapping):
        named = [
            data.get(key) for key in ("message", "error_description", "error", "detail", "title")
        ]
        data = next((text for text in named if isinstance(text, str) and text), str(data))
    if not isinstance(data, str):
        return None
    text = " ".join(data[: 4 * SAID_CHARS].split())
    return text if len(text) <= SAID_CHARS else text[:SAID_CHARS] + "…"


def form_post(pools: Pools, settings: ToolSettings) -> Post:
    """Posts forms for `oauth`, over the connections of http tasks."""

    async def post(
        url: str, form: Mapping[str, str], client_auth: tuple[str, str] | None
    ) -> Posted:
        key = pool_key(True, settings.allow_link_local)
        async with (
            pools.use(key, _maker(True, settings), Transports.aclose) as transports,
            httpx.AsyncClient(transport=SharedTransport(transports), trust_env=False) as client,
        ):
            headers = {"Accept": "application/json"}
            if client_auth is not None:
                headers["Authorization"] = http_args.basic(*client_auth)
            try:
                request = client.build_request("POST", url, data=dict(form), headers=headers)
                asked = _asked(request)
            except (httpx.InvalidURL, TypeError):
                return Posted(0, error=TaskError(kind=ErrorKind.SCHEMA, message="no such address"))
            try:
                response = await client.send(request, auth=None)
                data = http_body.parsed(response.content) if response.content else None
            except ValueError:
                data = None
            except _NETWORK as error:
                return Posted(0, error=network_error(error, asked))
            return Posted(response.status_code, data)

    return post
