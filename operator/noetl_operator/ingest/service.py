"""What the ingest does for workers, apart from HTTP: lease, take reports, keep alive, results.

`web` gives it messages that are read and callers that are known. Every call about a run shows the
capability of its lease.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from noetl_core.engine.transition import Fence
from noetl_core.engine.triggers import Decision, Verdict, WorkerLost
from noetl_core.values import Value
from noetl_core.wire import (
    ChildAnswer,
    ChildEnd,
    ChildRequest,
    HandBack,
    Heartbeat,
    HeartbeatAnswer,
    Held,
    LeaseAnswer,
    LeaseRequest,
    Reports,
    ReportsAnswer,
    RunAnswer,
    RunReport,
)
from noetl_core.wire.children import NOT_FOUND, NOT_FOUND_CODE
from noetl_operator.ingest.capability import Capabilities
from noetl_operator.ingest.commands import Given, Packer, given_of
from noetl_operator.ingest.waiting import Waiting, waited
from noetl_operator.live import UnknownExecution
from noetl_operator.router import Committed, Router, Want
from noetl_operator.settings import OperatorSettings
from noetl_operator.starting import child_name
from noetl_operator.store import port
from noetl_operator.store.durable import DurableStore

_log = logging.getLogger(__name__)


class Forbidden(Exception):
    """The caller may not do this; the text says why."""


class Ingest:
    """The control plane's side of the protocol."""

    def __init__(
        self,
        store: DurableStore,
        router: Router,
        packer: Packer,
        capabilities: Capabilities,
        settings: OperatorSettings,
    ) -> None:
        self._store, self._router, self._packer = store, router, packer
        self._capabilities, self._settings = capabilities, settings
        self._waiting = Waiting()
        self._stopping = asyncio.Event()
        self.retiring: set[str] = set()
        """Workers that get nothing more to do."""
        self.heard: dict[str, float] = {}
        """When each worker last called, by the monotonic clock."""
        router.observers.append(self._committed)

    def stop(self) -> None:
        """Answer everyone who waits, and let nobody wait again."""
        self._stopping.set()

    def _committed(self, committed: Committed) -> None:
        request = committed.execution.request
        queued = [x for x in committed.transition.enqueue if x.lease_id not in committed.handed]
        steps = {one.step for one in queued}
        pools = {request.pool_of(step) for step in steps}
        if committed.transition.requeue:
            pools |= {request.pool, *request.pools.values()}
        for pool in pools:
            self._waiting.wake(pool)

    async def lease(self, request: LeaseRequest) -> LeaseAnswer:
        """Commands for a worker; waits for some as long as it likes to."""
        self.heard[request.worker] = time.monotonic()
        until = time.monotonic() + min(request.wait_s, self._settings.long_poll_s)
        while True:
            with self._waiting.watching(request.pool) as event:
                given = await self._lease(
                    request.pool, request.worker, request.capacity, request.lease_id
                )
                left = until - time.monotonic()
                if given or left <= 0 or self._stopping.is_set() or self._is_done(request):
                    break
                await waited(event, left)
        packed = await self._packer.pack(given, request.knows)
        return LeaseAnswer(
            commands=packed.commands,
            playbooks=packed.playbooks,
            workloads=packed.workloads,
            retire=not given and self._is_done(request),
        )

    def _is_done(self, request: LeaseRequest) -> bool:
        """Whether there is no use in waiting: the one command that the worker was started for is in
        other hands, or the worker is to end."""
        return request.lease_id is not None or request.worker in self.retiring

    async def _lease(
        self, pool: str, worker: str, capacity: int, lease_id: str | None = None
    ) -> list[Given]:
        limit = min(capacity, self._settings.max_lease)
        if limit < 1 or worker in self.retiring:
            return []
        if not self._router.leads:
            # Only the leader knows `ctx` as it is now.
            raise port.NotLeader("this replica does not lead")
        ttl = self._settings.lease_ttl_s
        leased = await self._store.lease(pool, worker, limit, ttl, lease_id)
        return [given_of(one) for one in leased]

    async def reports(self, request: Reports) -> ReportsAnswer:
        """Take what a worker says of its runs, and give it more to do."""
        self.heard[request.worker] = time.monotonic()
        room = 0 if request.worker in self.retiring else request.capacity
        want = Want(request.worker, request.pool, room, self._settings.lease_ttl_s)
        taken = [self._report(one, want) for one in request.reports]
        answers = await asyncio.gather(*taken)
        given = [Given(execution, 1, command) for execution, command in want.given]
        given += await self._lease(request.pool, request.worker, want.slots)
        packed = await self._packer.pack(given, request.knows)
        return ReportsAnswer(
            answers=tuple(answers),
            commands=packed.commands,
            playbooks=packed.playbooks,
            workloads=packed.workloads,
        )

    async def _report(self, one: RunReport, want: Want) -> RunAnswer:
        execution_id = self._execution_of(one.held)
        if one.logs:
            await self._store.append_logs(execution_id, one.held, one.report.step, one.logs)
        trigger = one.report.trigger(one.held.lease_id)
        try:
            decision = await self._router.apply(execution_id, trigger, want)
        except UnknownExecution:
            return RunAnswer(lease_id=one.held.lease_id, verdict=Verdict.GONE)
        except (TypeError, ValueError, AssertionError, LookupError, RecursionError):
            # What this run says can't be taken in, now or later: the other reports of the post must
            # not suffer for it. Its lease runs out, and its redeliveries are counted.
            _log.exception("a report failed", extra={"execution": execution_id})
            return RunAnswer(lease_id=one.held.lease_id, verdict=Verdict.GONE)
        return RunAnswer(
            lease_id=one.held.lease_id,
            verdict=decision.verdict,
            expected=decision.expected,
            message=decision.message,
        )

    def _execution_of(self, held: Held) -> str:
        found = self._capabilities.execution_of(held.capability, held.lease_id, held.epoch)
        if found is None:
            raise Forbidden(f"the capability is not good for lease {held.lease_id}")
        return found

    async def heartbeat(self, beat: Heartbeat) -> HeartbeatAnswer:
        """Prolong what a worker holds; tell it what is cancelled, gone or ended."""
        self.heard[beat.worker] = time.monotonic()
        for held in beat.leases:
            self._execution_of(held)
        fences = [Fence(held.lease_id, held.epoch) for held in beat.leases]
        alive = await self._store.heartbeat(fences, self._settings.lease_ttl_s) if fences else {}
        return HeartbeatAnswer(
            ttl_s=self._settings.lease_ttl_s,
            cancelled=tuple(lease for lease, stop in alive.items() if stop),
            gone=tuple(one.lease_id for one in fences if one.lease_id not in alive),
            children=await self._ended(beat.children),
        )

    async def _ended(self, children: Sequence[str]) -> tuple[ChildEnd, ...]:
        found = [await self._child_end(child) for child in children]
        return tuple(end for end in found if end is not None)

    async def _child_end(self, child: str) -> ChildEnd | None:
        snapshot = await self._store.load(child)
        if snapshot is None or not snapshot.state.phase.is_final:
            return None
        state = snapshot.state
        return ChildEnd(
            child=child,
            phase=state.phase.value,
            reason=NOT_FOUND if _is_missing(snapshot.request.problems) else state.reason or "",
            message=state.message,
            result=state.result,
        )

    async def hand_back(self, request: HandBack) -> None:
        """A worker that has to go: its runs are delivered again at once."""
        for held in request.leases:
            lost = WorkerLost(
                lease_id=held.lease_id,
                epoch=held.epoch,
                reason=request.reason,
                handed_back=True,
            )
            await self._router.apply(self._execution_of(held), lost)

    async def child(self, held: Held, request: ChildRequest) -> ChildAnswer:
        """Start a child execution for a `playbook` task."""
        execution_id = self._execution_of(held)
        decision = await self._router.apply(execution_id, request.trigger(held.lease_id))
        if decision.verdict not in (Verdict.ACCEPTED, Verdict.DUPLICATE):
            return ChildAnswer(verdict=decision.verdict, message=decision.message)
        child = _child_of(decision)
        if not request.wait:
            parent = await self._store.load(execution_id)
            name = child_name(parent.request.name, child) if parent else None
            return ChildAnswer(verdict=Verdict.ACCEPTED, child=child, execution=name)
        return ChildAnswer(verdict=Verdict.ACCEPTED, child=child, end=await self._child_end(child))

    async def put_result(self, held: Held, digest: str, content: bytes) -> None:
        await self._store.put_result(digest, content, self._execution_of(held))

    async def get_result(self, held: Held, digest: str) -> bytes | None:
        """Content that belongs to the caller's execution, or that its `ctx` or args refer to."""
        self._execution_of(held)
        return await self._store.get_result(digest)


def _is_missing(problems: Sequence[Value]) -> bool:
    """Whether there was no playbook to run (rule K37)."""
    return any(isinstance(one, dict) and one.get("code") == NOT_FOUND_CODE for one in problems)


def _child_of(decision: Decision) -> str:
    assert decision.message is not None, "the engine names the child"
    return decision.message
