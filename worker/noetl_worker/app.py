"""A worker: leases commands, runs several at once, keeps its leases alive, goes in peace.

The composition root of the data plane. It opens no port; everything it knows comes from the
operator it calls and from the Secrets mounted beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.wire import (
    Command,
    HandBack,
    Heartbeat,
    Held,
    Knows,
    LeaseAnswer,
    LeaseRequest,
    ReportsAnswer,
)
from noetl_worker.client import PAUSES_S, ClientError, OperatorClient, Refused
from noetl_worker.drive import cancelled
from noetl_worker.oauth import OAuthTokens, Posted
from noetl_worker.pools import Pools
from noetl_worker.report import Reporter
from noetl_worker.runs import Known, LeasedRun
from noetl_worker.settings import WorkerSettings
from noetl_worker.tools.base import ToolSettings
from noetl_worker.tools.registry import ToolRegistry

_log = logging.getLogger(__name__)

Key: TypeAlias = tuple[str, int]
"""A lease and its epoch."""
LONG_POLL_S = 20.0
HEARTBEATS_PER_TTL = 3
"""How often a lease is prolonged before it would end."""
IDLE_CHECK_S = 15.0


class Worker:
    """One worker process."""

    def __init__(self, settings: WorkerSettings, client: OperatorClient) -> None:
        self._settings, self._client = settings, client
        self._registry = ToolRegistry()
        self._known = Known()
        self._pools = Pools()
        self._tokens = OAuthTokens(self._post_form)
        self._reporter = Reporter(
            client, settings.worker, settings.pool, self._knows, self._took_answer
        )
        # Whoever was started for one command takes no other.
        self._reporter.accepts = settings.lease is None
        self._runs: dict[Key, tuple[LeasedRun, asyncio.Task[None]]] = {}
        self._returns: set[asyncio.Task[None]] = set()
        self._waiting = 0
        self._slot_free = asyncio.Event()
        self._stopping = asyncio.Event()
        self._ttl_s = 5.0
        self._first = asyncio.Event()

    def stop(self) -> None:
        """Take nothing new; end when what runs has ended, or give it back."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until told to stop."""
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(work)
                for work in (
                    self._reporter.run(),
                    self._heartbeats(),
                    self._lease_loop(),
                    self._close_idle(),
                )
            ]
            await self._stopping.wait()
            self._reporter.accepts = False
            loops[2].cancel()
            await self._settle()
            for loop in loops:
                loop.cancel()
        await self._pools.close()
        await self._client.close()

    @property
    def _free(self) -> int:
        return self._settings.capacity - (len(self._runs) - self._waiting)

    async def _lease_loop(self) -> None:
        failures = 0
        while True:
            while self._free <= 0:
                self._slot_free.clear()
                await self._slot_free.wait()
            request = LeaseRequest(
                worker=self._settings.worker,
                pool=self._settings.pool,
                capacity=self._free,
                wait_s=LONG_POLL_S,
                knows=self._knows(),
                lease_id=self._settings.lease,
            )
            try:
                answer = await self._client.lease(request)
            except ClientError as error:
                level = logging.ERROR if isinstance(error, Refused) else logging.DEBUG
                _log.log(level, "no work from the operator: %s", error)
                await asyncio.sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
                failures += 1
                continue
            failures = 0
            self._took_lease(answer)
            if answer.retire:
                self.stop()
            elif self._settings.lease is not None and answer.commands:
                await self._all_over()
                self.stop()

    async def _all_over(self) -> None:
        while self._runs:
            self._slot_free.clear()
            await self._slot_free.wait()

    def _took_lease(self, answer: LeaseAnswer) -> None:
        self._known.learn(answer.playbooks, answer.workloads)
        self._begin(answer.commands)

    def _took_answer(self, answer: ReportsAnswer) -> None:
        self._known.learn(answer.playbooks, answer.workloads)
        self._begin(answer.commands)

    def _knows(self) -> Knows:
        return Knows(playbooks=tuple(self._known.playbooks), workloads=tuple(self._known.workloads))

    def _begin(self, commands: Iterable[Command]) -> None:
        for command in commands:
            self._ttl_s = command.ttl_s
            if not self._known.has(command):
                self._return(command)
                continue
            run = LeasedRun(
                command,
                known=self._known,
                client=self._client,
                reporter=self._reporter,
                registry=self._registry,
                pools=self._pools,
                tokens=self._tokens,
                settings=self._settings,
                without_slot=self._without_slot,
            )
            # A run that was lost may come back to the worker that still believes to hold it.
            for epoch in range(1, command.epoch):
                self._abandon((command.lease_id, epoch))
            task = asyncio.create_task(run.run(), name=f"run {command.lease_id}")
            key = run.telling.key
            self._runs[key] = run, task
            task.add_done_callback(partial(self._over, key))
            self._first.set()

    def _return(self, command: Command) -> None:
        """What a command needs was forgotten while it was under way: somebody else may have it."""
        held = Held(lease_id=command.lease_id, epoch=command.epoch, capability=command.capability)
        task = asyncio.create_task(
            self._hand_back((held,), "the worker does not hold its playbook")
        )
        self._returns.add(task)
        task.add_done_callback(self._returns.discard)

    async def _hand_back(self, held: tuple[Held, ...], reason: str) -> None:
        with contextlib.suppress(ClientError):
            await self._client.hand_back(
                HandBack(worker=self._settings.worker, leases=held, reason=reason)
            )

    def _over(self, key: Key, task: asyncio.Task[None]) -> None:
        self._runs.pop(key, None)
        self._slot_free.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a run ended badly", exc_info=error)

    async def _post_form(
        self, url: str, form: Mapping[str, str], basic: tuple[str, str] | None
    ) -> Posted:
        """The http tool's own way to post; imported when a token is first needed."""
        from noetl_worker.tools.http import form_post

        settings = ToolSettings(allow_link_local=self._settings.allow_link_local)
        return await form_post(self._pools, settings)(url, form, basic)

    @contextlib.contextmanager
    def _without_slot(self) -> Iterator[None]:
        """Rule I4: a run that only waits for a child holds no slot."""
        self._waiting += 1
        self._slot_free.set()
        try:
            yield
        finally:
            self._waiting -= 1

    async def _heartbeats(self) -> None:
        # How long a lease lasts is known with the first one.
        await self._first.wait()
        while True:
            await asyncio.sleep(self._ttl_s / HEARTBEATS_PER_TTL)
            held = self._held()
            if not held:
                continue
            try:
                answer = await self._client.heartbeat(
                    Heartbeat(worker=self._settings.worker, leases=held)
                )
            except ClientError as error:
                _log.warning("a heartbeat was not heard: %s", error)
                continue
            epochs = {one.lease_id: one.epoch for one in held}
            for lease_id in answer.cancelled:
                self._interrupt((lease_id, epochs[lease_id]), cancelled())
            for lease_id in answer.gone:
                self._abandon((lease_id, epochs[lease_id]))

    def _held(self) -> tuple[Held, ...]:
        return tuple(run.telling.held for run, _ in self._runs.values())

    def _interrupt(self, key: Key, error: TaskError) -> None:
        found = self._runs.get(key)
        if found is not None:
            found[0].interrupt(error)

    def _abandon(self, key: Key) -> None:
        """The run is in other hands: stop it and say nothing more of it."""
        found = self._runs.get(key)
        if found is not None:
            run, _ = found
            run.telling.drop()
            run.interrupt(
                TaskError(kind=ErrorKind.CANCELLED, message="the lease is gone", source="worker")
            )

    async def _close_idle(self) -> None:
        while True:
            await asyncio.sleep(IDLE_CHECK_S)
            await self._pools.close_idle()

    async def _settle(self) -> None:
        """Let what runs come to its end for a while, then give the rest back."""
        tasks = [task for _, task in self._runs.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=self._settings.stop_grace_s)
        left = list(self._runs.values())
        if not left:
            return
        held = self._held()
        for run, task in left:
            run.telling.drop()
            run.interrupt(cancelled())
            task.cancel()
        await asyncio.wait([task for _, task in left], timeout=self._settings.stop_grace_s)
        await self._hand_back(held, "the worker stops")


async def main(settings: WorkerSettings) -> None:
    """Run a worker until a signal, or the end of its standard input, tells it to stop."""
    worker = Worker(settings, OperatorClient(settings))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stop)
    if settings.exit_with_stdin:
        loop.add_reader(sys.stdin.fileno(), _stdin_ready, loop, worker)
    await worker.run()


def _stdin_ready(loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        loop.remove_reader(sys.stdin.fileno())
        worker.stop()
