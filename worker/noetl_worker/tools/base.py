"""What a tool is, and what it is given.

A tool is one class with a `kind`, a pydantic model `Args` of what it takes, and `run`, which gives
exactly one `Outcome`. It imports its library on first use and never raises for a failure that one
can expect. Timeouts of the task are the driver's: it cancels `run`, which must then let go of
whatever it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.pipeline.requests import RunTask
from noetl_core.values import Value
from noetl_worker.keychain import Credential
from noetl_worker.pools import Pools


class Log(Protocol):
    """Where the output of a task goes."""

    def write(self, stream: str, text: str) -> None:
        """Keep text of `stdout`, `stderr` or `tool`; it is cut at the limits of a task."""


class Results(Protocol):
    """The store of large results."""

    async def put(self, content: bytes, media_type: str) -> dict[str, Value]:
        """Store content and answer its reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    """How a child execution ended, or why there is none."""

    execution_id: str | None
    name: str | None = None
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    result: Value = None
    refused: TaskError | None = None


class Children(Protocol):
    async def run(
        self, task: str, task_run: int, playbook: str, workload: dict[str, Value], *, wait: bool
    ) -> ChildEnd:
        """Start a child execution; with `wait`, return when it is finished."""


class Keychain(Protocol):
    def entry(self, name: str) -> Credential | None:
        """The credential of this name, as it is now."""

    async def token(self, name: str) -> str:
        """Of an `oauth2_client_credentials` entry: a token that is still good."""

    async def refresh(self, name: str) -> Credential | None:
        """Read the entry again for the rest of this step-run (rule I6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What one run of a task may use."""

    call: RunTask
    scratch: Path
    """The folder of the step-run: fresh when it starts, shared by its tasks, gone when it ends."""
    keychain: Keychain
    pools: Pools
    """Connections that outlive the task, shared by credential."""
    log: Log
    results: Results
    children: Children
    idempotency_key: str
    """The same for every delivery of this call."""

    @property
    def spec(self) -> Mapping[str, Value]:
        return self.call.spec


class Tool(Protocol):
    """One tool kind."""

    kind: ClassVar[str]
    Args: ClassVar[type[BaseModel]]

    async def run(self, args: Any, ctx: ToolContext) -> Outcome:
        """Do it. `args` is an instance of `Args`."""


def failed(
    kind: ErrorKind, message: str, *, code: str | None = None, source: str | None = None
) -> Outcome:
    """An error outcome without details."""
    return Outcome(error=TaskError(kind=kind, message=message, code=code, source=source))
