"""What the control plane needs of a store: the log, the queue and the results, in one transaction.

Two stores stand behind this port: Postgres, and one in memory for simulations. The same contract
tests hold for both. All times are the store's own clock.

    StoreError
    ├── NotLeader       another process leads this shard
    ├── Fenced          a lease is no longer held under its epoch
    ├── Conflict        the execution moved on since it was read
    │   └── Duplicate   an event with this dedup key is in the log already
    ├── Corrupt         stored content is not what its key says
    └── Unavailable     the database cannot be reached or gave up
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from noetl_core.engine.events import Event
from noetl_core.engine.state import State
from noetl_core.engine.transition import Fence, Transition
from noetl_core.engine.triggers import CancelChild, CreateChild, IterationEnd, TellParent
from noetl_core.values import Value


class StoreError(Exception):
    """Something the store refused or could not do."""


class NotLeader(StoreError):
    """Another process leads this shard; nothing was written."""


class Fenced(StoreError):
    """A lease is no longer held under its epoch; nothing was written."""


class Conflict(StoreError):
    """The execution moved on since it was read; nothing was written."""


class Duplicate(Conflict):
    """An event with this dedup key is in the log already; nothing was written."""


class Corrupt(StoreError):
    """Stored content is not what its key says."""


class Unavailable(StoreError):
    """The database cannot be reached; whether anything was written is not known."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of the executions, led under this epoch: the fence of a process that lost it."""

    number: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewExecution:
    """What an execution is made of before its first event."""

    execution_id: str
    namespace: str
    name: str
    playbook_name: str
    digest: str
    document: dict[str, Value]
    """The playbook as canonical data, kept once per digest."""
    workload: dict[str, Value]
    request_key: str | None = None
    """Whoever asks twice with one key gets one execution."""
    parent: dict[str, Value] | None = None
    depth: int = 0
    deadline_at: str | None = None
    shard: int = 0
    pool: str = "default"
    """Where its commands wait for workers."""
    pools: dict[str, str] = field(default_factory=dict)
    """Steps whose commands wait elsewhere: step → pool."""
    origin: dict[str, Value] | None = None
    """Of a rerun: what it starts from."""
    problems: list[Value] = field(default_factory=list)
    """Of a playbook that cannot run: why."""

    def pool_of(self, step: str | None) -> str:
        """Where the commands of a step wait."""
        return self.pools.get(step or "", self.pool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """An execution as it was last committed."""

    request: NewExecution
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """A command in the hands of a worker until `until`."""

    execution_id: str
    lease_id: str
    epoch: int
    """1 for the first lease of a command, one more for each that follows."""
    command: dict[str, Value]
    """The `Enqueue` as data."""
    until: str
    stop: bool = False
    """It was cancelled before anyone held it."""


@dataclass(frozen=True, slots=True)
class Expired:
    """A lease whose time ran out."""

    execution_id: str
    lease_id: str
    epoch: int


Outgoing: TypeAlias = CreateChild | CancelChild | TellParent


@dataclass(frozen=True, slots=True)
class Action:
    """Something committed that is still to be done outside of its execution."""

    id: int
    execution_id: str
    effect: Outgoing


class EventStore(Protocol):
    """The only way to the truth."""

    async def now(self) -> str:
        """The store's clock, ISO 8601 with microseconds and `Z`."""

    async def take_shard(self, number: int, owner: str, ttl_s: float) -> Shard | None:
        """Lead a shard for a while: prolonged under its epoch where `owner` leads it, taken under
        the next epoch where nobody does any more, None where somebody else does."""

    async def release_shard(self, number: int, owner: str) -> None:
        """Let another process take it at once."""

    async def create(self, request: NewExecution) -> str:
        """Register an execution; answers the id that the request key already has, if any."""

    async def load(self, execution_id: str) -> Snapshot | None: ...

    async def commit(self, shard: Shard, transitions: Sequence[Transition]) -> None:
        """All of them or none; they are of different executions of this shard."""

    async def lease(
        self, pool: str, owner: str, limit: int, ttl_s: float, lease_id: str | None = None
    ) -> list[Leased]:
        """Take queued commands, oldest first; with `lease_id` only that one."""

    async def heartbeat(self, leases: Sequence[Fence], ttl_s: float) -> dict[str, bool]:
        """Prolong leases; answers those still held, with whether each shall stop."""

    async def expired(self, shard: int, limit: int) -> list[Expired]:
        """Leases whose time ran out; they stay so until a commit requeues or ends them."""

    async def due(self, shard: int, limit: int) -> list[str]:
        """Executions to be looked at: never started, left with `again`, or `due_at` has passed."""

    async def actions(self, shard: int, limit: int) -> list[Action]:
        """The outbox, oldest first. Done at least once: whoever acts is idempotent."""

    async def acted(self, ids: Sequence[int]) -> None: ...

    async def events(self, execution_id: str, after: int = 0, limit: int = 1000) -> list[Event]: ...

    async def iterations(self, execution_id: str, run_id: str) -> list[IterationEnd]:
        """The end of each innermost iteration of a loop that is in the log."""

    async def frames(self, execution_id: str, run_id: str) -> dict[str, int]:
        """How many elements each list of a loop had: outer iteration (`""` outermost) → total."""

    async def put_result(self, key: str, content: bytes) -> None:
        """Keep content; twice is once. Raises `Corrupt` when the key is not its SHA-256."""

    async def get_result(self, key: str) -> bytes | None:
        """Stored content, verified against its key; raises `Corrupt` where it does not match."""
