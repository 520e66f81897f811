"""Which Kubernetes object belongs to which execution, and what a status is made of.

The rooms of `kube` call it. Nothing here writes to the log or touches what a commit relies on, so
it may be asked at any time while the router works.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import orjson

from noetl_core.engine.codec import decode_state
from noetl_core.engine.events import Event
from noetl_core.engine.state import State
from noetl_core.values import Value
from noetl_operator.store.postgres import PostgresStore

if TYPE_CHECKING:
    import asyncpg

PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An object and its execution."""

    uid: str
    execution_id: str
    namespace: str
    name: str
    spec_key: str
    playbook_generation: int | None = None
    adopted: bool = False
    """The operator removed it once and somebody made it again: it shows the old outcome."""
    forgotten: bool = False
    """Its log is gone by retention."""
    removed: bool = False
    """The operator removed it, or was about to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """An execution as it was last committed."""

    execution_id: str
    namespace: str
    name: str
    playbook: str
    digest: str
    problems: tuple[dict[str, Value], ...]
    state: State


class Objects:
    """The links of one store."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def link(self, link: Link) -> Link:
        """Keep a link; answers the one that the object already has, if any."""
        rows = await self._store.read(
            "object_link",
            link.uid,
            link.execution_id,
            link.namespace,
            link.name,
            link.spec_key,
            link.playbook_generation,
        )
        return _link(rows[0])

    async def links(self, namespace: str, name: str) -> list[Link]:
        """All that ever stood under a name and was not taken leave of."""
        return [_link(row) for row in await self._store.read("object_links", namespace, name)]

    async def every(self) -> list[Link]:
        """All objects that should be there."""
        return [_link(row) for row in await self._store.read("object_all")]

    async def of(self, execution_id: str) -> Link | None:
        rows = await self._store.read("object_of", execution_id)
        return _link(rows[0]) if rows else None

    async def adopt(self, namespace: str, spec_key: str, uid: str) -> Link | None:
        """Give an object the record of one that the operator removed, if there is such a one."""
        rows = await self._store.read("object_adopt", namespace, spec_key, uid)
        return _link(rows[0]) if rows else None

    async def removed(self, uid: str) -> None:
        """The operator is about to remove it."""
        await self._store.read("object_removed", uid)

    async def unlink(self, uid: str) -> None:
        """It is gone, and one of its name would be a new one."""
        await self._store.read("object_unlink", uid)

    async def view(self, execution_id: str) -> View | None:
        """None also for what is no id at all."""
        if not is_id(execution_id):
            return None
        rows = await self._store.read("object_view", execution_id)
        return _view(rows[0]) if rows else None

    async def namespace(self, execution_id: str) -> str | None:
        """None also for what is no id at all."""
        if not is_id(execution_id):
            return None
        rows = await self._store.read("object_namespace", execution_id)
        return str(rows[0]["namespace"]) if rows else None

    async def latest(self, namespace: str, name: str, other_than: str) -> str | None:
        """The last execution of a name."""
        rows = await self._store.read("object_latest", namespace, name, other_than)
        return str(rows[0]["execution_id"]) if rows else None

    async def live_children(self, execution_id: str) -> int:
        """How many children of an execution still run."""
        return int((await self._store.read("object_live_children", execution_id))[0][0])

    async def log(self, execution_id: str) -> list[Event]:
        """All events, for a rerun."""
        events: list[Event] = []
        while page := await self._store.events(execution_id, len(events), PAGE):
            events += page
        return events


def is_id(text: str) -> bool:
    """Whether it can be an execution's id: people write annotations."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _link(row: asyncpg.Record) -> Link:
    return Link(
        uid=row["uid"],
        execution_id=str(row["execution_id"]),
        namespace=row["namespace"],
        name=row["name"],
        spec_key=row["spec_key"],
        playbook_generation=row["playbook_generation"],
        adopted=row["adopted"],
        forgotten=row["forgotten"],
        removed=row["removed_at"] is not None,
    )


def _view(row: asyncpg.Record) -> View:
    return View(
        execution_id=str(row["execution_id"]),
        namespace=row["namespace"],
        name=row["name"],
        playbook=row["playbook"],
        digest=row["digest"],
        problems=tuple(orjson.loads(row["problems"])),
        state=decode_state(orjson.loads(row["state"])),
    )
