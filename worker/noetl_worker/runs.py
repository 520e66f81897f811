"""One leased command from beginning to end: what it needs is put together, driven and told.

Called by the worker's loop for each command. Whatever goes wrong here, even in our own code, ends
as an end of that run: a worker never dies of one.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import orjson

from noetl_core.engine.clock import iso
from noetl_core.engine.events import Fact, KeychainResolved
from noetl_core.engine.triggers import EndStatus, RunEnd
from noetl_core.load import load_data
from noetl_core.model import Playbook
from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.pipeline import CtxView, Plan, RunScope, RunTask, compile_plan
from noetl_core.values import Value
from noetl_core.wire import Command
from noetl_worker.children import LeaseChildren
from noetl_worker.client import OperatorClient
from noetl_worker.drive import Driver
from noetl_worker.keychain import KeychainError, StepKeychain, Tokens
from noetl_worker.logs import RunLog, TaskLog
from noetl_worker.pools import Pools
from noetl_worker.redact import Redactor
from noetl_worker.report import Reporter
from noetl_worker.results import LeaseResults, ResultLost
from noetl_worker.settings import WorkerSettings
from noetl_worker.telling import Telling
from noetl_worker.tools.base import ToolContext, ToolSettings
from noetl_worker.tools.registry import ToolRegistry, known_kinds

_log = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")
MOST_PLAYBOOKS = 200
MOST_WORKLOADS = 64
"""How many of each are kept. Every request names them, so they are not too many."""
Slot = Callable[[], AbstractContextManager[None]]


class Known:
    """Playbooks, workloads and plans that came with earlier commands."""

    def __init__(self) -> None:
        self._kinds = known_kinds()
        self.playbooks: dict[str, Playbook] = {}
        self.workloads: dict[str, dict[str, Value]] = {}
        self._plans: dict[tuple[str, str], Plan] = {}

    def learn(self, playbooks: dict[str, Value], workloads: dict[str, Value]) -> None:
        for digest, document in playbooks.items():
            playbook = load_data(document, self._kinds).playbook
            if playbook is not None:
                self.playbooks[digest] = playbook
        for execution_id, workload in workloads.items():
            assert isinstance(workload, dict)
            self.workloads[execution_id] = workload
        _bounded(self.playbooks, MOST_PLAYBOOKS)
        _bounded(self.workloads, MOST_WORKLOADS)

    def has(self, command: Command) -> bool:
        """Whether all that a command needs is at hand; it is, from here on, the last to go."""
        execution_id = str(command.execution["id"])
        if command.digest not in self.playbooks or execution_id not in self.workloads:
            return False
        self.playbooks[command.digest] = self.playbooks.pop(command.digest)
        self.workloads[execution_id] = self.workloads.pop(execution_id)
        return True

    def plan(self, digest: str, step: str) -> Plan:
        found = self._plans.get((digest, step))
        if found is None:
            playbook = self.playbooks[digest]
            written = playbook.step(step)
            assert written is not None, f"no step {step}"
            found = compile_plan(playbook, written, self._kinds)
            self._plans[digest, step] = found
            _bounded(self._plans, 2_000)
        return found


def _bounded(held: dict[K, V], most: int) -> None:
    while len(held) > most:
        held.pop(next(iter(held)))


class LeasedRun:
    """A command in our hands."""

    def __init__(
        self,
        command: Command,
        *,
        known: Known,
        client: OperatorClient,
        reporter: Reporter,
        registry: ToolRegistry,
        pools: Pools,
        tokens: Tokens,
        settings: WorkerSettings,
        without_slot: Slot,
    ) -> None:
        self.command = command
        self._known, self._client, self._reporter = known, client, reporter
        self.registry, self._pools, self._settings = registry, pools, settings
        self._without_slot = without_slot
        self._tool_settings = ToolSettings(allow_link_local=settings.allow_link_local)
        self.redactor = Redactor()
        self._entries = known.playbooks[command.digest].keychain
        self._workload = known.workloads[str(command.execution["id"])]
        self._tokens = tokens
        self._keychain: StepKeychain | None = None
        self._logs = RunLog(self.redactor, _now, wake=lambda: reporter.wake(False))
        self.telling = Telling.of(command, self._logs, self._mask, reporter.wake, self.interrupt)
        self._driver: Driver | None = None
        self._cancelled: TaskError | None = None

    def interrupt(self, error: TaskError) -> None:
        """End it over any policy; the first reason counts."""
        self._cancelled = self._cancelled or error
        if self._driver is not None:
            self._driver.interrupt(error)

    async def run(self) -> None:
        """Run it and report it; returns when the operator has its end, or the lease is gone."""
        self._reporter.open(self.telling)
        try:
            end = await self._end()
            try:
                await self.telling.finish(self._masked_end(end))
            except orjson.JSONEncodeError as error:
                await self.telling.finish(_internal(error))
        finally:
            self._reporter.close(self.telling)

    async def _end(self) -> RunEnd:
        try:
            if self.command.step is None:
                return await self._verify_keychain()
            with Scratch(self._settings.scratch) as scratch:
                return await self._drive(self.command.step, scratch)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            _log.exception("a run failed in the worker itself", extra=self._fields())
            return _internal(error)

    async def _verify_keychain(self) -> RunEnd:
        """Rule G3: every entry is resolved before the first step."""
        entries = [entry.name for entry in self._entries]
        try:
            self._open_keychain()
        except KeychainError as missing:
            error = _keychain_error(missing)
            await self.telling.say(KeychainResolved(entries=entries, error=error.as_json()))
            return RunEnd(status=EndStatus.ERROR, error=error)
        await self.telling.say(KeychainResolved(entries=entries))
        return RunEnd(status=EndStatus.OK)

    def _open_keychain(self) -> StepKeychain:
        """Secrets are read when a run begins, so that it sees those that changed."""
        folder = self._settings.keychain
        self._keychain = StepKeychain(self._entries, folder, self._tokens, self.redactor)
        return self._keychain

    async def _drive(self, step: str, scratch: Scratch) -> RunEnd:
        try:
            keychain = self._open_keychain()
        except KeychainError as missing:
            return RunEnd(status=EndStatus.ERROR, error=_keychain_error(missing))
        command = self.command
        scope = RunScope(
            run_id=command.run_id,
            execution=command.execution,
            workload=self._workload,
            args=command.args,
            ctx=CtxView(command.ctx),
            keychain=keychain.scope,
        )
        results = LeaseResults(self._client, self.telling.held)
        driver = Driver(
            command,
            self._known.plan(command.digest, step),
            scope,
            self.telling,
            results,
            _Tools(self, scratch, results),
            self._settings.worker,
        )
        self._driver = driver
        if self._cancelled is not None:
            driver.interrupt(self._cancelled)
        return await driver.run()

    def _mask(self, fact: Fact) -> Fact:
        """Rule K32: what leaves the worker shows no secret."""
        return fact if self.redactor.is_idle else self.redactor.record(fact)

    def _masked_end(self, end: RunEnd) -> RunEnd:
        return end if self.redactor.is_idle else self.redactor.record(end)

    def log(self, call: RunTask, iteration: str | None) -> TaskLog:
        return self._logs.task(call.label, call.attempt, iteration)

    def context(
        self,
        call: RunTask,
        iteration: str | None,
        log: TaskLog,
        scratch: Scratch,
        results: LeaseResults,
    ) -> ToolContext:
        """What one run of a task may use."""
        execution = call.scope.get("execution")
        assert isinstance(execution, dict)
        assert self._keychain is not None
        return ToolContext(
            call=call,
            folder=scratch,
            keychain=self._keychain,
            pools=self._pools,
            log=log,
            results=results,
            children=LeaseChildren(self._client, self.telling.held, iteration, self._without_slot),
            idempotency_key=str(execution["idempotency_key"]),
            redactor=self.redactor,
            settings=self._tool_settings,
        )

    def _fields(self) -> dict[str, Value]:
        command = self.command
        return {
            "execution": command.execution.get("id"),
            "step": command.step,
            "run": command.run_id,
        }


class Scratch:
    """The folder of a step-run: made when a task first needs it, gone when the run ends."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._folder: Path | None = None

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __call__(self) -> Path:
        if self._folder is None:
            self._parent.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix="run-", dir=self._parent))
        return self._folder


class _Tools:
    """Runs the tools of one lease; nothing they do or raise gets past here unmasked."""

    def __init__(self, run: LeasedRun, scratch: Scratch, results: LeaseResults) -> None:
        self._run, self._scratch, self._results = run, scratch, results

    async def run(self, call: RunTask, iteration: str | None) -> Outcome:
        started, began = _now(), time.monotonic()
        outcome = await self._outcome(call, iteration)
        took = round((time.monotonic() - began) * 1000, 3)
        redactor = self._run.redactor
        masked = outcome if redactor.is_idle else redactor.record(outcome)
        return replace(masked, duration_ms=took, started_at=started, ended_at=_now())

    async def _outcome(self, call: RunTask, iteration: str | None) -> Outcome:
        try:
            log = self._run.log(call, iteration)
            try:
                context = self._run.context(call, iteration, log, self._scratch, self._results)
                return await self._run.registry.run(context)
            finally:
                log.close()
        except ResultLost as lost:
            return Outcome(error=lost.error)


def _now() -> str:
    """For people: nothing is decided by a worker's clock."""
    return iso(datetime.now(UTC))


def _keychain_error(missing: KeychainError) -> TaskError:
    return TaskError(kind=ErrorKind.AUTH, code="KEYCHAIN", message=str(missing), source="keychain")


def _internal(error: Exception) -> RunEnd:
    message = f"the worker failed: {type(error).__name__}"
    found = TaskError(kind=ErrorKind.UNKNOWN, code="WORKER", message=message, source="worker")
    return RunEnd(status=EndStatus.ERROR, error=found)
