"""What the running control plane needs of a store beyond the contract of the log.

The log's contract (`port`) is proved in memory and on Postgres alike. This is the rest: handing new
commands over with the commit that brings them, what tasks printed, the outbox's later tries, and
housekeeping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from noetl_core.engine.transition import Transition
from noetl_core.wire import Held, LogLine
from noetl_operator.store.port import EventStore, Shard, Snapshot


@dataclass(frozen=True, slots=True)
class Hand:
    """The worker that a new command is leased to with the commit that brings it."""

    owner: str
    ttl_s: float


class DurableStore(EventStore, Protocol):
    """A store that a whole control plane can stand on."""

    async def capability_key(self) -> bytes:
        """The key that capabilities are signed with; the same for every replica."""

    async def commit(
        self,
        shard: Shard,
        transitions: Sequence[Transition],
        hands: Mapping[str, Hand] | None = None,
    ) -> None:
        """`hands` names new commands that are leased at once, under epoch 1, instead of queued."""

    async def put_result(self, key: str, content: bytes, execution_id: str | None = None) -> None:
        """`execution_id` names it: it is kept as long as that execution is."""

    async def append_logs(
        self, execution_id: str, held: Held, step: str | None, lines: Sequence[LogLine]
    ) -> None: ...

    async def load_many(self, executions: Sequence[str]) -> list[Snapshot]:
        """Those of the executions that are there, in no order."""

    async def prolong(self, shard: int, seconds: float) -> None:
        """No lease of the shard ends before that many seconds from now."""

    async def action_later(self, action_id: int) -> None:
        """It could not be done now: tried again after a while that grows."""

    async def ensure_partitions(self, weeks_ahead: int) -> None: ...

    async def partitions(self) -> list[str]: ...

    async def drop_partition(self, name: str) -> bool:
        """Drop a week of the log, unless something in it still runs."""

    async def sweep_results(self, older_s: float, limit: int) -> int:
        """Remove results that nothing names."""
