"""What a tool is, and what it is given.

A tool is one class with a `kind`, a pydantic model `Args` of what it takes, and `run`, which gives
exactly one `Outcome`. It imports its library on first use and never raises for a failure that one
can expect. Timeouts of the task are the driver's: it cancels `run`, which must then let go of
whatever it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.pipeline.requests import RunTask
from noetl_core.values import Value
from noetl_worker.keychain import Credential
from noetl_worker.pools import Pools
from noetl_worker.redact import Redactor

MIB = 1024 * 1024


class Log(Protocol):
    """Where the output of a task goes."""

    def write(self, stream: str, text: str) -> None:
        """Keep text of `stdout`, `stderr` or `tool`; it is cut at the limits of a task."""


class Results(Protocol):
    """The store of large results."""

    async def put(self, content: bytes, media_type: str) -> dict[str, Value]:
        """Store content and answer its reference."""

    async def put_file(self, path: Path, media_type: str) -> dict[str, Value]:
        """The same with what a file holds, without reading it into memory as a whole."""


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

    async def token(self, name: str, rejected: str | None = None) -> str:
        """Of an `oauth2_client_credentials` entry: a token that is still good.

        `rejected` is one that the server did not take: it is not handed out again. Raises
        `NoToken`.
        """

    async def refresh(self, name: str) -> Credential | None:
        """Read the entry again for the rest of this step-run (rule I6).

        Raises `KeychainError` where it cannot be had any more.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """What the operator of a worker may set for its tools; the worker's settings fill it."""

    allow_link_local: bool = False
    """Let http tasks reach link-local addresses, such as those of cloud metadata services."""
    http_memory_bytes: int = 8 * MIB
    """A body beyond this is written to a file while it comes."""
    http_value_bytes: int = 64 * MIB
    """A JSON or text body up to this is a value; a larger one is stored and referred to."""
    http_max_bytes: int = 1024 * MIB
    """No body may be larger."""
    python_memory_bytes: int = 2048 * MIB
    """Address space of a python child."""
    python_cpu_s: int = 3600
    """CPU seconds of a python child."""
    python_file_bytes: int = 1024 * MIB
    """The largest file that a python child may write."""
    python_processes: int = 64
    """Processes that a python task may have at once."""
    python_result_bytes: int = 64 * MIB
    """The largest result of a python task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What one run of a task may use."""

    call: RunTask
    folder: Path | Callable[[], Path]
    """What `scratch` is, or makes it: most tasks need none, and making one takes its time."""
    keychain: Keychain
    pools: Pools
    """Connections that outlive the task, shared by credential."""
    log: Log
    results: Results
    children: Children
    idempotency_key: str
    """The same for every delivery of this call."""
    redactor: Redactor = field(default_factory=Redactor)
    """Knows the secrets of the step-run: for what a tool stores or sends on by itself."""
    settings: ToolSettings = field(default_factory=ToolSettings)

    @property
    def scratch(self) -> Path:
        """The folder of the step-run: fresh when it starts, shared by its tasks, gone when it
        ends."""
        return self.folder if isinstance(self.folder, Path) else self.folder()

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
