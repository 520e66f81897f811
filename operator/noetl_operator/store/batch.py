"""Many transitions as the columns of one `noetl.commit` call.

Links each event to the one before it (the hash chain), writes everything as the text that is
stored, and keeps the order of the arguments in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import datetime
from typing import TypeAlias

import orjson

from noetl_core.engine.chain import link
from noetl_core.engine.events import Event
from noetl_core.engine.transition import Fence, Transition
from noetl_core.engine.triggers import Enqueue
from noetl_operator.store.durable import Hand
from noetl_operator.store.port import Shard

COLUMNS = (
    "held_id uuid, held_epoch bigint, ended_id uuid, ended_epoch bigint, requeue_id uuid,"
    " requeue_epoch bigint, revoke_id uuid, stop_id uuid,"
    " x_id uuid, x_expected bigint, x_seq bigint, x_state json, x_phase text, x_head bytea,"
    " x_due timestamptz, x_finished timestamptz,"
    " e_execution uuid, e_seq bigint, e_id uuid, e_name text, e_at timestamptz, e_source text,"
    " e_step text, e_run uuid, e_task text, e_attempt integer, e_iteration text, e_payload json,"
    " e_hash bytea,"
    " q_lease uuid, q_execution uuid, q_step text, q_command json, q_owner text,"
    " q_ttl double precision,"
    " r_execution uuid, r_key text, r_content bytea, a_execution uuid, a_body json"
)
"""The arguments of `noetl.commit` after shard and epoch, in order."""

_NAMES = tuple(column.split()[0] for column in COLUMNS.split(","))
_TYPES = tuple(column.split(maxsplit=1)[1] for column in COLUMNS.split(","))

# Columns travel as one text each, which costs a tenth of what asyncpg's own arrays cost here: words
# and JSON as a JSON list, numbers and ids, which need no quotes, as the text of an array.
_AS_JSON = {
    "text": "ARRAY(SELECT json_array_elements_text(${0}::text::json))",
    "json": "ARRAY(SELECT json_array_elements(${0}::text::json))",
}
STATEMENT = (
    "SELECT noetl.commit($1, $2, "
    + ", ".join(
        _AS_JSON.get(kind, "${0}::text::{1}[]").format(i, kind) for i, kind in enumerate(_TYPES, 3)
    )
    + ")"
)


Cell: TypeAlias = str | int | float | None
_AT_ONCE = "2000-01-01T00:00:00Z"
"""When an execution is due that is not through with what it has to do."""


class Batch:
    """Collects transitions; `heads` are the chain heads after them."""

    def __init__(self, shard: Shard, heads: Mapping[str, bytes], hands: Mapping[str, Hand]) -> None:
        self._shard, self._hands = shard, hands
        self._before = heads
        self.heads: dict[str, bytes] = {}
        self._column: dict[str, list[Cell]] = {name: [] for name in _NAMES}

    def arguments(self) -> list[object]:
        columns = zip(_TYPES, self._column.values(), strict=True)
        return [self._shard.number, self._shard.epoch, *(_column(k, c) for k, c in columns)]

    def add(self, one: Transition) -> None:
        self._fences("held", one.held)
        self._fences("ended", one.ended)
        for again in one.requeue:
            self._row("requeue", id=again.lease_id, epoch=again.epoch)
        self._column["revoke_id"] += one.revoke
        self._column["stop_id"] += one.stop
        head = self._before[one.execution_id]
        for event in one.events:
            head = self._event(event, head)
        self.heads[one.execution_id] = head
        self._execution(one, head)
        for kept in one.store:
            self._row("r", execution=one.execution_id, key=kept.key, content=kept.content.hex())
        for command in one.enqueue:
            self._command(one, command)
        for action in one.outbox:
            body = {"kind": type(action).__name__, **asdict(action)}
            self._row("a", execution=one.execution_id, body=orjson.dumps(body).decode())

    def _row(self, prefix: str, **values: Cell) -> None:
        for name, value in values.items():
            self._column[f"{prefix}_{name}"].append(value)

    def _fences(self, prefix: str, fences: tuple[Fence, ...]) -> None:
        for fence in fences:
            self._row(prefix, id=fence.lease_id, epoch=fence.epoch)

    def _execution(self, one: Transition, head: bytes) -> None:
        state = one.state
        self._row(
            "x",
            id=one.execution_id,
            expected=one.expected,
            seq=state.seq,
            state=orjson.dumps(state).decode(),
            phase=state.phase.value,
            head=head.hex(),
            due=_AT_ONCE if one.again else one.due_at,
            finished=state.finished_at,
        )

    def _event(self, event: Event, head: bytes) -> bytes:
        fact = event.fact
        payload = orjson.dumps(fact.payload()).decode()
        linked = link(head, event, payload)
        self._row(
            "e",
            execution=event.execution_id,
            seq=event.seq,
            id=event.event_id,
            name=fact.name,
            at=event.timestamp,
            source=event.source,
            step=fact.step,
            run=fact.run_id,
            task=fact.task,
            attempt=fact.attempt,
            iteration=fact.iteration,
            payload=payload,
            hash=linked.hex(),
        )
        return linked

    def _command(self, one: Transition, command: Enqueue) -> None:
        # Field by field: `asdict` would copy every value of every list that a command carries.
        body = {field.name: getattr(command, field.name) for field in fields(command)}
        hand = self._hands.get(command.lease_id)
        self._row(
            "q",
            lease=command.lease_id,
            execution=one.execution_id,
            step=command.step,
            command=orjson.dumps(body).decode(),
            owner=hand.owner if hand else None,
            ttl=hand.ttl_s if hand else None,
        )


def _column(kind: str, cells: list[Cell]) -> str:
    if kind == "text":
        return orjson.dumps(cells).decode()
    if kind == "json":
        return f"[{','.join(map(str, cells))}]"
    if kind == "bytea":
        return "{" + ",".join(f'"\\\\x{cell}"' for cell in cells) + "}"
    return "{" + ",".join(["NULL" if cell is None else str(cell) for cell in cells]) + "}"


def moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
