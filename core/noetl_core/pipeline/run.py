"""The pipeline: tasks in order, each judged by its policy, as a generator without I/O (D1–D9).

The worker drives it, and so do tests: it yields what it wants done and receives what came of it.
It never raises for data; whatever goes wrong ends up in its `PipelineEnd`.

Per run of a task it reports, in this order: `task.started`; `result.stored` where the result is
large; `task.done`, `task.attempt.failed` or `task.failed`; `policy.task.evaluated`; `iter.patched`
and `ctx.patched`. Then comes the action.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace

from noetl_core.model import Action
from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.pipeline.judging import Judged, Judgement
from noetl_core.pipeline.keeping import NotKept, keep_entries, keep_result
from noetl_core.pipeline.plan import CompiledTask, Plan
from noetl_core.pipeline.reducing import INLINE_REDUCERS, refusal
from noetl_core.pipeline.references import HOLDERS, Names, Unfetched, resolved
from noetl_core.pipeline.requests import (
    Answer,
    Emit,
    Interrupted,
    PatchAnswer,
    PatchCtx,
    Pipeline,
    PipelineEnd,
    Request,
    RunTask,
    Sleep,
)
from noetl_core.pipeline.scopes import Iteration, RunScope, idempotency_key
from noetl_core.pipeline.telling import Teller, shortened
from noetl_core.templates import TemplateError
from noetl_core.values import Value


def pipeline(plan: Plan, run: RunScope, iteration: Iteration | None = None) -> Pipeline:
    """One run of a step's tasks: of the step itself, or of one iteration of its loop."""
    going = _Going(plan, run, iteration)
    try:
        return (yield from going.tasks())
    except Interrupted as stop:
        return (yield from going.interrupted(stop.error))


class _Going:
    """A pipeline under way."""

    __slots__ = (
        "_at_work",
        "_entries",
        "_holders",
        "_iter",
        "_kept",
        "_plan",
        "_run",
        "_runs",
        "_tell",
        "_total",
        "_visible",
        "_writes",
    )

    def __init__(self, plan: Plan, run: RunScope, iteration: Iteration | None) -> None:
        self._plan = plan
        self._run = run
        self._tell = Teller(plan.step, run.run_id, iteration.path if iteration else None)
        self._iter = iteration.iter if iteration else {}
        self._visible: Names = {"_prev": None}
        """`_prev` and the results of tasks by their labels."""
        self._holders = HOLDERS
        """Scopes in which references may stand."""
        self._kept: Value = None
        """`_prev` as events carry it."""
        self._entries: dict[str, int] = {}
        self._runs: dict[str, int] = {}
        self._total = 0
        self._writes: dict[str, Value] = {}
        self._at_work = False
        """A task was started and its end is not reported yet."""

    def tasks(self) -> Pipeline:
        at: int | None = 0
        tasks = self._plan.tasks
        while at is not None and at < len(tasks):
            moved = yield from self._enter(tasks[at], at)
            if isinstance(moved, PipelineEnd):
                return moved
            at = moved
        return PipelineEnd(result=self._kept, writes=self._writes or None)

    def interrupted(self, error: TaskError) -> Pipeline:
        if self._at_work:
            self._at_work = False
            # Whoever interrupts a second time wants no other end than this one.
            with suppress(Interrupted):
                yield Emit(self._tell.cut_off(error))
        return self._failed(error)

    def _failed(self, error: TaskError) -> PipelineEnd:
        task = self._tell.task or None
        return PipelineEnd(error=shortened(error), task=task, writes=self._writes or None)

    def _enter(
        self, task: CompiledTask, at: int
    ) -> Generator[Request, Answer, int | PipelineEnd | None]:
        """Run a task until its policy lets go of it. Answers the index to go on with, None for a
        break, or the end."""
        entry = self._entries.get(task.label, 0)
        self._entries[task.label] = entry + 1
        self._tell.task, self._tell.attempt = task.label, 1
        key = idempotency_key(self._tell.run_id, self._tell.iteration, task.label, entry)
        while True:
            if self._total >= self._plan.max_task_runs:
                return self._failed(_too_many_runs(self._plan.max_task_runs))
            judgement = yield from self._once(task, key)
            if judgement.failure is not None:
                return self._failed(judgement.failure)
            match judgement.action:
                case Action.RETRY:
                    if judgement.delay:
                        yield Sleep(judgement.delay)
                    self._tell.attempt += 1
                case Action.JUMP:
                    return self._plan.places[judgement.to or ""]
                case Action.BREAK:
                    return None
                case _:
                    return at + 1

    def _once(self, task: CompiledTask, key: str) -> Generator[Request, Answer, Judgement]:
        """Run a task once, judge it, report both and apply what the rule sets."""
        number = self._runs.get(task.label, 0)
        self._runs[task.label] = number + 1
        self._total += 1
        self._at_work = True
        yield Emit(self._tell.started(task.kind))
        outcome = yield from self._outcome(task, self._scope(key), number)
        outcome, kept = yield from self._keep(task, outcome)
        if outcome.ok:
            self._take(task, outcome.result, kept)
        judged = Judged(
            task,
            outcome,
            self._tell.attempt,
            # Anew: while the task ran, iterations beside this one may have written to `ctx`.
            self._scope(key),
            self._run.keychain,
            self._rule_holders(task),
            self._run.cache,
        )
        judgement = yield from judged.judge()
        retried = judgement.action is Action.RETRY
        # Before the fact leaves: whoever stops the pipeline there must not end the task again.
        self._at_work = False
        yield Emit(self._tell.ended(outcome, kept, retried))
        found = judgement.rule, judgement.action, judgement.to, judgement.delay
        yield Emit(self._tell.judged(*found))
        error = yield from self._apply(task, judgement)
        return judgement if error is None else replace(judgement, failure=error)

    def _outcome(
        self, task: CompiledTask, scope: Names, number: int
    ) -> Generator[Request, Answer, Outcome]:
        """What running the tool gives; an input that cannot be rendered is an error like others."""
        try:
            inputs, lent = yield from self._inputs(task, scope)
        except TemplateError as error:
            return Outcome(error=_template_error(task, error))
        except Unfetched as unfetched:
            return Outcome(error=unfetched.error)
        answer = yield RunTask(
            label=task.label,
            kind=task.kind,
            inputs=inputs,
            scope=lent,
            spec=task.spec,
            attempt=self._tell.attempt,
            task_run=number,
        )
        assert isinstance(answer, Outcome), f"a task is answered with an Outcome, not {answer!r}"
        if answer.ok and task.passes_prev:
            return replace(answer, result=self._visible["_prev"])
        return answer

    def _inputs(
        self, task: CompiledTask, scope: Names
    ) -> Generator[Request, Answer, tuple[dict[str, Value], Names]]:
        """The inputs rendered, and the scope in which the tool binds what was not."""
        cache, holders = self._run.cache, self._holders
        stored = task.stored.written
        if stored:
            view = yield from resolved(scope, task.stored.paths, holders, cache)
            stored = task.stored.render(view)
        lent: Names = {**scope, "keychain": self._run.keychain}
        view = yield from resolved(lent, task.inputs.paths, holders, cache)
        inputs = {**task.raw, **task.inputs.render(view), **stored}
        if task.bound:
            lent = yield from resolved(lent, task.bound, holders, cache)
        return inputs, lent

    def _keep(
        self, task: CompiledTask, outcome: Outcome
    ) -> Generator[Request, Answer, tuple[Outcome, Value]]:
        """The outcome, and its result as events carry it."""
        if not outcome.ok:
            return outcome, None
        is_prev = outcome.result is self._visible["_prev"]
        if is_prev and task.passes_prev and task.select is None:
            return outcome, self._kept
        try:
            kept = yield from keep_result(
                outcome.result, task, self._tell, self._plan.max_payload_bytes, self._run.cache
            )
        except NotKept as not_kept:
            return replace(outcome, result=None, error=not_kept.error), None
        return outcome, kept

    def _take(self, task: CompiledTask, result: Value, kept: Value) -> None:
        """The result of a task that ended ok is `_prev` and stands under its label (rule D5)."""
        if not task.passes_prev:
            own = {"_prev", task.label}
            self._holders = self._holders | own if task.may_yield_refs else self._holders - own
        elif "_prev" in self._holders:
            self._holders = self._holders | {task.label}
        self._visible = {**self._visible, "_prev": result, task.label: result}
        self._kept = kept

    def _apply(
        self, task: CompiledTask, judgement: Judgement
    ) -> Generator[Request, Answer, TaskError | None]:
        """Write what a rule sets: `iter` first (rule D4). Answers the error that ends it all."""
        limit, size = task.inline_max, self._plan.max_payload_bytes
        place, cache = self._tell, self._run.cache
        try:
            if judgement.set_iter:
                shown = yield from keep_entries(judgement.set_iter, limit, place, size, cache)
                self._iter = {**self._iter, **judgement.set_iter}
                yield Emit(self._tell.iter_patched(shown))
            if not judgement.set_ctx:
                return None
            refused = refusal(self._plan.reducers, judgement.set_ctx, self._run.ctx.value)
            if refused is not None:
                return refused
            inline = [k for k, how in self._plan.reducers.items() if how in INLINE_REDUCERS]
            patch = yield from keep_entries(judgement.set_ctx, limit, place, size, cache, inline)
        except NotKept as not_kept:
            return not_kept.error
        return (yield from self._patch(patch))

    def _patch(self, patch: dict[str, Value]) -> Generator[Request, Answer, TaskError | None]:
        deferred = [key for key in patch if key in self._plan.reducers]
        answer = yield PatchCtx(self._tell.ctx_patched(patch, deferred))
        assert isinstance(answer, PatchAnswer), f"a patch is answered with {answer!r}"
        if answer.error is not None:
            return answer.error
        self._run.ctx.write({k: v for k, v in patch.items() if k not in self._plan.reducers})
        for key in deferred:
            self._writes[key] = patch[key]
        return None

    def _scope(self, key: str) -> Names:
        names = self._run.names()
        names["execution"] = {**self._run.execution, "idempotency_key": key}
        names["iter"] = self._iter
        names["_task"] = self._tell.task
        names["_attempt"] = self._tell.attempt
        return names | self._visible

    def _rule_holders(self, task: CompiledTask) -> frozenset[str]:
        return self._holders | {"outcome"} if task.may_yield_refs else self._holders


def _template_error(task: CompiledTask, error: TemplateError) -> TaskError:
    return TaskError(kind=ErrorKind.TEMPLATE, code=error.code, message=str(error), source=task.kind)


def _too_many_runs(limit: int) -> TaskError:
    return TaskError(
        kind=ErrorKind.LIMIT,
        code="MAX_TASK_RUNS",
        message=f"the pipeline has run {limit:,} tasks (limits.max_task_runs)",
        source="pipeline",
    )
