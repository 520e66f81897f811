"""What must be true in the end, execution by execution."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from e2e.chaos.load import Shape
from noetl_cli.local.verifying import verify
from noetl_core.engine import events as ev
from noetl_core.pipeline.scopes import idempotency_key
from noetl_operator.store.postgres import PostgresStore
from noetl_operator.store.reading import Reading

_ENDS = (ev.StepDone, ev.StepFailed, ev.LoopDone, ev.StepCancelled)


@dataclass(slots=True)
class Findings:
    """What was counted, and what is wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


async def check(
    store: PostgresStore, connection: Any, shapes: dict[str, Shape], made: dict[str, str]
) -> Findings:
    """`made`: the executions that were asked for, and the shape of each."""
    found = Findings()
    rows = await connection.fetch(
        "SELECT execution_id::text AS id, playbook, parent_id::text, finished_at"
        " FROM noetl.execution"
    )
    known = {row["id"]: row for row in rows}
    for execution_id in made.keys() - known.keys():
        found.wrong.append(f"{execution_id} was taken and is lost")
    children: Counter[str] = Counter(row["parent_id"] for row in rows if row["parent_id"])
    for row in rows:
        shape = shapes[row["playbook"]]
        found.counts["executions"] += 1
        if row["finished_at"] is None:
            found.wrong.append(f"{row['id']} ({shape.name}) is stuck")
            continue
        wrong = await _execution(store, connection, shape, row["id"], found.counts)
        if children[row["id"]] != shape.children:
            wrong.append(f"has {children[row['id']]} children")
        found.wrong += [f"{row['id']} ({shape.name}): {one}" for one in wrong]
    for table in ("step_run", "action"):
        left = await connection.fetchval(f"SELECT count(*) FROM noetl.{table}")
        if left and not any("stuck" in one for one in found.wrong):
            found.wrong.append(f"{left} rows are left in {table}")
    return found


async def _execution(
    store: PostgresStore, connection: Any, shape: Shape, execution_id: str, counts: Counter[str]
) -> list[str]:
    reading = Reading(store)
    wrong: list[str] = []
    verified = await verify(reading, execution_id)
    counts["events"] += verified.events
    if verified.difference is not None:
        wrong.append(f"verify: {verified.difference}")
    facts = [event.fact for event in await store.events(execution_id, 0, 1_000_000)]
    state = (await reading.head(execution_id)).state
    if (state.phase.value, state.result) != ("Succeeded", shape.result):
        wrong.append(f"ended {state.phase}, {state.reason}, {state.message}: {state.result!r}")
    ends = Counter(fact.run_id for fact in facts if isinstance(fact, _ENDS))
    wrong += [f"run {run} ended {n} times" for run, n in ends.items() if n > 1]
    if sum(isinstance(fact, ev.WorkflowFinished) for fact in facts) != 1:
        wrong.append("did not finish exactly once")
    effects = await connection.fetch(
        "SELECT key, attempt, count(*) AS n FROM effect WHERE execution_id = $1 GROUP BY 1, 2",
        execution_id,
    )
    wrong += _effects(shape, facts, {(r["key"], r["attempt"]): r["n"] for r in effects}, counts)
    return wrong


def _effects(
    shape: Shape, facts: list[ev.Fact], effects: dict[tuple[str, int], int], counts: Counter[str]
) -> list[str]:
    """Each expected effect is there, and again only where a redelivery explains it."""
    wrong: list[str] = []
    counts["effects"] += sum(effects.values())
    if len(effects) != shape.effects:
        wrong.append(f"has {len(effects)} different effects instead of {shape.effects}")
    redelivered = [fact for fact in facts if isinstance(fact, ev.StepRedelivered)]
    counts["redeliveries"] += len(redelivered)
    again: dict[str, int] = {}
    for fact in facts:
        if isinstance(fact, ev.TaskStarted) and fact.run_id and fact.task:
            key = idempotency_key(fact.run_id, fact.iteration, fact.task, 0)
            again[key] = sum(_explains(one, fact) for one in redelivered)
    for (key, attempt), times in effects.items():
        counts["repeated effects"] += times - 1
        if key not in again:
            wrong.append(f"the effect {key} is of no task in the log")
        elif times > 1 + again[key]:
            wrong.append(
                f"attempt {attempt} of {key} happened {times} times, redelivered {again[key]} times"
            )
    return wrong


def _explains(redelivered: ev.StepRedelivered, fact: ev.Fact) -> bool:
    if redelivered.run_id != fact.run_id:
        return False
    own = redelivered.iteration
    return own is None or own == fact.iteration
