"""Simulated workers: they drive the real pipelines with scripted outcomes, and report.

A job is one leased command in a worker's hands. Every call of `step` does one small thing, so that
a simulation can stop the world between any two of them.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from noetl_core.engine import ids
from noetl_core.engine.events import (
    CtxPatched,
    Fact,
    IterationStarted,
    KeychainResolved,
    StepStarted,
)
from noetl_core.engine.triggers import EndStatus, Reported, RunEnd, StartChild, Verdict
from noetl_core.model import Playbook
from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.pipeline.loops import LocalLoop
from noetl_core.pipeline.plan import Plan, compile_plan
from noetl_core.pipeline.requests import (
    Answer,
    Emit,
    Fetch,
    Interrupted,
    Keep,
    PatchAnswer,
    PatchCtx,
    Pipeline,
    PipelineEnd,
    Request,
    RunTask,
    Sleep,
)
from noetl_core.pipeline.run import pipeline
from noetl_core.pipeline.scopes import CtxView, Iteration, RunScope, iter_chain
from noetl_core.values import Value
from noetl_operator.store.memory import Memory
from noetl_operator.store.port import Leased
from tests.support.script import Script

T = TypeVar("T")
STOPPED = TaskError(kind=ErrorKind.CANCELLED, message="told to stop")


@dataclass
class World:
    """What all jobs of a simulation share."""

    playbook: Playbook
    script: Script
    memory: Memory
    execution: dict[str, Value]
    workload: dict[str, Value]
    plans: dict[str, Plan] = field(default_factory=dict)
    children: dict[str, Outcome] = field(default_factory=dict)
    """How each child execution will end."""

    def plan(self, step: str) -> Plan:
        if step not in self.plans:
            found = self.playbook.step(step)
            assert found is not None
            self.plans[step] = compile_plan(self.playbook, found)
        return self.plans[step]


@dataclass
class _Pipe:
    """A pipeline under way and what it gets told next."""

    path: str | None
    generator: Pipeline
    answer: Answer = None


@dataclass
class Asking:
    """A pipeline that waits for a child execution."""

    pipe: _Pipe
    wish: StartChild
    taken: bool = False
    """Whether the control plane has answered."""


class Job:
    """One leased command."""

    def __init__(
        self, world: World, worker: str, leased: Leased, ctx: dict[str, Value], number: int
    ) -> None:
        self.number = number
        self.world = world
        self.worker = worker
        self.lease_id, self.epoch = leased.lease_id, leased.epoch
        self.command = leased.command
        self.acked = 0
        self.buffer: list[Fact] = []
        self.pipes: dict[str | None, _Pipe] = {}
        self.loop: LocalLoop | None = None
        self.waiting: list[tuple[_Pipe, CtxPatched]] = []
        """Patches that were not judged yet, in order."""
        self.asking: dict[str, Asking] = {}
        """Child executions that pipelines wait for, by id."""
        self.end: RunEnd | None = None
        self.stopped = False
        self.step_name = str(self.command["step"])
        self.run_id = str(self.command["run_id"])
        self.path = self.command["iteration"]
        self._begin(ctx)

    def _begin(self, ctx: dict[str, Value]) -> None:
        if self.command["step"] is None:
            self.buffer.append(KeychainResolved(run_id=self.run_id, entries=[]))
            self.end = RunEnd(status=EndStatus.OK)
            return
        plan = self.world.plan(self.step_name)
        scope = RunScope(
            run_id=self.run_id,
            execution=self.world.execution,
            workload=self.world.workload,
            args=self.command["args"],  # type: ignore[arg-type]
            ctx=CtxView(ctx),
        )
        self.plan, self.scope = plan, scope
        iters: list[dict[str, Value]] = self.command["iters"]  # type: ignore[assignment]
        path = str(self.path) if self.path is not None else None
        here = {"step": self.step_name, "run_id": self.run_id}
        if path is None:
            self.buffer.append(StepStarted(**here, worker=self.worker, epoch=self.epoch))
        else:
            self.buffer.append(IterationStarted(**here, iteration=path, worker=self.worker))
        if len(plan.levels) > len(iters):
            window = int(self.command["window"])  # type: ignore[call-overload]
            items = self.command["items"]
            self.loop = LocalLoop(
                plan, scope, items, window, iters=iters, path=path, worker=self.worker
            )
            self._take_more()
        elif path is None:
            self.pipes[None] = _Pipe(None, pipeline(plan, scope))
        else:
            inside = Iteration(path, iter_chain(iters))
            self.pipes[path] = _Pipe(path, pipeline(plan, scope, inside))

    # Working

    def step(self, random: Random) -> bool:
        """One request of one pipeline; False where all wait for an answer or it is over."""
        ready = [pipe for pipe in self.pipes.values() if not self._is_waiting(pipe)]
        if not ready:
            return False
        self._advance(ready[random.randrange(len(ready))])
        return True

    def _is_waiting(self, pipe: _Pipe) -> bool:
        if any(pipe is one for one, _ in self.waiting):
            return True
        return any(pipe is asking.pipe for asking in self.asking.values())

    def _advance(self, pipe: _Pipe) -> None:
        answer, pipe.answer = pipe.answer, None
        try:
            request = pipe.generator.send(answer)
        except StopIteration as over:
            self._pipe_ended(pipe, over.value)
            return
        self._serve(pipe, request)

    def _serve(self, pipe: _Pipe, request: Request) -> None:
        match request:
            case PatchCtx():
                self.buffer.append(request.fact)
                self.waiting.append((pipe, request.fact))
            case RunTask() if request.kind == "playbook":
                self._ask(pipe, request)
            case RunTask():
                pipe.answer = self._run(request, pipe.path)
            case _:
                pipe.answer = self._simple(request)

    def _run(self, task: RunTask, path: str | None) -> Outcome:
        if task.kind == "noop":
            return Outcome(result=task.inputs.get("result"))
        script = self.world.script
        return script.outcome(self.step_name, path, task.label, task.inputs["args"], task.attempt)

    # Child executions

    def _ask(self, pipe: _Pipe, task: RunTask) -> None:
        workload = task.inputs["workload"]
        place = (self.step_name, pipe.path, task.label)
        outcome = self.world.script.child(*place, workload, task.attempt)
        execution_id = str(self.world.execution["id"])
        child = ids.child_execution(execution_id, self.run_id, pipe.path, task.label, task.task_run)
        self.world.children[child] = outcome
        wish = StartChild(
            lease_id=self.lease_id,
            epoch=self.epoch,
            task=task.label,
            task_run=task.task_run,
            playbook=str(task.inputs["playbook"]),
            workload=workload,  # type: ignore[arg-type]
            wait=True,
            iteration=pipe.path,
        )
        self.asking[child] = Asking(pipe, wish)

    def child_ended(self, child: str, outcome: Outcome) -> None:
        """The end of a child is in the log: the task that waits for it ends."""
        self.asking.pop(child).pipe.answer = outcome

    def _simple(self, request: Request) -> Answer:
        match request:
            case Emit():
                self.buffer.append(request.fact)
            case Fetch():
                content = self.world.memory.get_result(str(request.ref["key"]))
                assert content is not None, "a reference to something that was never stored"
                return json.loads(content)  # type: ignore[no-any-return]
            case Keep():
                self.world.memory.put_result(str(request.ref["key"]), request.content)
            case Sleep():
                pass
            case _:
                raise AssertionError(request)
        return None

    def _pipe_ended(self, pipe: _Pipe, end: PipelineEnd) -> None:
        del self.pipes[pipe.path]
        if self.loop is None:
            self.end = self._run_end(end)
            return
        assert pipe.path is not None
        fact = self.loop.ended(pipe.path, end)
        if fact is not None:
            self.buffer.append(fact)
        self._take_more()

    def _run_end(self, end: PipelineEnd) -> RunEnd:
        if end.error is None:
            return RunEnd(status=EndStatus.OK, result=end.result, writes=end.writes)
        stopped = self.stopped and end.error.kind is ErrorKind.CANCELLED
        status = EndStatus.CANCELLED if stopped else EndStatus.ERROR
        return RunEnd(status=status, error=end.error, task=end.task, writes=end.writes)

    def _take_more(self) -> None:
        assert self.loop is not None
        if self.loop.stopping is not None:
            self._interrupt_all()
        elif self.end is None:
            for iteration in self._drive(self.loop.take()):
                made = pipeline(self.plan, self.scope, iteration)
                self.pipes[iteration.path] = _Pipe(iteration.path, made)
        if self.loop.stopping is not None and self.pipes:
            self._interrupt_all()
        if self.loop.is_over and self.end is None:
            self.end = self.loop.end()

    def _drive(self, generator: Generator[Request, Answer, T]) -> T:
        answer: Answer = None
        while True:
            try:
                request = generator.send(answer)
            except StopIteration as over:
                return over.value  # type: ignore[no-any-return]
            answer = self._simple(request)

    # Stopping

    def stop(self) -> None:
        """The control plane wants it to end."""
        if self.end is not None or self.stopped:
            return
        self.stopped = True
        if self.loop is not None:
            self.loop.stop(STOPPED)
            self._take_more()
        else:
            self._interrupt_all()

    def _interrupt_all(self) -> None:
        for pipe in list(self.pipes.values()):
            if pipe.path not in self.pipes:
                continue
            self.waiting = [(one, fact) for one, fact in self.waiting if one is not pipe]
            self.asking = {c: one for c, one in self.asking.items() if one.pipe is not pipe}
            self._interrupt(pipe)

    def _interrupt(self, pipe: _Pipe) -> None:
        try:
            request = pipe.generator.throw(Interrupted(STOPPED))
            while True:
                self._serve(pipe, request)
                self.waiting = [(one, fact) for one, fact in self.waiting if one is not pipe]
                answer, pipe.answer = pipe.answer, None
                request = pipe.generator.send(answer)
        except StopIteration as over:
            self._pipe_ended(pipe, over.value)
        except Interrupted:
            # It had not begun.
            self._pipe_ended(pipe, PipelineEnd(error=STOPPED))

    # Reporting

    def report(self) -> Reported | None:
        """What is to be told now: up to the first patch, which waits for its verdict."""
        batch: list[Fact] = []
        for fact in self.buffer:
            batch.append(fact)
            if isinstance(fact, CtxPatched):
                break
        whole = len(batch) == len(self.buffer)
        end = self.end if whole and not self.waiting_for(batch) else None
        if not batch and end is None:
            return None
        return Reported(
            lease_id=self.lease_id,
            epoch=self.epoch,
            first=self.acked,
            facts=tuple(batch),
            end=end,
        )

    def waiting_for(self, batch: list[Fact]) -> bool:
        """Whether the batch ends with a patch whose verdict somebody waits for."""
        return bool(batch) and isinstance(batch[-1], CtxPatched) and bool(self.waiting)

    def answered(self, sent: Reported, verdict: Verdict) -> bool:
        """Take in the answer to the report that is under way; False where the job is over."""
        if verdict is Verdict.GONE:
            return False
        assert verdict is not Verdict.AHEAD, "the control plane lost facts that it had taken"
        if sent.first != self.acked:
            return True
        count = len(sent.facts)
        refused = verdict in (Verdict.CONFLICT, Verdict.TOO_LARGE)
        last = sent.facts[-1] if sent.facts else None
        del self.buffer[:count]
        self.acked += count - refused
        if isinstance(last, CtxPatched):
            self._patch_judged(last, refused)
        return sent.end is None

    def _patch_judged(self, fact: CtxPatched, refused: bool) -> None:
        error = TaskError(kind=ErrorKind.CTX_CONFLICT, message="refused") if refused else None
        for at, (pipe, waits_for) in enumerate(self.waiting):
            if waits_for is fact:
                del self.waiting[at]
                pipe.answer = PatchAnswer(error)
                return
