"""From "run this playbook" to the first event.

An execution is registered first and started then: a process that dies in between leaves a row that
the sweeper finds and starts, with all it needs to know in it.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from uuid import UUID

from noetl_core.engine.clock import milliseconds
from noetl_core.engine.state import Boundary
from noetl_core.engine.triggers import Adopted, Start
from noetl_core.values import Value
from noetl_operator.store.port import NewExecution


def new_execution_id(now: str) -> str:
    """A version 7 uuid: ordered by the store's clock, which is how the log is partitioned."""
    drawn = int.from_bytes(os.urandom(10))
    low = (drawn & ~(0xF << 76) & ~(0x3 << 62)) | (0x7 << 76) | (0x2 << 62)
    return str(UUID(int=(milliseconds(now) << 80) | low))


def child_name(parent: str, child: str) -> str:
    """The name of a child execution: the same whenever it is asked for."""
    # Siblings share the beginning of their ids, which is the parent's time.
    return f"{parent[:40].rstrip('-.')}-{child.replace('-', '')[-10:]}"


def origin_of(adopted: Adopted | None, rerun_of: Value) -> dict[str, Value] | None:
    """What a rerun starts from, as data to be kept with the request."""
    if rerun_of is None:
        return None
    return {"rerun_of": rerun_of, "adopted": None if adopted is None else asdict(adopted)}


def start_of(request: NewExecution) -> Start:
    """The trigger that starts a registered execution."""
    origin = request.origin or {}
    adopted = origin.get("adopted")
    return Start(
        deadline_at=request.deadline_at,
        parent=request.parent,
        depth=request.depth,
        problems=tuple(request.problems),
        rerun_of=origin.get("rerun_of"),
        adopted=_adopted(adopted) if isinstance(adopted, dict) else None,
    )


def _adopted(data: dict[str, Value]) -> Adopted:
    event, steps = data["event"], data["steps"]
    assert isinstance(event, dict)
    assert isinstance(steps, list | tuple)
    rest = {key: value for key, value in data.items() if key not in ("event", "steps")}
    return Adopted(**rest, event=Boundary(**event), steps=tuple(steps))  # type: ignore[arg-type]  # written from one
