"""The queue as the launcher sees it: how much waits where, and who holds what.

Reads only. What follows from it goes through the router like everything else.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from noetl_operator.store import port
from noetl_operator.store.postgres import PostgresStore


@dataclass(frozen=True, slots=True)
class Waiting:
    """What one execution has in one pool."""

    pool: str
    execution_id: str
    waiting: int
    held: int


@dataclass(frozen=True, slots=True)
class SingleCommand:
    """A command that has a worker of its own."""

    pool: str
    execution_id: str
    lease_id: str
    epoch: int
    """Of its latest lease; 0 where it never had one."""
    step: str | None
    """None: the check of the keychain."""
    owner: str | None
    """Who holds it."""


class Queues:
    """Looks at the queue of a shard."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def demand(self, shard: int) -> list[Waiting]:
        rows = await self._store.read("demand", shard)
        return [
            Waiting(row["pool"], str(row["execution_id"]), row["waiting"], row["held"])
            for row in rows
        ]

    async def singles(self, shard: int) -> list[SingleCommand]:
        return [
            SingleCommand(
                row["pool"],
                str(row["execution_id"]),
                str(row["lease_id"]),
                row["epoch"],
                row["step"],
                row["owner"],
            )
            for row in await self._store.read("singles", shard)
        ]

    async def holders(self, shard: int) -> dict[tuple[str, str], int]:
        """(namespace, worker) → how many commands it holds."""
        rows = await self._store.read("holders", shard)
        return {(row["namespace"], row["owner"]): row["held"] for row in rows}

    async def held_by(self, shard: int, namespace: str, worker: str) -> list[port.Expired]:
        rows = await self._store.read("held_by", shard, namespace, worker)
        return [
            port.Expired(str(row["execution_id"]), str(row["lease_id"]), row["epoch"])
            for row in rows
        ]

    async def unfinished(self, executions: Collection[str]) -> set[str]:
        """Those of the executions that are not over."""
        ids = [UUID(one) for one in executions]
        rows = await self._store.read("unfinished_of", ids) if ids else []
        return {str(row["execution_id"]) for row in rows}
