"""Applies triggers to executions: one at a time for each, many in one commit.

Everyone who wants something of an execution comes here: ingest with reports, the sweeper with
time, people with wishes. A trigger's answer is given only after its facts are committed. While a
commit is under way, what arrives is collected for the next one: the busier, the larger the batches.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from noetl_core.engine.state import State
from noetl_core.engine.transition import Transition, transition
from noetl_core.engine.triggers import Decision, Enqueue, Needed, Tick, Trigger, Verdict
from noetl_operator.clock import StoreClock
from noetl_operator.live import Execution, Live
from noetl_operator.lookup import StoreLookup
from noetl_operator.merge import merged
from noetl_operator.starting import start_of
from noetl_operator.store import port
from noetl_operator.store.durable import DurableStore, Hand

_log = logging.getLogger(__name__)

MAX_EXECUTIONS = 256
"""Executions whose transitions go into one commit."""
MAX_TRIGGERS = 256
"""Triggers of one execution that go into one commit."""
MAX_ATTEMPTS = 5
"""How often a trigger is decided anew when its execution moved on meanwhile."""


@dataclass(slots=True)
class Want:
    """Free slots of the worker that reports: new commands of its pool are handed to it at once."""

    owner: str
    pool: str
    slots: int
    ttl_s: float
    given: list[tuple[str, Enqueue]] = field(default_factory=list)
    """(execution, command), filled when the commit stands; each is leased under epoch 1."""


@dataclass(slots=True, eq=False)
class _Item:
    trigger: Trigger
    want: Want | None
    answer: asyncio.Future[Decision]
    attempts: int = 0


@dataclass(slots=True, eq=False)
class _Job:
    """The triggers of one execution that go together, and what was decided of them."""

    execution_id: str
    items: list[_Item]
    execution: Execution | None = None
    state: State | None = None
    """The execution's state as it will be if the commit stands."""
    decisions: list[Decision] = field(default_factory=list)
    transition: Transition | None = None
    wants: dict[str, Want] = field(default_factory=dict)
    """Who wants the commands that a trigger brought, by lease."""
    hands: list[tuple[Enqueue, Want]] = field(default_factory=list)
    """Commands that are handed over with the commit."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What observers of the router are told."""

    execution: Execution
    transition: Transition
    handed: frozenset[str] = frozenset()
    """Leases among the new commands that a worker holds already."""


Observer = Callable[[Committed], None]


class Router:
    """The only writer of the log in this process."""

    def __init__(self, store: DurableStore, clock: StoreClock, live: Live) -> None:
        self._store, self._clock, self._live = store, clock, live
        self._lookup = StoreLookup(store)
        self._inbox: dict[str, deque[_Item]] = {}
        self._ready: deque[str] = deque()
        self._busy: set[str] = set()
        self._wake = asyncio.Event()
        self._ahead: dict[str, State] = {}
        """States that are being committed."""
        self._landed_some = asyncio.Event()
        self._until = 0.0
        self.shard: port.Shard | None = None
        self.observers: list[Observer] = []

    @property
    def leads(self) -> bool:
        """Whether this process surely leads. One that was stopped for a while cannot be sure."""
        return self.shard is not None and time.monotonic() < self._until

    def lead(self, shard: port.Shard, until: float = math.inf) -> None:
        """This process leads until then (by the monotonic clock), unless it is told again. What it
        remembers of another epoch may be wrong."""
        if shard != self.shard:
            self._live.clear()
        self.shard, self._until = shard, until

    def resign(self) -> None:
        self._live.clear()
        self.shard = None

    def _check_leads(self) -> None:
        if not self.leads:
            raise port.NotLeader("this process does not lead the shard")

    async def warm(self, executions: Sequence[str]) -> None:
        await self._live.warm(executions)

    async def settled(self, execution_id: str) -> Execution:
        """An execution with the `ctx` that is in the log: a commit under way that changes it is
        waited for, since what it queued may have been leased already."""
        while True:
            execution = await self._live.get(execution_id)
            self._check_leads()
            ahead = self._ahead.get(execution_id)
            if ahead is None or ahead.ctx_version == execution.state.ctx_version:
                return execution
            await self._landed_some.wait()

    async def apply(
        self, execution_id: str, trigger: Trigger, want: Want | None = None
    ) -> Decision:
        """What follows from a trigger, once it is committed."""
        self._check_leads()
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._put(execution_id, _Item(trigger, want, answer))
        return await answer

    def poke(self, execution_id: str) -> None:
        """Look at an execution without waiting for the answer."""
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_log_failure)
        self._put(execution_id, _Item(Tick(), None, answer))

    def _put(self, execution_id: str, item: _Item) -> None:
        inbox = self._inbox.get(execution_id)
        if inbox is None:
            self._inbox[execution_id] = inbox = deque()
            if execution_id not in self._busy:
                self._ready.append(execution_id)
                self._wake.set()
        inbox.append(item)

    async def run(self) -> None:
        """Commit until cancelled; whoever still waits then is told."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._ready:
                    await self._round()
        finally:
            for inbox in self._inbox.values():
                for item in inbox:
                    item.answer.cancel()
            self._inbox.clear()

    async def _round(self) -> None:
        jobs = self._take()
        items = [item for job in jobs for item in job.items]
        try:
            await self._process(jobs)
        except asyncio.CancelledError:
            for item in items:
                item.answer.cancel()
            raise
        finally:
            for job in jobs:
                self._busy.discard(job.execution_id)
                if job.execution_id in self._inbox:
                    self._ready.append(job.execution_id)

    def _take(self) -> list[_Job]:
        jobs: list[_Job] = []
        while self._ready and len(jobs) < MAX_EXECUTIONS:
            execution_id = self._ready.popleft()
            inbox = self._inbox.pop(execution_id, None)
            if not inbox:
                continue
            items = [inbox.popleft() for _ in range(min(len(inbox), MAX_TRIGGERS))]
            if inbox:
                self._inbox[execution_id] = inbox
            self._busy.add(execution_id)
            jobs.append(_Job(execution_id, items))
        return jobs

    async def _process(self, jobs: Sequence[_Job]) -> None:
        """Decide and commit all jobs together; apart where that is refused."""
        with contextlib.suppress(port.StoreError):
            await self._live.warm([job.execution_id for job in jobs])
        for job in jobs:
            await self._decide(job)
        try:
            await self._commit([job for job in jobs if job.transition is not None])
        except (port.NotLeader, port.Unavailable) as error:
            # Whether it stands is not known: everything is read again, and the log tells.
            self._live.clear()
            for item in (item for job in jobs for item in job.items):
                _fail(item, error)
        except Exception as error:
            await self._one_by_one(jobs, error)
        else:
            for job in jobs:
                self._settle(job)
        finally:
            self._landed(jobs)

    def _landed(self, jobs: Sequence[_Job]) -> None:
        """Nothing of these is under way any more: whoever waits may look."""
        for job in jobs:
            self._ahead.pop(job.execution_id, None)
        self._landed_some.set()
        self._landed_some.clear()

    async def _commit(self, changed: list[_Job]) -> None:
        self._check_leads()
        if not changed:
            # A verdict that writes nothing meets no fence: only a leader may give one.
            return
        assert self.shard is not None
        _hand_over(changed)
        hands = {
            command.lease_id: Hand(want.owner, want.ttl_s)
            for job in changed
            for command, want in job.hands
        }
        transitions = [job.transition for job in changed if job.transition is not None]
        await self._store.commit(self.shard, transitions, hands)

    async def _one_by_one(self, jobs: Sequence[_Job], refusal: Exception) -> None:
        """Find out which trigger was refused: the others must not suffer for it."""
        for job in jobs:
            self._live.drop(job.execution_id)
        items = [(job.execution_id, item) for job in jobs for item in job.items]
        if len(items) > 1:
            for execution_id, item in items:
                await self._process([_Job(execution_id, [item])])
            return
        for execution_id, item in items:
            item.attempts += 1
            if isinstance(refusal, port.Fenced):
                await self._answer_gone(execution_id, item)
            elif isinstance(refusal, port.Conflict) and item.attempts < MAX_ATTEMPTS:
                await self._process([_Job(execution_id, [item])])
            else:
                _log.error("a commit failed", exc_info=refusal, extra={"execution": execution_id})
                _fail(item, refusal)

    async def _answer_gone(self, execution_id: str, item: _Item) -> None:
        try:
            execution = await self._live.get(execution_id)
        except Exception as error:
            _fail(item, error)
            return
        _resolve(item, Decision((), (), (), execution.state, Verdict.GONE))

    async def _decide(self, job: _Job) -> None:
        """Run the job's triggers one after the other on the same state."""
        try:
            job.execution = await self._live.get(job.execution_id)
            job.state = job.execution.state
        except Exception as error:
            for item in job.items:
                _fail(item, error)
            job.items.clear()
            return
        for index, item in enumerate(job.items):
            try:
                decided = await self._decide_one(job, item.trigger)
            except Exception as error:
                if not isinstance(error, port.StoreError):
                    _log.exception("a decision failed", extra={"execution": job.execution_id})
                _fail(item, error)
                self._put_back(job, index + 1)
                return
            if decided is None:
                self._put_back(job, index)
                return
            self._take_in(job, item, *decided)

    def _take_in(self, job: _Job, item: _Item, decision: Decision, step: Transition) -> None:
        assert job.execution is not None
        job.decisions.append(decision)
        # A look that found nothing is committed all the same: it was what `due_at` asked for.
        if not step.events and not (isinstance(item.trigger, Tick) and step.expected):
            return
        job.transition = merged(job.transition, step) if job.transition else step
        job.state = self._ahead[job.execution_id] = decision.state
        if item.want is not None:
            job.wants |= dict.fromkeys((one.lease_id for one in step.enqueue), item.want)

    async def _decide_one(self, job: _Job, trigger: Trigger) -> tuple[Decision, Transition] | None:
        """None: it needs the log as it will be after what was decided before it."""
        assert job.execution is not None
        assert job.state is not None
        if isinstance(trigger, Tick) and not job.state.seq:
            # It was registered, and whoever wanted to start it did not come to it.
            trigger = start_of(job.execution.request)
        self._lookup.forget_loops()
        program, state = job.execution.program, job.state
        while True:
            try:
                return transition(program, state, trigger, self._clock.now(), self._lookup)
            except Needed as needed:
                if needed.loop is not None and job.transition is not None:
                    return None
                await self._lookup.fetch(job.execution_id, needed)

    def _put_back(self, job: _Job, index: int) -> None:
        """Leave the rest of a job's triggers for the next round, in order."""
        rest = [item for item in job.items[index:] if not item.answer.done()]
        del job.items[index:]
        inbox = self._inbox.setdefault(job.execution_id, deque())
        inbox.extendleft(reversed(rest))

    def _settle(self, job: _Job) -> None:
        """The commit stands: tell everyone."""
        for item, decision in zip(job.items, job.decisions, strict=False):
            _resolve(item, decision)
        if job.transition is None or job.execution is None:
            return
        job.execution.state = job.transition.state
        for command, want in job.hands:
            want.slots -= 1
            want.given.append((job.execution_id, command))
        handed = frozenset(command.lease_id for command, _ in job.hands)
        committed = Committed(job.execution, job.transition, handed)
        for observer in self.observers:
            try:
                observer(committed)
            except Exception:
                _log.exception("an observer failed", extra={"execution": job.execution_id})
        if job.transition.again:
            self.poke(job.execution_id)


def _hand_over(jobs: Sequence[_Job]) -> None:
    """Give new commands to the workers whose reports brought them, as far as they have room."""
    room: dict[int, int] = {}
    for job in jobs:
        job.hands = []
        assert job.transition is not None
        assert job.execution is not None
        for command in job.transition.enqueue:
            want = job.wants.get(command.lease_id)
            if want is None or want.pool != job.execution.request.pool_of(command.step):
                continue
            left = room.get(id(want), want.slots)
            if left > 0:
                room[id(want)] = left - 1
                job.hands.append((command, want))


def _resolve(item: _Item, decision: Decision) -> None:
    if not item.answer.done():
        item.answer.set_result(decision)


def _fail(item: _Item, error: Exception) -> None:
    if not item.answer.done():
        item.answer.set_exception(error)


def _log_failure(answer: asyncio.Future[Decision]) -> None:
    if not answer.cancelled() and (error := answer.exception()) is not None:
        _log.warning("an execution could not be looked at: %s", type(error).__name__)
