"""A control plane with its ingest on a real port, and a caller that speaks the protocol."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from noetl_core.engine.triggers import CreateChild
from noetl_core.load import digest, dump, load
from noetl_core.wire import PROTOCOL, PROTOCOL_HEADER
from noetl_operator.control import ControlPlane, control_plane
from noetl_operator.ingest.peers import SharedToken
from noetl_operator.ingest.web import IngestWeb, serving
from noetl_operator.settings import OperatorSettings
from noetl_operator.starting import new_execution_id
from noetl_operator.store.port import NewExecution
from noetl_operator.store.postgres import PostgresStore

TOKEN = "the-token"

CHAIN = """
metadata: {name: chain}
workflow:
  - step: one
    tool:
      - name: t
        kind: noop
        spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {seen: 1}}}}]}}
    next: {arcs: [{step: two}]}
  - {step: two, tool: {kind: noop}}
"""
SINGLE = """
metadata: {name: single}
workflow:
  - {step: one, tool: [{name: t, kind: noop}]}
"""


class NoChildren:
    async def request(self, action: CreateChild, parent: NewExecution) -> NewExecution:
        raise AssertionError("no test here has children")


@dataclass
class Control:
    """One replica that leads, or waits to."""

    plane: ControlPlane
    store: PostgresStore
    http: aiohttp.ClientSession
    port: int
    headers: dict[str, str] = field(
        default_factory=lambda: {
            "Authorization": f"Bearer {TOKEN}",
            PROTOCOL_HEADER: str(PROTOCOL),
        }
    )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def request(self, text: str = CHAIN, **more: Any) -> NewExecution:
        (found,) = load(text)
        assert found.playbook is not None, found.problems
        return NewExecution(
            execution_id=new_execution_id(await self.store.now()),
            namespace="here",
            name=found.playbook.metadata.name,
            playbook_name=found.playbook.metadata.name,
            digest=digest(found.playbook),
            document=dump(found.playbook),
            workload={},
            **more,
        )

    async def start(self, text: str = CHAIN) -> str:
        execution_id, _ = await self.plane.start(await self.request(text))
        return execution_id

    async def call(
        self, path: str, body: object = None, method: str = "POST", **headers: str
    ) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.request(
            method, self.url + path, data=data, headers={**self.headers, **named}
        ) as answer:
            content = await answer.read()
            if answer.content_type != "application/json":
                return answer.status, content
            found = orjson.loads(content)
            return answer.status, found if answer.ok else found["error"]

    async def lease(self, capacity: int = 1, wait_s: float = 0.0, worker: str = "w") -> list[Any]:
        body = {"protocol": 1, "worker": worker, "pool": "default", "capacity": capacity}
        status, answer = await self.call("/v1/lease", {**body, "wait_s": wait_s})
        assert status == 200, answer
        return list(answer.get("commands", []))

    async def report(self, command: Any, capacity: int = 0, **report: Any) -> tuple[int, Any]:
        """Post one report about a leased command."""
        return await self.call("/v1/reports", reports(command, capacity, **report))

    async def names(self, execution_id: str) -> list[str]:
        return [event.fact.name for event in await self.store.events(execution_id)]


def reports(command: Any, capacity: int = 0, **report: Any) -> dict[str, Any]:
    held = {key: command[key] for key in ("lease_id", "epoch", "capability")}
    body = {
        "run_id": command["run_id"],
        "step": command["step"],
        "epoch": command["epoch"],
        "first": 0,
        "facts": [],
        **report,
    }
    return {
        "protocol": 1,
        "worker": "w",
        "pool": "default",
        "capacity": capacity,
        "reports": [{**held, "report": body}],
    }


STARTED = {"name": "step.started", "payload": {"worker": "w"}}
OK = {"status": "ok"}


@contextlib.asynccontextmanager
async def controlled(
    uri: str, holder: str = "me", *, leads: bool = True, port: int = 0, **settings: float
) -> AsyncIterator[Control]:
    """A replica on a database; `settings` are those of the operator."""
    made = OperatorSettings.model_validate({"sweep_interval_s": 0.05, **settings})
    async with (
        PostgresStore.connect(uri) as store,
        control_plane(store, NoChildren(), made, shard=0, holder=holder) as plane,
        aiohttp.ClientSession() as http,
    ):
        if leads:
            await plane.sweeper.led.wait()
        web = IngestWeb(plane.ingest, SharedToken(TOKEN), made)
        async with serving(web.application(), "127.0.0.1", port) as listening:
            yield Control(plane, store, http, listening)
