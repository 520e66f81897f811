"""What tests of tools share: a context with all a task may use, and fakes that keep notes."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from noetl_core.model import KeychainKind
from noetl_core.outcomes import Outcome
from noetl_core.pipeline.requests import RunTask
from noetl_core.results import reference
from noetl_core.values import Value
from noetl_worker.keychain import Credential
from noetl_worker.pools import Pools
from noetl_worker.redact import Redactor
from noetl_worker.tools.base import ChildEnd, ToolContext, ToolSettings
from noetl_worker.tools.registry import ToolRegistry


@dataclass
class FakeLog:
    written: list[tuple[str, str]] = field(default_factory=list)

    def write(self, stream: str, text: str) -> None:
        self.written.append((stream, text))

    def text(self, stream: str = "stdout") -> str:
        return "".join(text for name, text in self.written if name == stream)


@dataclass
class FakeResults:
    stored: dict[str, bytes] = field(default_factory=dict)
    files: int = 0

    async def put(self, content: bytes, media_type: str) -> dict[str, Value]:
        self.stored[hashlib.sha256(content).hexdigest()] = content
        return reference(content, media_type=media_type)

    async def put_file(self, path: Path, media_type: str) -> dict[str, Value]:
        self.files += 1
        content = await asyncio.to_thread(path.read_bytes)
        return await self.put(content, media_type)


@dataclass
class FakeKeychain:
    entries: dict[str, Credential] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)
    """Handed out one after the other, when one is rejected."""
    refreshed: list[str] = field(default_factory=list)

    def entry(self, name: str) -> Credential | None:
        return self.entries.get(name)

    async def token(self, name: str, rejected: str | None = None) -> str:
        if rejected == self.tokens[0]:
            del self.tokens[0]
        return self.tokens[0]

    async def refresh(self, name: str) -> Credential | None:
        self.refreshed.append(name)
        return self.entries.get(name)


@dataclass
class FakeChildren:
    end: ChildEnd | None = None
    asked: list[tuple[object, ...]] = field(default_factory=list)

    async def run(
        self, task: str, task_run: int, playbook: str, workload: dict[str, Value], *, wait: bool
    ) -> ChildEnd:
        self.asked.append((task, task_run, playbook, workload, wait))
        assert self.end is not None
        return self.end


@dataclass
class Bench:
    """Runs tools as the worker does."""

    scratch: Path
    pools: Pools = field(default_factory=Pools)
    log: FakeLog = field(default_factory=FakeLog)
    results: FakeResults = field(default_factory=FakeResults)
    keychain: FakeKeychain = field(default_factory=FakeKeychain)
    children: FakeChildren = field(default_factory=FakeChildren)
    redactor: Redactor = field(default_factory=Redactor)
    settings: ToolSettings = field(default_factory=ToolSettings)
    registry: ToolRegistry = field(default_factory=ToolRegistry)

    def context(self, kind: str, spec: dict[str, Value], inputs: dict[str, Value]) -> ToolContext:
        call = RunTask(
            label="work", kind=kind, inputs=inputs, scope={}, spec=spec, attempt=1, task_run=0
        )
        return ToolContext(
            call=call,
            folder=self.scratch,
            keychain=self.keychain,
            pools=self.pools,
            log=self.log,
            results=self.results,
            children=self.children,
            idempotency_key="key",
            redactor=self.redactor,
            settings=self.settings,
        )

    async def run(
        self, kind: str, spec: dict[str, Value] | None = None, **inputs: Value
    ) -> Outcome:
        return await self.registry.run(self.context(kind, spec or {}, inputs))

    def credential(self, name: str, kind: KeychainKind, **fields: str) -> None:
        found = Credential(name, kind, fields)
        self.keychain.entries[name] = found
        self.redactor.add(found.secrets())
