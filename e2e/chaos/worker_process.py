"""One worker of the campaign: the real one, whose `noop` leaves a trace of every call."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import uuid
from typing import Any, ClassVar

import asyncpg
from pydantic import BaseModel

from e2e.chaos.failpoints import around, happens, reach
from noetl_core.outcomes import Outcome
from noetl_core.values import Value
from noetl_core.wire.batches import ReportsAnswer
from noetl_worker.app import Worker
from noetl_worker.client import ClientError, OperatorClient
from noetl_worker.settings import WorkerSettings
from noetl_worker.tools.base import ToolContext
from noetl_worker.tools.noop import NoopArgs

_INSERT = """
INSERT INTO effect (call, execution_id, key, attempt) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
"""


class EffectTool:
    """A `noop` that writes down that it was called; a call is written down once."""

    kind: ClassVar[str] = "noop"
    Args: ClassVar[type[BaseModel]] = NoopArgs

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: Any = None
        self._one = asyncio.Lock()

    async def run(self, args: NoopArgs, ctx: ToolContext) -> Outcome:
        await asyncio.sleep(random.choice((0, 0, 0.01, 0.05)))
        reach("effect.before")
        execution = ctx.call.scope["execution"]
        assert isinstance(execution, dict)
        await self._write(uuid.uuid4(), execution["id"], ctx.idempotency_key, ctx.call.attempt)
        reach("effect.after")
        return Outcome(result=ctx.call.inputs.get("result"))

    async def _write(self, *values: object) -> None:
        while True:
            try:
                async with self._one:
                    if self._connection is None or self._connection.is_closed():
                        self._connection = await asyncpg.connect(self._dsn, timeout=5)
                    await self._connection.execute(_INSERT, *values)
                return
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
                await asyncio.sleep(0.1)


class TwiceClient(OperatorClient):
    """Posts some reports twice, as a network may."""

    async def reports(self, message: dict[str, Value]) -> ReportsAnswer:
        if happens("report.twice"):
            with contextlib.suppress(ClientError):
                await super().reports({**message, "capacity": 0})
        reach("report.before")
        answer = await super().reports(message)
        reach("report.after")
        if happens("report.late"):
            with contextlib.suppress(ClientError):
                await super().reports({**message, "capacity": 0})
        return answer


async def run() -> None:
    settings = WorkerSettings.from_environment(os.environ)
    client = TwiceClient(settings)
    client.lease = around(client.lease, None, "leased")  # type: ignore[method-assign, assignment]
    worker = Worker(settings, client)
    worker._registry._tools["noop"] = EffectTool(os.environ["CHAOS_DSN"])
    await worker.run()


def main() -> None:
    import uvloop

    uvloop.run(run())
