"""Drives one leased command: its pipeline, or the iterations of its local loop.

The pipeline says what it wants, this does it: runs tools under their timeouts, sleeps, reports,
stores and fetches. One interruption reaches everything: the step's timeout, its deadline, a
cancellation, or the end of the lease.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Generator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, assert_never

from noetl_core.engine.events import IterationStarted, StepStarted
from noetl_core.engine.triggers import EndStatus, RunEnd
from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.pipeline import (
    Answer,
    Emit,
    Fetch,
    Interrupted,
    Iteration,
    Keep,
    LocalLoop,
    PatchCtx,
    PipelineEnd,
    Plan,
    Request,
    RunScope,
    RunTask,
    Sleep,
    iter_chain,
    pipeline,
)
from noetl_core.wire import Command
from noetl_worker.results import LeaseResults
from noetl_worker.storable import storable
from noetl_worker.telling import Telling

R = TypeVar("R")

STOP_S = 5.0
"""How long a tool may take to let go once it is cancelled."""
SQL_KINDS = frozenset({"postgres", "duckdb"})


class Tools(Protocol):
    async def run(self, call: RunTask, iteration: str | None) -> Outcome:
        """Run a tool once; never raises for what a tool may do."""


@dataclass(slots=True, eq=False)
class Driver:
    """One command under way."""

    command: Command
    plan: Plan
    scope: RunScope
    telling: Telling
    results: LeaseResults
    tools: Tools
    worker: str
    _interrupt: asyncio.Future[TaskError] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def interrupt(self, error: TaskError) -> None:
        """End it over any policy; the first reason counts."""
        if not self._interrupt.done():
            self._interrupt.set_result(error)

    async def run(self) -> RunEnd:
        """Everything from the first fact to how it ended."""
        if self.command.stop:
            self.interrupt(cancelled())
        await self._say_started()
        with self._time_limits():
            if self.command.items is not None:
                return await self._loop()
            return self._end(await self._pipeline(self._own_iteration()))

    async def _say_started(self) -> None:
        """A step-run starts once; an iteration of a distributed loop is none (rule E3)."""
        command, step = self.command, self.plan.step
        if command.iteration is None:
            await self.telling.say(
                StepStarted(
                    step=step, run_id=command.run_id, worker=self.worker, epoch=command.epoch
                )
            )
        elif command.items is None:
            await self.telling.say(
                IterationStarted(
                    step=step,
                    run_id=command.run_id,
                    iteration=command.iteration,
                    worker=self.worker,
                )
            )

    @contextlib.contextmanager
    def _time_limits(self) -> Generator[None, None, None]:
        """Rules D9 and K22: both end the step over any policy."""
        loop = asyncio.get_running_loop()
        limits = (
            (self.command.timeout_s, "STEP_TIMEOUT", "the step took longer than its timeout_s"),
            (self.command.remaining_s, "STEP_DEADLINE", "the step's deadline_s has passed"),
        )
        timers = [
            loop.call_later(
                seconds,
                self.interrupt,
                TaskError(kind=ErrorKind.TIMEOUT, code=code, message=message, source="step"),
            )
            for seconds, code, message in limits
            if seconds is not None
        ]
        try:
            yield
        finally:
            for timer in timers:
                timer.cancel()

    def _own_iteration(self) -> Iteration | None:
        path = self.command.iteration
        return None if path is None else Iteration(path, iter_chain(self.command.iters))

    def _end(self, end: PipelineEnd) -> RunEnd:
        if end.error is None:
            return RunEnd(status=EndStatus.OK, result=end.result, writes=end.writes)
        status = EndStatus.ERROR
        if end.error.kind is ErrorKind.CANCELLED and self._interrupt.done():
            status = EndStatus.CANCELLED
        return RunEnd(status=status, error=end.error, task=end.task, writes=end.writes)

    async def _pipeline(self, iteration: Iteration | None) -> PipelineEnd:
        return await self._drive(
            pipeline(self.plan, self.scope, iteration), iteration.path if iteration else None
        )

    async def _drive(self, generator: Generator[Request, Answer, R], iteration: str | None) -> R:
        """Send answers until the generator returns; an interruption is thrown in once."""
        answer: Answer = None
        try:
            request = next(generator)
            while True:
                try:
                    answer = await self._answer(request, iteration)
                except _Stopped as stop:
                    request = generator.throw(Interrupted(stop.error))
                    continue
                request = generator.send(answer)
        except StopIteration as over:
            found: R = over.value
            return found
        finally:
            generator.close()

    async def _answer(self, request: Request, iteration: str | None) -> Answer:
        match request:
            case Emit():
                await self.telling.say(request.fact)
                return None
            case RunTask():
                return await self._or_stop(self._task(request, iteration))
            case Sleep():
                await self._or_stop(asyncio.sleep(request.seconds))
                return None
            case PatchCtx():
                return await self._or_stop(self.telling.write(request.fact))
            case Fetch():
                return await self._or_stop(self.results.fetch(request.ref))
            case Keep():
                return await self._or_stop(self.results.keep(request.ref, request.content))
            case _:
                assert_never(request)

    async def _or_stop(self, work: Awaitable[R]) -> R:
        """The work's result, unless an interruption comes first: then it is cancelled."""
        if self._interrupt.done():
            if asyncio.iscoroutine(work):
                work.close()
            raise _Stopped(self._interrupt.result())
        task: asyncio.Future[R] = asyncio.ensure_future(work)
        both: set[asyncio.Future[R] | asyncio.Future[TaskError]] = {task, self._interrupt}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=STOP_S)
        if task.done() and not task.cancelled():
            return task.result()
        if not self._interrupt.done():
            self.interrupt(_ended_itself())
        raise _Stopped(self._interrupt.result())

    async def _task(self, call: RunTask, iteration: str | None) -> Outcome:
        seconds = task_timeout(call)
        try:
            async with asyncio.timeout(seconds):
                return storable(await self.tools.run(call, iteration), call.kind)
        except TimeoutError:
            kind = ErrorKind.DB_TIMEOUT if call.kind in SQL_KINDS else ErrorKind.TIMEOUT
            message = f"the task took longer than its timeout of {seconds:g} s"
            error = TaskError(kind=kind, code="TASK_TIMEOUT", message=message, source=call.kind)
            return Outcome(error=error)

    async def _loop(self) -> RunEnd:
        """All iterations of a local loop, as many at once as its windows allow (rule E3)."""
        loop = LocalLoop(
            self.plan,
            self.scope,
            self.command.items,
            self.command.window,
            iters=self.command.iters,
            path=self.command.iteration,
            worker=self.worker,
        )
        running: dict[asyncio.Task[PipelineEnd], str] = {}
        while True:
            if self._interrupt.done():
                loop.stop(self._interrupt.result())
            if loop.stopping is not None:
                # Those that still run are cut off; a second reason changes nothing for them.
                self.interrupt(_cut_off(loop.stopping))
            for iteration in await self._take(loop):
                running[asyncio.create_task(self._pipeline(iteration))] = iteration.path
            if loop.is_over:
                return loop.end()
            watched: set[asyncio.Future[PipelineEnd] | asyncio.Future[TaskError]] = {*running}
            if not self._interrupt.done():
                watched.add(self._interrupt)
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            for task in [task for task in running if task.done()]:
                await self._ended(loop, running.pop(task), task.result())

    async def _take(self, loop: LocalLoop) -> list[Iteration]:
        if loop.stopping is not None:
            return []
        return await self._drive(loop.take(), None)

    async def _ended(self, loop: LocalLoop, path: str, end: PipelineEnd) -> None:
        fact = loop.ended(path, end)
        if fact is not None:
            await self.telling.say(fact)


class _Stopped(Exception):
    """An interruption came while something was awaited."""

    def __init__(self, error: TaskError) -> None:
        super().__init__(error.message)
        self.error = error


def cancelled() -> TaskError:
    return TaskError(kind=ErrorKind.CANCELLED, message="the run was cancelled", source="step")


def _ended_itself() -> TaskError:
    """A tool that cancels the very task it runs in."""
    return TaskError(kind=ErrorKind.UNKNOWN, message="the tool ended itself", source="worker")


def _cut_off(error: TaskError) -> TaskError:
    """What iterations end with that another one's failure stopped."""
    if error.kind in (ErrorKind.CANCELLED, ErrorKind.TIMEOUT):
        return error
    return TaskError(kind=ErrorKind.CANCELLED, message="another iteration failed", source="loop")


def task_timeout(call: RunTask) -> float | None:
    """Seconds a whole task may take. Of `{connect, read}` the http tool itself takes care."""
    timeout = call.spec.get("timeout")
    if isinstance(timeout, int | float):
        return float(timeout)
    if isinstance(timeout, dict) and call.kind != "http":
        read = timeout.get("read")
        return float(read) if isinstance(read, int | float) else None
    return None
