"""`/livez` and `/readyz` for the kubelet, on a port of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

Check = Callable[[], Awaitable[bool]]

TIMEOUT_S = 3.0
"""How long a check may take before it counts as failed."""


def application(live: Mapping[str, Check], ready: Mapping[str, Check]) -> web.Application:
    """Each path answers 200 when all its checks say yes, and names those that do not."""
    app = web.Application()
    app.add_routes([web.get("/livez", _answer(live)), web.get("/readyz", _answer(ready))])
    return app


def _answer(checks: Mapping[str, Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        failed = [name for name, check in checks.items() if not await _passes(check)]
        text = f"failed: {', '.join(failed)}\n" if failed else "ok\n"
        return web.Response(status=503 if failed else 200, text=text)

    return answer


async def _passes(check: Check) -> bool:
    try:
        return await asyncio.wait_for(check(), TIMEOUT_S)
    except Exception:
        return False
