"""What an `http` task takes (rule K34), and the request that it makes of it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

import httpx
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from noetl_core.outcomes import ErrorKind
from noetl_core.values import Value, type_name
from noetl_worker.tools.http_errors import fault

MAX_REDIRECTS = 5
CONNECT_S, READ_S = 10.0, 60.0
_METHOD = re.compile(r"[A-Za-z]{1,20}")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BODIES = ("json", "form", "files", "body")


class HttpArgs(BaseModel):
    """The keys of an `http` task. Their values are looked at when the request is made."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    url: str = Field(min_length=1)
    method: str | None = None
    params: dict[str, object] | None = None
    headers: dict[str, object] | None = None
    json_: object = Field(None, alias="json")
    form: dict[str, object] | None = None
    files: dict[str, object] | None = None
    body: object = None
    auth: str | None = None
    follow_redirects: StrictBool | StrictInt | None = None
    verify: StrictBool | str | None = None

    @property
    def redirects(self) -> int:
        """How many redirects are followed."""
        given = self.follow_redirects
        if given is None or given is True:
            return MAX_REDIRECTS
        return max(0, int(given))


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Rule D9. A number bounds the whole task, which is the driver's part, and each wait in it."""

    connect: float | None
    read: float | None

    @classmethod
    def of(cls, spec: Mapping[str, Value]) -> Timeouts:
        given = spec.get("timeout")
        if isinstance(given, dict):
            return cls(
                _seconds(given.get("connect"), CONNECT_S), _seconds(given.get("read"), READ_S)
            )
        if given is None:
            return cls(CONNECT_S, READ_S)
        seconds = _seconds(given, READ_S)
        return cls(seconds, seconds)


def _seconds(value: Value, default: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else default  # type: ignore[arg-type]  # a number


def retry_statuses(spec: Mapping[str, Value]) -> frozenset[int]:
    given = spec.get("retry_statuses")
    return (
        frozenset(s for s in given if isinstance(s, int))
        if isinstance(given, list)
        else frozenset()
    )


def build(client: httpx.AsyncClient, args: HttpArgs, inputs: Mapping[str, Value]) -> httpx.Request:
    """The request without its credentials; raises `Fault` of kind `schema`."""
    url, user = _url(args.url, inputs.get("params"))
    headers = _headers(inputs.get("headers"))
    if user is not None:
        headers.setdefault("Authorization", basic(*user))
    given = [name for name in _BODIES if inputs.get(name) is not None]
    if len(given) > 1:
        both = " and ".join(f"`{name}`" for name in given)
        raise _wrong(f"a request has one body, not {both}")
    method = _method(args.method)
    if not given:
        return client.build_request(method, url, headers=headers)
    name, value = given[0], inputs[given[0]]
    if name == "files":
        return client.build_request(method, url, headers=headers, files=_files(value))
    content, content_type = _content(name, value)
    headers.setdefault("Content-Type", content_type)
    return client.build_request(method, url, headers=headers, content=content)


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _wrong(message: str) -> Exception:
    return fault(ErrorKind.SCHEMA, "BAD_REQUEST", message)


def _method(given: str | None) -> str:
    method = given or "GET"
    if not _METHOD.fullmatch(method):
        raise _wrong("`method` is no HTTP method")
    return method.upper()


def _url(text: str, params: Value) -> tuple[httpx.URL, tuple[str, str] | None]:
    """The address, and user and password where it names them."""
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, UnicodeError, ValueError):
        raise _wrong("`url` is no address") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise _wrong("`url` must begin with http:// or https:// and name a host")
    if isinstance(params, dict) and params:
        url = url.copy_with(query=_query(url.query.decode("ascii"), params).encode("ascii"))
    if not url.userinfo:
        return url, None
    return url.copy_with(userinfo=b""), (url.username, url.password)


def _query(old: str, params: dict[str, Value]) -> str:
    new = urlencode(_pairs("params", params))
    return "&".join(part for part in (old, new) if part)


def _pairs(key: str, given: dict[str, Value]) -> list[tuple[str, str]]:
    """Names with each of their values; null is left out."""
    pairs = []
    for name, value in given.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                pairs.append((name, _plain(f"{key}.{name}", one)))
    return pairs


def _plain(path: str, value: Value) -> str:
    if isinstance(value, dict | list):
        raise _wrong(f"`{path}` must be text or a number, not {type_name(value)}")
    return value if isinstance(value, str) else json.dumps(value)


def _headers(given: Value) -> httpx.Headers:
    headers = httpx.Headers(encoding="utf-8")
    for name, value in given.items() if isinstance(given, dict) else ():
        if value is None:
            continue
        text = _plain(f"headers.{name}", value).strip()
        if not _HEADER_NAME.fullmatch(name) or not _is_header_text(text):
            raise _wrong(f"`headers.{name}` is no header: line breaks and the like are not allowed")
        headers[name] = text
    return headers


def _is_header_text(text: str) -> bool:
    return not any(char in text for char in "\r\n\0")


def _content(name: str, value: Value) -> tuple[bytes, str]:
    if name == "form":
        form = value if isinstance(value, dict) else {}
        return urlencode(_pairs("form", form)).encode(), "application/x-www-form-urlencoded"
    if name == "body" and isinstance(value, str):
        return value.encode("utf-8", "surrogatepass"), "text/plain; charset=utf-8"
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass"), "application/json"


_File = tuple[str | None, bytes, str | None]


def _files(given: Value) -> list[tuple[str, _File]]:
    """The parts of a multipart body (rule K44)."""
    parts: list[tuple[str, _File]] = []
    for name, value in given.items() if isinstance(given, dict) else ():
        if isinstance(value, dict):
            parts.append((name, _file(name, value)))
        elif value is not None:
            parts.append((name, (None, _plain(f"files.{name}", value).encode(), None)))
    return parts


def _file(name: str, given: dict[str, Value]) -> _File:
    unknown = sorted(set(given) - {"filename", "content", "content_type"})
    if unknown or "content" not in given:
        what = f"has no use for `{unknown[0]}`" if unknown else "has no `content`"
        raise _wrong(f"`files.{name}` {what}: it takes filename, content, content_type")
    content = given["content"]
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    filename, media_type = given.get("filename"), given.get("content_type")
    return (
        _plain(f"files.{name}.filename", filename) if filename is not None else name,
        text.encode("utf-8", "surrogatepass"),
        _plain(f"files.{name}.content_type", media_type) if media_type is not None else None,
    )
