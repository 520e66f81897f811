"""The read side: lists, the log in pages, what tasks printed; and reaching executions of others.

Called by the commands of people. Nothing here writes to the log. A wish is how a command reaches an
execution that another process leads; adopting is how it takes over one that nobody does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from noetl_core.engine.chain import link
from noetl_core.engine.clock import iso
from noetl_core.engine.codec import decode_state
from noetl_core.engine.events import Event
from noetl_core.engine.state import State
from noetl_core.values import Value
from noetl_operator.store import port
from noetl_operator.store.batch import moment
from noetl_operator.store.postgres import PostgresStore, event_of

PAGE = 1000
"""Rows that one query brings."""
_NO_ID = UUID(int=0)
_BEGINNING = "0001-01-01T00:00:00.000000Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An execution as lists show it."""

    execution_id: str
    name: str
    namespace: str
    playbook: str
    phase: str
    reason: str | None
    message: str | None
    steps: dict[str, Value]
    created_at: str
    started_at: str | None
    finished_at: str | None
    events: int
    parent_id: str | None

    def as_json(self) -> dict[str, Value]:
        return {
            "executionId": self.execution_id,
            "name": self.name,
            "namespace": self.namespace,
            "playbook": self.playbook,
            "phase": self.phase,
            "reason": self.reason,
            "steps": self.steps,
            "startedAt": self.started_at,
            "finishedAt": self.finished_at,
        }


@dataclass(frozen=True, slots=True)
class Line:
    """A line that a task printed."""

    at: str
    step: str | None
    iteration: str | None
    task: str | None
    attempt: int | None
    stream: str
    text: str
    place: tuple[Any, ...] = ()
    """Where it stands in the log: the next page begins after it."""

    def as_json(self) -> dict[str, Value]:
        return {
            "timestamp": self.at,
            "step": self.step,
            "iteration": self.iteration,
            "task": self.task,
            "attempt": self.attempt,
            "stream": self.stream,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class Stored:
    """An event as its row holds it, and the hash that its row claims."""

    event: Event
    payload: str
    hash: bytes

    def linked(self, before: bytes) -> bytes:
        """The hash that it should have."""
        return link(before, self.event, self.payload)


@dataclass(frozen=True, slots=True)
class Head:
    """What an execution's own row says of its log."""

    head: bytes
    seq: int
    phase: str
    state: State


@dataclass(frozen=True, slots=True)
class Counted:
    """How often something happened inside of a loop."""

    run_id: str | None
    step: str | None
    task: str | None
    name: str
    times: int
    attempt: int | None


@dataclass(frozen=True, slots=True)
class ChildOf:
    """A child and the task that asked for it."""

    execution_id: str
    run_id: str | None
    task: str | None


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody asks of an execution."""

    wish_id: str
    execution_id: str
    body: dict[str, Value]


class Reading:
    """Questions to one store."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store

    # Which execution

    async def executions(
        self, *, ids: Sequence[str] | None = None, limit: int | None = None
    ) -> list[Entry]:
        """Executions, newest first."""
        rows = await self.store.read("list", None, None if ids is None else [*ids], limit)
        return [_entry(row) for row in rows]

    async def entry(self, execution_id: str) -> Entry:
        """One execution that is known to be there."""
        found = await self.executions(ids=[execution_id])
        return found[0]

    async def find(self, prefix: str) -> list[str]:
        """Ids that begin so: none, the one, or two of several."""
        return [str(row["execution_id"]) for row in await self.store.read("find", prefix)]

    async def latest(self) -> str | None:
        """The execution that was started last, children aside."""
        rows = await self.store.read("latest")
        return str(rows[0]["execution_id"]) if rows else None

    async def family(self, execution_id: str) -> list[str]:
        """An execution and all its descendants."""
        return [str(row["execution_id"]) for row in await self.store.read("family", execution_id)]

    async def children(self, execution_id: str) -> list[ChildOf]:
        rows = await self.store.read("children_of", execution_id)
        return [ChildOf(str(row["execution_id"]), row["run_id"], row["task"]) for row in rows]

    # The log

    async def matching(
        self, execution_id: str, after: int = 0, step: str | None = None, like: str = "%"
    ) -> AsyncIterator[Event]:
        """Events after a place in the log whose name is like a pattern of SQL."""
        while True:
            rows = await self.store.read("matching", execution_id, after, step, like, PAGE)
            for row in rows:
                yield event_of(row)
            if len(rows) < PAGE:
                return
            after = rows[-1]["seq"]

    async def outline(self, execution_id: str) -> AsyncIterator[Event]:
        """The events of an execution without those of single iterations."""
        after = 0
        while True:
            rows = await self.store.read("outline", execution_id, after, PAGE)
            for row in rows:
                yield event_of(row)
            if len(rows) < PAGE:
                return
            after = rows[-1]["seq"]

    async def counted(self, execution_id: str) -> list[Counted]:
        """What happened inside of loops."""
        return [
            Counted(_text(r["run_id"]), r["step"], r["task"], r["name"], r["times"], r["attempt"])
            for r in await self.store.read("outline_iterations", execution_id)
        ]

    async def failed_iterations(self, execution_id: str, limit: int) -> list[Event]:
        return [
            event_of(r) for r in await self.store.read("failed_iterations", execution_id, limit)
        ]

    async def step_end(self, execution_id: str, step: str) -> Event | None:
        """How a step ended last."""
        rows = await self.store.read("step_ends", execution_id, step)
        return event_of(rows[0]) if rows else None

    async def stored(self, execution_id: str) -> AsyncIterator[Stored]:
        """The log row by row, to be verified."""
        after = 0
        while True:
            rows = await self.store.read("raw_events", execution_id, after, PAGE)
            for row in rows:
                yield Stored(event_of(row), row["payload_text"], bytes(row["hash"]))
            if len(rows) < PAGE:
                return
            after = rows[-1]["seq"]

    async def head(self, execution_id: str) -> Head:
        row = (await self.store.read("head", execution_id))[0]
        state = decode_state(orjson.loads(row["state"]))
        return Head(bytes(row["head"]), row["seq"], row["phase"], state)

    async def logs(
        self, execution_id: str, step: str | None = None, after: Line | None = None
    ) -> list[Line]:
        """A page of what tasks printed, after a line."""
        place = after.place if after else (moment(_BEGINNING), _NO_ID, 0, 0)
        rows = await self.store.read("logs", execution_id, step, *place, PAGE)
        return [
            Line(
                iso(r["recorded_at"]),
                r["step"],
                r["iteration"],
                r["task"],
                r["attempt"],
                r["stream"],
                r["text"],
                (r["recorded_at"], r["lease_id"], r["epoch"], r["line"]),
            )
            for r in rows
        ]

    # Executions of other processes

    async def holder(self, execution_id: str) -> tuple[int, str | None]:
        """The shard of an execution, and who leads it now."""
        row = (await self.store.read("shard_holder", execution_id))[0]
        return row["shard"], row["holder"]

    async def adopt(self, execution_id: str, shard: int, pool: str) -> list[str]:
        """Take over an execution and its descendants; answers those that are unfinished."""
        rows = await self.store.read("adopt", execution_id, shard, pool)
        return [str(row["execution_id"]) for row in rows]

    async def leases(self, executions: Sequence[str]) -> list[port.Expired]:
        """What workers hold of some executions."""
        rows = await self.store.read("leases_of", [*executions])
        return [port.Expired(str(r["execution_id"]), str(r["lease_id"]), r["epoch"]) for r in rows]

    async def expire_owner(self, worker: str) -> None:
        """A worker is known to be gone: what it held runs out now."""
        await self.store.read("expire_owner", worker)

    async def unfinished(self, shard: int) -> int:
        """How much a shard still has to do."""
        return int((await self.store.read("unfinished", shard))[0][0])

    async def wish(self, wish: Wish) -> None:
        await self.store.read(
            "make_wish", wish.wish_id, wish.execution_id, orjson.dumps(wish.body).decode()
        )

    async def wishes(self, shard: int) -> list[Wish]:
        """What is asked of the executions of a shard and not answered."""
        return [
            Wish(str(row["wish_id"]), str(row["execution_id"]), orjson.loads(row["body"]))
            for row in await self.store.read("wishes", shard)
        ]

    async def answer(self, wish_id: str, answer: dict[str, Value]) -> None:
        await self.store.read("answer_wish", wish_id, orjson.dumps(answer).decode())

    async def answer_of(self, wish_id: str) -> dict[str, Value] | None:
        rows = await self.store.read("wish_answer", wish_id)
        if not rows or rows[0]["answer"] is None:
            return None
        found: dict[str, Value] = orjson.loads(rows[0]["answer"])
        return found

    async def withdraw(self, wish_id: str) -> None:
        """Remove a wish that was answered, or that nobody took up."""
        await self.store.read("drop_wish", wish_id)


def _entry(row: Any) -> Entry:
    finished = row["finished_at"]
    return Entry(
        execution_id=str(row["execution_id"]),
        name=row["name"],
        namespace=row["namespace"],
        playbook=row["playbook"],
        phase=row["phase"],
        reason=row["reason"],
        message=row["message"],
        steps=orjson.loads(row["steps"]),
        created_at=iso(row["created_at"]),
        started_at=row["started_at"],
        finished_at=None if finished is None else iso(finished),
        events=row["seq"],
        parent_id=_text(row["parent_id"]),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
