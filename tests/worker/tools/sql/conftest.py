"""Running one SQL task as the worker does, without a worker."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from noetl_core.model import KeychainKind
from noetl_core.outcomes import Outcome
from noetl_core.pipeline.requests import RunTask
from noetl_core.results import reference
from noetl_core.values import Value
from noetl_worker.keychain import Credential
from noetl_worker.pools import Pools
from noetl_worker.redact import Redactor
from noetl_worker.tools.base import ToolContext
from noetl_worker.tools.duckdb import DuckdbTool
from noetl_worker.tools.postgres import PostgresTool
from noetl_worker.tools.registry import ToolRegistry

PASSWORD = "hunter2-very-secret"


@dataclass
class Keychain:
    entries: dict[str, Credential]

    def entry(self, name: str) -> Credential | None:
        return self.entries.get(name)

    async def token(self, name: str, rejected: str | None = None) -> str:
        raise NotImplementedError

    async def refresh(self, name: str) -> Credential | None:
        raise NotImplementedError


@dataclass
class Stored:
    """A result store in memory."""

    contents: dict[str, bytes] = field(default_factory=dict)

    async def put(self, content: bytes, media_type: str) -> dict[str, Value]:
        ref = reference(content, media_type=media_type)
        self.contents[str(ref["key"])] = content
        return ref

    async def put_file(self, path: Path, media_type: str) -> dict[str, Value]:
        return await self.put(_read(path), media_type)


def _read(path: Path) -> bytes:
    return path.read_bytes()


class Silent:
    def write(self, stream: str, text: str) -> None: ...


class NoChildren:
    async def run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


@dataclass
class Bench:
    """A worker's worth of things that tasks share."""

    folder: Path
    pools: Pools = field(default_factory=Pools)
    keychain: Keychain = field(default_factory=lambda: Keychain({}))
    stored: Stored = field(default_factory=Stored)
    redactor: Redactor = field(default_factory=Redactor)

    def know(self, name: str, **fields: str) -> None:
        self.keychain.entries[name] = Credential(name, KeychainKind.POSTGRES, fields)

    def context(
        self, kind: str, inputs: dict[str, Value], scope: dict[str, Value], spec: dict[str, Value]
    ) -> ToolContext:
        call = RunTask(
            label="t", kind=kind, inputs=inputs, scope=scope, spec=spec, attempt=1, task_run=0
        )
        return ToolContext(
            call=call,
            folder=self.folder,
            keychain=self.keychain,
            pools=self.pools,
            log=Silent(),
            results=self.stored,
            children=NoChildren(),
            idempotency_key="key",
            redactor=self.redactor,
        )

    async def run(
        self,
        kind: str,
        inputs: dict[str, Value],
        scope: dict[str, Value] | None = None,
        spec: dict[str, Value] | None = None,
    ) -> Outcome:
        tools = _Tools({})
        return await tools.run(self.context(kind, inputs, scope or {}, spec or {}))


class _Tools(ToolRegistry):
    """Ours, whatever is installed."""

    def get(self, kind: str) -> Any:
        return PostgresTool() if kind == "postgres" else DuckdbTool()


Sql = Callable[..., Awaitable[Outcome]]
"""`await pg("SELECT …", scope…, fetch=…)`."""


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    folder = tmp_path / "scratch"
    folder.mkdir()
    bench = Bench(folder)
    yield bench
    await bench.pools.close()
    left = [name for name in os.listdir(folder) if name.startswith(".rows")]
    assert left == []


@pytest.fixture
def pg(bench: Bench, postgres_uri: str) -> Sql:
    bench.know("pg_main", uri=postgres_uri)

    async def run(
        command: Any = None,
        scope: dict[str, Value] | None = None,
        *,
        spec: dict[str, Value] | None = None,
        **inputs: Any,
    ) -> Outcome:
        given = {"auth": "pg_main", **inputs}
        if command is not None:
            given["command"] = command
        return await bench.run("postgres", given, scope, spec)

    return run


@pytest.fixture
def duck(bench: Bench) -> Sql:
    async def run(
        command: Any,
        scope: dict[str, Value] | None = None,
        *,
        spec: dict[str, Value] | None = None,
        **inputs: Any,
    ) -> Outcome:
        return await bench.run("duckdb", {"command": command, **inputs}, scope, spec)

    return run
