"""What the HTTP server of the conformance cases answers.

`/status/CODE`, `/flaky/KEY/TIMES/CODE` (that status so many times, then 200), `/pages/NAME`
(three pages), `/echo`, `/raw/KIND` (bodies that are awkward to keep), `/slow`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter

from aiohttp import web

_SEEN: Counter[str] = Counter()
_RAW = {
    "surrogate": b'{"text": "a\\ud800b"}',
    "nul": b'{"text": "a\\u0000b"}',
    "huge": b'{"number": 123456789012345678901234567890}',
    "nan": b'{"number": NaN}',
    "deep": b"[" * 3000 + b"]" * 3000,
    "broken": b"{",
    "big": json.dumps({"rows": ["x" * 100] * 2000}).encode(),
}


async def answer(request: web.BaseRequest) -> web.StreamResponse:
    parts = request.path.strip("/").split("/")
    match parts:
        case ["status", code]:
            return web.json_response({"code": int(code)}, status=int(code))
        case ["flaky", key, times, code]:
            return _flaky(key, int(times), int(code), request.query.get("after"))
        case ["pages", name]:
            return _page(name, int(request.query.get("page", "1")))
        case ["raw", kind]:
            return web.Response(body=_RAW[kind], content_type="application/json")
        case ["data"]:
            return web.json_response({"n": 20})
        case ["slow"]:
            await asyncio.sleep(30)
            return web.Response()
        case _:
            return await _echo(request)


def _flaky(key: str, times: int, code: int, after: str | None) -> web.Response:
    _SEEN[key] += 1
    if _SEEN[key] > times:
        return web.json_response({"tries": _SEEN[key]})
    headers = {"Retry-After": after} if after else {}
    return web.json_response({"error": "busy"}, status=code, headers=headers)


def _page(name: str, page: int) -> web.Response:
    """Three pages; a name that is missing has none, a busy one says so once."""
    if name == "missing":
        return web.json_response({"error": "not found"}, status=404)
    seen = f"{name}/{page}"
    _SEEN[seen] += 1
    if name == "busy" and page == 1 and _SEEN[seen] == 1:
        return web.json_response({"error": "busy"}, status=429, headers={"Retry-After": "0"})
    more = page < 3
    return web.json_response(
        {
            "data": [{"id": page * 10 + n, "name": name} for n in range(2)],
            "paging": {"hasMore": more, "page": page},
        }
    )


async def _echo(request: web.BaseRequest) -> web.Response:
    text = (await request.read()).decode()
    return web.json_response(
        {
            "method": request.method,
            "path": request.path,
            "query": dict(request.query),
            "headers": {k.lower(): v for k, v in request.headers.items()},
            "body": text,
        }
    )
