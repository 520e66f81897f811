"""A store that lives in memory: the same contract as Postgres, for simulations and quick tests.

`Memory` is synchronous, so that a simulation decides what happens between any two calls;
`MemoryStore` is its asynchronous face behind the port. Nothing survives the process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta

from noetl_core.engine.events import (
    Event,
    IterationDone,
    IterationFailed,
    LoopOpened,
    LoopStarted,
)
from noetl_core.engine.state import State
from noetl_core.engine.transition import Fence, Transition
from noetl_core.engine.triggers import Enqueue, IterationEnd
from noetl_core.values import Value
from noetl_operator.store.port import (
    Action,
    Conflict,
    Corrupt,
    Duplicate,
    Expired,
    Fenced,
    Leased,
    NewExecution,
    NotLeader,
    Outgoing,
    Shard,
    Snapshot,
)

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    return datetime.now(UTC)


def iso(moment: datetime) -> str:
    """Text of one width, so that it sorts as time does."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def as_data(command: Enqueue) -> dict[str, Value]:
    """A command as a worker gets it."""
    found: dict[str, Value] = {f.name: getattr(command, f.name) for f in fields(command)}
    found["iters"] = list(command.iters)
    return found


@dataclass(slots=True)
class _Led:
    owner: str
    epoch: int
    until: datetime


@dataclass(slots=True)
class _Row:
    """A command in the queue or in a worker's hands."""

    execution_id: str
    command: Enqueue
    pool: str
    epoch: int = 0
    """Of the current lease, or of the last one while it is queued."""
    owner: str | None = None
    until: datetime | None = None
    stop: bool = False

    def is_held(self, epoch: int) -> bool:
        return self.owner is not None and self.epoch == epoch


@dataclass(slots=True)
class _Execution:
    request: NewExecution
    state: State
    due_at: str | None = None
    again: bool = True
    log: list[Event] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)


class Memory:
    """The contract itself, one call at a time."""

    def __init__(self, clock: Clock = system_clock) -> None:
        self.clock = clock
        self.executions: dict[str, _Execution] = {}
        self.rows: dict[str, _Row] = {}
        self.outbox: dict[int, Action] = {}
        self.results: dict[str, bytes] = {}
        self._shards: dict[int, _Led] = {}
        self._requests: dict[tuple[str, str], str] = {}
        self._last_action = 0

    def now(self) -> str:
        return iso(self.clock())

    def take_shard(self, number: int, owner: str, ttl_s: float) -> Shard | None:
        now = self.clock()
        led = self._shards.get(number)
        if led is not None and led.owner != owner and led.until > now:
            return None
        epoch = led.epoch if led and led.owner == owner else (led.epoch if led else 0) + 1
        self._shards[number] = _Led(owner, epoch, now + timedelta(seconds=ttl_s))
        return Shard(number, epoch)

    def release_shard(self, number: int, owner: str) -> None:
        led = self._shards.get(number)
        if led is not None and led.owner == owner:
            led.owner, led.until = "", self.clock()

    def create(self, request: NewExecution) -> str:
        if request.request_key is not None:
            key = (request.namespace, request.request_key)
            known = self._requests.setdefault(key, request.execution_id)
            if known != request.execution_id:
                return known
        if request.execution_id not in self.executions:
            state = State(execution_id=request.execution_id)
            self.executions[request.execution_id] = _Execution(request, state)
        return request.execution_id

    def load(self, execution_id: str) -> Snapshot | None:
        found = self.executions.get(execution_id)
        return Snapshot(request=found.request, state=found.state.copy()) if found else None

    # The one transaction: everything is checked before anything is written.

    def commit(self, shard: Shard, transitions: Sequence[Transition]) -> None:
        self._check_leader(shard)
        ids = [t.execution_id for t in transitions]
        if len(set(ids)) != len(ids):
            raise ValueError("a batch holds one transition per execution")
        for transition in transitions:
            self._check(shard, transition)
        for transition in transitions:
            self._apply(transition)

    def _check_leader(self, shard: Shard) -> None:
        led = self._shards.get(shard.number)
        if led is None or led.epoch != shard.epoch:
            raise NotLeader(f"shard {shard.number} is not led under epoch {shard.epoch}")

    def _check(self, shard: Shard, transition: Transition) -> None:
        execution = self.executions.get(transition.execution_id)
        if execution is None or execution.request.shard != shard.number:
            raise Conflict(f"execution {transition.execution_id} is not in shard {shard.number}")
        self._check_fences(transition)
        if execution.state.seq != transition.expected:
            raise Conflict(f"expected seq {transition.expected}, found {execution.state.seq}")
        self._check_events(execution, transition)

    def _check_fences(self, transition: Transition) -> None:
        again = [Fence(one.lease_id, one.epoch) for one in transition.requeue]
        for fence in (*transition.held, *transition.ended, *again):
            row = self.rows.get(fence.lease_id)
            if row is None or not row.is_held(fence.epoch):
                raise Fenced(f"lease {fence.lease_id} is not held under epoch {fence.epoch}")
            if row.execution_id != transition.execution_id:
                raise Fenced(f"lease {fence.lease_id} is of another execution")

    def _check_events(self, execution: _Execution, transition: Transition) -> None:
        numbers = [event.seq for event in transition.events]
        first = transition.expected + 1
        if numbers != list(range(first, first + len(numbers))):
            raise ValueError(f"events are numbered {numbers}, not from {first} without gaps")
        if transition.state.seq != transition.expected + len(numbers):
            raise ValueError("the state is not the one after the events")
        keys = transition.dedup_keys
        if len(keys) != len(numbers):
            raise ValueError("every event has a dedup key")
        for index, key in enumerate(keys):
            if key in execution.keys or key in keys[:index]:
                raise Duplicate(f"{key} is in the log of {transition.execution_id} already")

    def _apply(self, transition: Transition) -> None:
        execution = self.executions[transition.execution_id]
        for stored in transition.store:
            self.put_result(stored.key, stored.content)
        execution.log.extend(transition.events)
        execution.keys.update(transition.dedup_keys)
        execution.state = transition.state
        execution.due_at, execution.again = transition.due_at, transition.again
        self._apply_queue(execution, transition)
        for effect in transition.outbox:
            self._send(transition.execution_id, effect)

    def _apply_queue(self, execution: _Execution, transition: Transition) -> None:
        for fence in transition.ended:
            del self.rows[fence.lease_id]
        for requeue in transition.requeue:
            row = self.rows[requeue.lease_id]
            row.owner, row.until, row.stop = None, None, False
        for lease_id in transition.revoke:
            self.rows.pop(lease_id, None)
        for lease_id in transition.stop:
            if lease_id in self.rows:
                self.rows[lease_id].stop = True
        for command in transition.enqueue:
            if command.lease_id in self.rows:
                raise AssertionError(f"{command.lease_id} is queued twice")
            pool = execution.request.pool_of(command.step)
            self.rows[command.lease_id] = _Row(transition.execution_id, command, pool)

    def _send(self, execution_id: str, effect: Outgoing) -> None:
        self._last_action += 1
        self.outbox[self._last_action] = Action(self._last_action, execution_id, effect)

    # The queue

    def lease(
        self, pool: str, owner: str, limit: int, ttl_s: float, lease_id: str | None = None
    ) -> list[Leased]:
        until = self.clock() + timedelta(seconds=ttl_s)
        found: list[Leased] = []
        for row in self._queued(pool, lease_id)[:limit]:
            row.owner, row.until, row.epoch = owner, until, row.epoch + 1
            found.append(_leased(row, iso(until)))
        return found

    def _queued(self, pool: str, lease_id: str | None) -> list[_Row]:
        if lease_id is not None:
            rows = [self.rows[lease_id]] if lease_id in self.rows else []
        else:
            rows = list(self.rows.values())
        return [row for row in rows if row.pool == pool and row.owner is None]

    def heartbeat(self, leases: Sequence[Fence], ttl_s: float) -> dict[str, bool]:
        until = self.clock() + timedelta(seconds=ttl_s)
        held: dict[str, bool] = {}
        for fence in leases:
            row = self.rows.get(fence.lease_id)
            if row is not None and row.is_held(fence.epoch):
                row.until = until
                held[fence.lease_id] = row.stop
        return held

    def expired(self, shard: int, limit: int) -> list[Expired]:
        now = self.clock()
        return [
            Expired(row.execution_id, lease_id, row.epoch)
            for lease_id, row in self.rows.items()
            if row.until is not None
            and row.until <= now
            and self.executions[row.execution_id].request.shard == shard
        ][:limit]

    def due(self, shard: int, limit: int) -> list[str]:
        now = self.now()
        return [
            execution_id
            for execution_id, one in self.executions.items()
            if one.request.shard == shard
            and (one.again or (one.due_at is not None and one.due_at <= now))
        ][:limit]

    def actions(self, shard: int, limit: int) -> list[Action]:
        mine = [
            action
            for action in self.outbox.values()
            if self.executions[action.execution_id].request.shard == shard
        ]
        return mine[:limit]

    def acted(self, ids: Sequence[int]) -> None:
        for action in ids:
            self.outbox.pop(action, None)

    # The log (`upto` reads it as it once was) and the results

    def events(self, execution_id: str, after: int = 0, limit: int = 1000) -> list[Event]:
        found = self.executions.get(execution_id)
        return found.log[after : after + limit] if found else []

    def iterations(
        self, execution_id: str, run_id: str, upto: int | None = None
    ) -> list[IterationEnd]:
        """Of each iteration its end. Of one that ended twice (a redelivered run), the later."""
        ends: dict[str, IterationEnd] = {}
        for fact in (event.fact for event in self.executions[execution_id].log[:upto]):
            if fact.run_id != run_id or fact.iteration is None:
                continue
            match fact:
                case IterationDone():
                    ended = IterationEnd(fact.iteration, fact.result, False, fact.writes)
                case IterationFailed():
                    ended = IterationEnd(fact.iteration, None, True, fact.writes)
                case _:
                    continue
            ends[fact.iteration] = ended
        return list(ends.values())

    def frames(self, execution_id: str, run_id: str, upto: int | None = None) -> dict[str, int]:
        return {
            event.fact.iteration or "": event.fact.total
            for event in self.executions[execution_id].log[:upto]
            if event.fact.run_id == run_id and isinstance(event.fact, LoopStarted | LoopOpened)
        }

    def put_result(self, key: str, content: bytes) -> None:
        _verify(key, content)
        self.results[key] = content

    def get_result(self, key: str) -> bytes | None:
        content = self.results.get(key)
        if content is not None:
            _verify(key, content)
        return content


def _leased(row: _Row, until: str) -> Leased:
    return Leased(
        execution_id=row.execution_id,
        lease_id=row.command.lease_id,
        epoch=row.epoch,
        command=as_data(row.command),
        until=until,
    )


def _verify(key: str, content: bytes) -> None:
    if hashlib.sha256(content).hexdigest() != key:
        raise Corrupt(f"the content of {key} has another digest")


class MemoryStore:
    """`Memory` behind the port."""

    def __init__(self, memory: Memory | None = None) -> None:
        self.memory = memory or Memory()

    async def now(self) -> str:
        return self.memory.now()

    async def take_shard(self, number: int, owner: str, ttl_s: float) -> Shard | None:
        return self.memory.take_shard(number, owner, ttl_s)

    async def release_shard(self, number: int, owner: str) -> None:
        self.memory.release_shard(number, owner)

    async def create(self, request: NewExecution) -> str:
        return self.memory.create(request)

    async def load(self, execution_id: str) -> Snapshot | None:
        return self.memory.load(execution_id)

    async def commit(self, shard: Shard, transitions: Sequence[Transition]) -> None:
        self.memory.commit(shard, transitions)

    async def lease(
        self, pool: str, owner: str, limit: int, ttl_s: float, lease_id: str | None = None
    ) -> list[Leased]:
        return self.memory.lease(pool, owner, limit, ttl_s, lease_id)

    async def heartbeat(self, leases: Sequence[Fence], ttl_s: float) -> dict[str, bool]:
        return self.memory.heartbeat(leases, ttl_s)

    async def expired(self, shard: int, limit: int) -> list[Expired]:
        return self.memory.expired(shard, limit)

    async def due(self, shard: int, limit: int) -> list[str]:
        return self.memory.due(shard, limit)

    async def actions(self, shard: int, limit: int) -> list[Action]:
        return self.memory.actions(shard, limit)

    async def acted(self, ids: Sequence[int]) -> None:
        self.memory.acted(ids)

    async def events(self, execution_id: str, after: int = 0, limit: int = 1000) -> list[Event]:
        return self.memory.events(execution_id, after, limit)

    async def iterations(self, execution_id: str, run_id: str) -> list[IterationEnd]:
        return self.memory.iterations(execution_id, run_id)

    async def frames(self, execution_id: str, run_id: str) -> dict[str, int]:
        return self.memory.frames(execution_id, run_id)

    async def put_result(self, key: str, content: bytes) -> None:
        self.memory.put_result(key, content)

    async def get_result(self, key: str) -> bytes | None:
        return self.memory.get_result(key)
