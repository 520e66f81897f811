"""Kinds and codes of what may go wrong with an HTTP request (rules D6, D7, K24, K34)."""

from __future__ import annotations

import email.utils
import errno
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import httpcore
import httpx

from noetl_core.outcomes import ErrorKind, TaskError
from noetl_worker.tools.http_guard import UNREACHABLE, AddressRefused, NameUnknown, os_error

_KINDS = {
    401: ErrorKind.AUTH,
    403: ErrorKind.AUTH,
    404: ErrorKind.NOT_FOUND,
    429: ErrorKind.RATE_LIMIT,
}
_TIMEOUTS: tuple[tuple[type[Exception], str, str], ...] = (
    (httpcore.ConnectTimeout, "CONN_TIMEOUT", "no connection in time"),
    (httpcore.ReadTimeout, "READ_TIMEOUT", "no answer in time"),
    (httpcore.WriteTimeout, "WRITE_TIMEOUT", "the request could not be sent in time"),
    (httpcore.PoolTimeout, "POOL_TIMEOUT", "no free connection in time"),
)


class Fault(Exception):
    """A task that ends without an answer to show."""

    def __init__(self, error: TaskError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked, for messages: never with user, password or query."""

    method: str
    address: str

    def __str__(self) -> str:
        return f"{self.method} {self.address}"


def fault(kind: ErrorKind, code: str, message: str) -> Fault:
    return Fault(TaskError(kind=kind, code=code, message=message, source="http"))


def status_error(
    status: int, headers: Mapping[str, str], asked: Asked, said: str | None
) -> TaskError | None:
    """The error of a status; None below 400."""
    if status < 400:
        return None
    kind = _KINDS.get(status, ErrorKind.SERVER_ERROR if status >= 500 else ErrorKind.CLIENT_ERROR)
    message = f"HTTP {status} {_phrase(status)}".rstrip() + f" from {asked}"
    return TaskError(
        kind=kind,
        code=f"HTTP_{status}",
        message=f"{message}: {said}" if said else message,
        source="http",
        http_status=status,
        retry_after=retry_after(headers.get("retry-after"), time.time()),
    )


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def retry_after(header: str | None, now: float) -> float | None:
    """Seconds from now: a header gives them, or a date (rule K21)."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:10])
    try:
        return max(0.0, round(email.utils.parsedate_to_datetime(text).timestamp() - now, 3))
    except (ValueError, OverflowError):
        return None


def network_error(error: Exception, asked: Asked) -> TaskError:
    """The error of a request that got no answer, or not all of it."""
    kind, code, text = _judged(error)
    return TaskError(kind=kind, code=code, message=f"{asked}: {text}", source="http")


def _judged(error: Exception) -> tuple[ErrorKind, str, str]:
    for timeout, code, text in _TIMEOUTS:
        if isinstance(error, timeout):
            return ErrorKind.TIMEOUT, code, text
    if isinstance(error, AddressRefused):
        text = "link-local and metadata addresses are refused (see allow_link_local)"
        return ErrorKind.POLICY, "ADDRESS_REFUSED", text
    if isinstance(error, NameUnknown):
        return ErrorKind.CONNECTION, "DNS_ERROR", str(error)
    if isinstance(error, httpcore.ProxyError):
        return ErrorKind.CONNECTION, "PROXY_ERROR", f"the proxy refused: {error}"
    if isinstance(error, httpcore.LocalProtocolError | httpcore.UnsupportedProtocol):
        return ErrorKind.SCHEMA, "BAD_REQUEST", f"the request is not valid HTTP: {error}"
    if isinstance(error, httpx.DecodingError):
        return ErrorKind.PARSE, "BAD_ENCODING", "the content encoding of the answer is broken"
    return _connection(error)


def _connection(error: Exception) -> tuple[ErrorKind, str, str]:
    cause = os_error(error)
    if isinstance(cause, ssl.SSLError) or "ssl" in str(error).lower():
        reason = getattr(cause, "verify_message", None) or getattr(cause, "reason", None)
        return ErrorKind.CONNECTION, "TLS_ERROR", f"no secure connection: {reason or error}"
    if isinstance(cause, ConnectionRefusedError):
        return ErrorKind.CONNECTION, "CONN_REFUSED", "the connection was refused"
    if cause is not None and cause.errno == errno.ETIMEDOUT:
        return ErrorKind.TIMEOUT, "CONN_TIMEOUT", "no connection in time"
    if cause is not None and cause.errno in UNREACHABLE:
        return ErrorKind.CONNECTION, "CONN_UNREACHABLE", f"not reachable: {cause.strerror}"
    if isinstance(error, httpcore.ConnectError) and not isinstance(cause, ConnectionError):
        return ErrorKind.CONNECTION, "CONN_FAILED", f"no connection: {error}"
    return ErrorKind.CONNECTION, "CONN_RESET", "the connection was closed by the other side"
