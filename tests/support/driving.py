"""Drives a pipeline with made-up outcomes, and remembers everything it asked for.

driver = Driver(plan_of(YAML), {"fetch": [failed("timeout"), ok({"n": 1})]})
end = driver.run()
driver.names            # the facts' names, in order
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from noetl_core.engine.events import Fact
from noetl_core.load import load
from noetl_core.model import Playbook
from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.pipeline.plan import Plan, compile_plan
from noetl_core.pipeline.requests import (
    Answer,
    Emit,
    Fetch,
    Keep,
    PatchAnswer,
    PatchCtx,
    PipelineEnd,
    Request,
    RunTask,
    Sleep,
)
from noetl_core.pipeline.run import pipeline
from noetl_core.pipeline.scopes import CtxView, Iteration, RunScope
from noetl_core.results import canonical, reference
from noetl_core.values import Value

RUN = "11111111-1111-5111-8111-111111111111"
EXECUTION: dict[str, Value] = {
    "id": "00000000-0000-7000-8000-000000000001",
    "name": "nightly",
    "namespace": "etl",
}
R = TypeVar("R")


def ok(result: Value = None, **helpers: Value) -> Outcome:
    return Outcome(result=result, helpers=helpers)


def failed(kind: str = "connection", message: str = "no", **more: Value) -> Outcome:
    error = TaskError(kind=ErrorKind(kind), message=message, **more)  # type: ignore[arg-type]
    return Outcome(error=error)


def playbook_of(text: str) -> Playbook:
    """The one playbook of a text; its problems as an assertion where it has errors."""
    (loaded,) = load(text)
    assert loaded.playbook is not None, [str(problem) for problem in loaded.problems]
    return loaded.playbook


def step_text(body: str, head: str = "") -> str:
    """A playbook of one step called `s`, whose other keys are `body`."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return f"metadata: {{name: t}}\n{head}\nworkflow:\n  - step: s\n{lines}\n"


def plan_of(body: str, head: str = "") -> Plan:
    playbook = playbook_of(step_text(body, head))
    return compile_plan(playbook, playbook.workflow[0])


def stored(value: Value, selected: Value = None) -> dict[str, Value]:
    return reference(canonical(value), value, selected=selected)


Tool = Callable[[RunTask], Outcome]


@dataclass
class Driver:
    """Answers a pipeline's requests from tables, in memory."""

    plan: Plan
    outcomes: Mapping[str, list[Outcome] | Tool] = field(default_factory=dict)
    """By label: outcomes one after the other, or a function of the request."""
    scope: RunScope = field(default_factory=lambda: RunScope(run_id=RUN, execution=EXECUTION))
    iteration: Iteration | None = None
    results: dict[str, Value] = field(default_factory=dict)
    """Stored results by key."""
    refuse: Callable[[dict[str, Value]], TaskError | None] = lambda _: None
    requests: list[Request] = field(default_factory=list)
    runs: list[RunTask] = field(default_factory=list)
    sleeps: list[float] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    kept: list[Keep] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._left = {k: list(v) for k, v in self.outcomes.items() if isinstance(v, list)}

    def run(self) -> PipelineEnd:
        return self.drive(pipeline(self.plan, self.scope, self.iteration))

    def drive(self, generator: Generator[Request, Answer, R]) -> R:
        answer: Answer = None
        while True:
            try:
                request = generator.send(answer)
            except StopIteration as stop:
                value: R = stop.value
                return value
            answer = self.answer(request)

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        match request:
            case RunTask():
                self.runs.append(request)
                return self._outcome(request)
            case Sleep():
                self.sleeps.append(request.seconds)
            case Emit():
                self.facts.append(request.fact)
            case PatchCtx():
                error = self.refuse(request.set)
                if error is None:
                    self.facts.append(request.fact)
                return PatchAnswer(error)
            case Fetch():
                return self._fetch(request)
            case Keep():
                self.kept.append(request)
        return None

    def _outcome(self, request: RunTask) -> Outcome:
        made = self.outcomes.get(request.label)
        if callable(made):
            return made(request)
        left = self._left.get(request.label)
        if left:
            return left.pop(0)
        assert made is None, f"no outcome left for {request.label}"
        return Outcome(result=request.inputs.get("result"))

    def _fetch(self, request: Fetch) -> Answer:
        key = str(request.ref["key"])
        self.fetched.append(key)
        if key not in self.results:
            return TaskError(kind=ErrorKind.NOT_FOUND, message=f"no result {key[:8]}")
        return self.results[key]

    @property
    def names(self) -> list[str]:
        return [fact.name for fact in self.facts]

    @property
    def labels(self) -> list[str]:
        return [run.label for run in self.runs]

    def of(self, name: str) -> list[Fact]:
        return [fact for fact in self.facts if fact.name == name]

    def payloads(self, name: str) -> list[dict[str, Value]]:
        return [fact.payload() for fact in self.of(name)]


def scope(
    *,
    ctx: dict[str, Value] | None = None,
    args: dict[str, Value] | None = None,
    workload: dict[str, Value] | None = None,
    keychain: dict[str, Value] | None = None,
) -> RunScope:
    return RunScope(
        run_id=RUN,
        execution=EXECUTION,
        ctx=CtxView(ctx),
        args=args or {},
        workload=workload or {},
        keychain=keychain or {},
    )
