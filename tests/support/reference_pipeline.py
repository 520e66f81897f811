"""The reference's pipeline: tasks in order and what their policies do (rules D1–D5, K19–K23)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from noetl_core.model import Action, OnUnmatched, Step, Task, Then
from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.templates import TemplateError, compile_when, render
from noetl_core.values import Value
from tests.support.script import Script

Write = Callable[[dict[str, Value]], None]


@dataclass(frozen=True)
class Error:
    kind: str
    task: str | None
    iteration: str | None = None
    shown: dict[str, Value] = field(default_factory=dict, compare=False)

    def as_event(self) -> dict[str, Value]:
        return {**self.shown, "kind": self.kind, "task": self.task, "iteration": self.iteration}


@dataclass(frozen=True)
class PipelineEnd:
    result: Value = None
    error: Error | None = None


class Failed(Exception):
    def __init__(self, error: Error) -> None:
        super().__init__(error.kind)
        self.error = error


@dataclass
class World:
    """What every run of one execution shares."""

    script: Script
    workload: dict[str, Value]
    max_task_runs: int
    ctx: dict[str, Value] = field(default_factory=dict)

    def scope(self, **names: Value) -> dict[str, Value]:
        """Rule B4: a bare name reads the workload."""
        return {**self.workload, "workload": self.workload, "ctx": dict(self.ctx), **names}


def run_pipeline(
    world: World,
    step: Step,
    args: dict[str, Value],
    iters: dict[str, Value] | None = None,
    iteration: str | None = None,
    write: Write | None = None,
) -> PipelineEnd:
    """One pass through the step's tasks; `write` takes its writes to `ctx`."""
    run = _Run(world, step, args, dict(iters or {}), iteration, write or world.ctx.update)
    try:
        return PipelineEnd(run.through())
    except Failed as failed:
        return PipelineEnd(error=failed.error)


@dataclass
class _Run:
    world: World
    step: Step
    args: dict[str, Value]
    iter: dict[str, Value]
    iteration: str | None
    write: Write
    prev: Value = None
    labels: dict[str, Value] = field(default_factory=dict)
    task_runs: int = 0

    def through(self) -> Value:
        tasks = self.step.tool
        at = 0
        while at < len(tasks):
            then = self.run_task(tasks[at])
            if then is None or then.do is Action.CONTINUE:
                at += 1
            elif then.do is Action.JUMP:
                at = next(i for i, task in enumerate(tasks) if task.name == then.to)
            else:
                assert then.do is Action.BREAK
                break
        return self.prev

    def run_task(self, task: Task) -> Then | None:
        """Until it needs no further attempt; what follows, None being `continue`."""
        attempt = 1
        while True:
            if self.task_runs >= self.world.max_task_runs:
                self.fail("limit", task)
            self.task_runs += 1
            outcome = self.attempt(task, attempt)
            if outcome.ok:
                self.prev = self.labels[task.name] = outcome.result
            then = self.judge(task, outcome, attempt)
            if then is None or then.do is not Action.RETRY:
                return then
            if attempt >= (then.attempts or 3):
                self.fail_by(task, outcome)
            attempt += 1

    def attempt(self, task: Task, attempt: int) -> Outcome:
        scope = self.scope(task, attempt)
        given = {name: value for name, value in task.inputs.items() if name != "code"}
        try:
            inputs = render(given, scope)
        except TemplateError as error:
            return _template_outcome(str(error))
        assert isinstance(inputs, dict)
        if task.kind == "noop":
            return Outcome(result=inputs.get("result", self.prev))
        script = self.world.script
        if task.kind == "playbook":
            place = (self.step.step, self.iteration, task.name)
            return script.child(*place, inputs["workload"], attempt)
        return script.outcome(self.step.step, self.iteration, task.name, inputs["args"], attempt)

    def scope(self, task: Task, attempt: int, **more: Value) -> dict[str, Value]:
        return self.world.scope(
            **self.labels,
            args=self.args,
            iter=dict(self.iter),
            _prev=self.prev,
            _task=task.name,
            _attempt=attempt,
            **more,
        )

    def judge(self, task: Task, outcome: Outcome, attempt: int) -> Then | None:
        """The control action of the first rule that matches, its writes done."""
        policy = task.spec.policy
        if policy is None:
            if not outcome.ok:
                self.fail_by(task, outcome)
            return None
        scope = self.scope(task, attempt, outcome=outcome.as_json(attempt))
        try:
            for rule in policy.rules:
                if rule.when is None or compile_when(rule.when).truth(scope):
                    return self.apply(task, rule.then, scope, outcome)
        except TemplateError:
            self.fail("template", task)
        if policy.on_unmatched is OnUnmatched.FAIL:
            self.fail_by(task, outcome)
        return None

    def apply(self, task: Task, then: Then, scope: dict[str, Value], outcome: Outcome) -> Then:
        for_iter = render(dict(then.set_iter), scope)
        for_ctx = render(dict(then.set_ctx), scope)
        assert isinstance(for_iter, dict)
        assert isinstance(for_ctx, dict)
        self.iter.update(for_iter)
        self.write(for_ctx)
        if then.do is Action.FAIL:
            self.fail_by(task, outcome)
        return then

    def fail_by(self, task: Task, outcome: Outcome) -> NoReturn:
        """With the outcome's own error; an ok one fails by policy (rule K20)."""
        if outcome.error is None:
            self.fail("policy", task)
        else:
            self.fail(outcome.error.kind.value, task, outcome.error.as_json())

    def fail(self, kind: str, task: Task, shown: dict[str, Value] | None = None) -> NoReturn:
        raise Failed(Error(kind, task.name, self.iteration, shown or {}))


def _template_outcome(message: str) -> Outcome:
    return Outcome(error=TaskError(kind=ErrorKind.TEMPLATE, message=message))
