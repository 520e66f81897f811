"""A simulated operator: it reads, decides, commits, answers; any of these may be its last."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from noetl_core.engine import Program
from noetl_core.engine.state import State
from noetl_core.engine.transition import Transition, transition
from noetl_core.engine.triggers import (
    Decision,
    IterationEnd,
    Needed,
    Start,
    Tick,
    Trigger,
    Verdict,
    WorkerLost,
)
from noetl_core.values import Value
from noetl_operator.store.memory import Memory
from noetl_operator.store.port import Conflict, Fenced, NotLeader, Shard

Reply = Callable[[Verdict], None]
SHARD_TTL_S = 10.0


@dataclass
class LogLookup:
    """What the store has, handed out only after it was asked for (as `Needed` demands)."""

    memory: Memory
    execution_id: str
    upto: int | None = None
    """Where replay stands: later iterations did not exist then."""
    asked: set[str] = field(default_factory=set)

    def result(self, key: str) -> Value | None:
        if key not in self.asked:
            return None
        content = self.memory.get_result(key)
        assert content is not None, f"{key} was never stored"
        return json.loads(content)  # type: ignore[no-any-return]

    def iterations(self, run_id: str) -> Sequence[IterationEnd] | None:
        if run_id not in self.asked:
            return None
        return self.memory.iterations(self.execution_id, run_id, self.upto)

    def frames(self, run_id: str) -> dict[str, int] | None:
        if run_id not in self.asked:
            return None
        return self.memory.frames(self.execution_id, run_id, self.upto)


def decided(
    program: Program, state: State, trigger: Trigger, now: str, lookup: LogLookup
) -> tuple[Transition, Decision]:
    """Decide, fetching what a decision turns out to need."""
    while True:
        try:
            decision, made = transition(program, state, trigger, now, lookup)
            return made, decision
        except Needed as needed:
            wanted = needed.result or needed.loop
            assert wanted is not None
            assert wanted not in lookup.asked, f"{wanted} was handed out and is asked for again"
            lookup.asked.add(wanted)


@dataclass
class Work:
    """A decision that is not committed yet."""

    trigger: Trigger
    now: str
    transition: Transition
    decision: Decision
    reply: Reply | None
    post: int
    """The number of the post that it is about, or 0."""


class Operator:
    """One process of the control plane."""

    def __init__(self, name: str, memory: Memory, program: Program) -> None:
        self.name = name
        self.memory = memory
        self.program = program
        self.execution_id = program.execution_id
        self.shard: Shard | None = None
        self.cached: State | None = None
        self.works: list[Work] = []
        """Decided on the same state, perhaps: only one of them can be committed as it is."""
        self.lost: list[Trigger] = []
        """What it had taken and will never finish."""

    def lead(self) -> bool:
        taken = self.memory.take_shard(0, self.name, SHARD_TTL_S)
        if taken != self.shard:
            self.forget()
        self.shard = taken
        return taken is not None

    def forget(self) -> None:
        self.cached = None
        self.lost += [work.trigger for work in self.works]
        self.works = []

    def state(self) -> State:
        if self.cached is None:
            found = self.memory.load(self.execution_id)
            assert found is not None
            self.cached = found.state
        return self.cached

    def decide(self, trigger: Trigger, reply: Reply | None = None, post: int = 0) -> None:
        """First half of what a message causes; nothing has happened yet."""
        now = self.memory.now()
        lookup = LogLookup(self.memory, self.execution_id)
        made, decision = decided(self.program, self.state(), trigger, now, lookup)
        self.works.append(Work(trigger, now, made, decision, reply, post))

    def commit(self, work: Work) -> bool:
        """Second half: the transaction. False where it did not happen (and may be tried again)."""
        self.works.remove(work)
        # A tick without events is committed all the same: it was what `due_at` asked for.
        is_tick = isinstance(work.trigger, Tick) and work.transition.expected > 0
        if not work.transition.events and not is_tick:
            return self.still_leads() and self.state().seq == work.transition.expected
        try:
            assert self.shard is not None
            self.memory.commit(self.shard, [work.transition])
        except (Conflict, Fenced):
            self.cached = None
            return False
        except NotLeader:
            self.shard = None
            self.forget()
            return False
        self.cached = work.transition.state
        return True

    def still_leads(self) -> bool:
        """Where nothing is to be written no fence is met, and a verdict on an old state is wrong:
        whoever does not lead any more must not give one."""
        before = self.shard
        return self.lead() and self.shard == before

    def sweep(self, deadline_at: str | None = None) -> Trigger | None:
        """What time alone asks for: a start, a tick, a lost worker."""
        for lost in self.memory.expired(0, 1):
            return WorkerLost(lease_id=lost.lease_id, epoch=lost.epoch, reason="lease expired")
        if self.memory.due(0, 1):
            return Tick() if self.state().seq else Start(deadline_at=deadline_at)
        return None
