"""A naive interpreter of playbooks: one token at a time, no events, no concurrency.

It is written from the rules alone and is what the engine is compared with. Where the rules leave
the order open, the end notes what may differ (`cut`, `uncertain`, `ambiguous`), and the comparison
leaves exactly that out. Limits: no time, no keychain, no children, no results by reference.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from noetl_core.model import AtEnd, FailureMode, OnDeny, Playbook, Step
from noetl_core.templates import TemplateError, compile_when, render
from noetl_core.values import Value
from tests.support.reference_loop import LoopEnd, run_loop
from tests.support.reference_pipeline import Error, PipelineEnd, World, run_pipeline
from tests.support.script import Script

Tokens = list["Token"]


@dataclass(frozen=True)
class Token:
    step: str
    args: dict[str, Value]
    event: dict[str, Value]
    place: tuple[str, int] | None = None
    """The arc it came by: (source step, index)."""


@dataclass(frozen=True)
class Failure:
    step: str
    handled: bool
    options: frozenset[tuple[str | None, str | None, str]]
    """What it may name as (task, iteration, kind): several where a parallel loop raced."""


@dataclass
class End:
    """How an execution ends, as far as the rules fix it."""

    phase: str = "Succeeded"
    reason: str = "Succeeded"
    ctx: dict[str, Value] = field(default_factory=dict)
    result: Value = None
    counts: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    """Step → how often it ran."""
    failures: list[Failure] = field(default_factory=list)
    loops: list[tuple[str, Value, dict[str, Value]]] = field(default_factory=list)
    """Of each `loop.done`: step, ordered results, `{total, done, failed}`."""
    final_args: dict[str, Value] | None = None
    uncertain: set[str] = field(default_factory=set)
    """Keys of `ctx` whose value depends on the order of events."""
    cut: bool = False
    """A failure stopped other branches: what they had done by then is open."""
    ambiguous: bool = False
    """A join had several tokens in one place: which ones met is open."""


class Stop(Exception):
    """The execution ends here."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Reference:
    """One execution."""

    def __init__(
        self,
        playbook: Playbook,
        script: Script,
        workload: Mapping[str, Value] | None = None,
        patches: tuple[dict[str, Value], ...] = (),
    ) -> None:
        self.playbook = playbook
        self.steps = {step.step: step for step in playbook.workflow}
        self.spec = playbook.executor.spec
        self.workload = {**playbook.workload, **(workload or {})}
        self.world = World(script, dict(self.workload), self.spec.policy.limits.max_task_runs)
        self.patches = deque(patches)
        self.todo: deque[Token] = deque()
        self.waiting: Tokens = []
        self.places: dict[str, dict[tuple[str, int], Tokens]] = {
            step.step: {
                (source.step, index): []
                for source in playbook.workflow
                for index, arc in enumerate(source.arcs)
                if arc.step == step.step
            }
            for step in playbook.workflow
            if step.spec.join
        }
        self.end = End(ctx=self.world.ctx)
        self.last: dict[str, Value] = {"name": "workflow.started"}
        self.arrived: Counter[tuple[str, str, int]] = Counter()
        self.forked = False
        """Whether there ever were two tokens at once."""
        self.broken: str | None = None
        """The reason that a failure gave, which others may still outlive (best effort)."""

    def run(self) -> End:
        started: dict[str, Value] = {"name": "workflow.started"}
        entry = Token(self.playbook.entry_step, {}, started)
        try:
            self.enter(entry)
            self.go_on()
            if self.broken:
                raise Stop(self.broken)
            self.succeed()
        except Stop as stop:
            self.end.phase, self.end.reason = "Failed", stop.reason
            self.end.counts["skipped"] += len(self.waiting) + len(self.todo)
        self.run_final()
        return self.end

    def go_on(self) -> None:
        """Until nothing can happen any more (rules C8, C9)."""
        while True:
            while self.todo:
                self.enter(self.todo.popleft())
            if self.waiting and self.patches:
                self.world.ctx.update(self.patches.popleft())
                self.judge_waiting()
            elif self.waiting:
                raise AssertionError("a made playbook must not wait for ever")
            elif not self.settle_a_join():
                return

    def scope(self, args: Value, event: Value) -> dict[str, Value]:
        return self.world.scope(args=args, event=event)

    # Admission (rules C2, C3)

    def enter(self, token: Token) -> None:
        admit = self.steps[token.step].spec.policy.admit
        if admit is None or self.is_allowed(token):
            self.start(token)
        elif admit.on_deny is OnDeny.WAIT:
            self.waiting.append(token)
        else:
            self.end.counts["skipped"] += 1

    def is_allowed(self, token: Token) -> bool:
        admit = self.steps[token.step].spec.policy.admit
        assert admit is not None
        for rule in admit.rules:
            if rule.when is None or self.holds(rule.when, self.scope(token.args, token.event)):
                return rule.allow
        return not admit.rules

    def judge_waiting(self) -> None:
        """Rule K17: any change of `ctx` lets every waiting token be judged again."""
        before, self.waiting = self.waiting, []
        for token in before:
            if self.is_allowed(token):
                self.todo.append(token)
            else:
                self.waiting.append(token)

    def holds(self, when: str | bool, scope: dict[str, Value]) -> bool:
        try:
            return compile_when(when).truth(scope)
        except TemplateError:
            self.end.cut = self.forked
            raise Stop("TemplateError") from None

    # Runs

    def start(self, token: Token) -> None:
        if self.end.counts["total"] >= self.spec.policy.limits.max_step_runs:
            self.end.counts["skipped"] += 1
            raise Stop("LimitExceeded")
        self.end.counts["total"] += 1
        self.end.runs[token.step] += 1
        step = self.steps[token.step]
        before = dict(self.world.ctx)
        event = self.boundary(step, token.args)
        if self.world.ctx != before:
            self.judge_waiting()
        self.last = event
        self.route(step, event)

    def boundary(self, step: Step, args: dict[str, Value]) -> dict[str, Value]:
        """Run the step; the boundary event that its arcs see (rule C12)."""
        event: dict[str, Value] = {"step": step.step, "args": args, "error": None}
        if step.loop is None:
            ended = run_pipeline(self.world, step, args)
            return self.ended(event, step, ended)
        loop = run_loop(self.world, step, args)
        self.end.uncertain |= loop.uncertain
        if loop.error is not None:
            return self.ended(event, step, PipelineEnd(error=loop.error), loop)
        self.end.counts["done"] += 1
        self.end.loops.append((step.step, loop.result, loop.counts))
        for failure in loop.failures:
            self.note(step, failure, handled=True)
        shown = {**loop.counts, "failures": [f.as_event() for f in loop.failures]}
        return {**event, "name": "loop.done", "status": "ok", "result": loop.result, "loop": shown}

    def ended(
        self,
        event: dict[str, Value],
        step: Step,
        ended: PipelineEnd,
        loop: LoopEnd | None = None,
    ) -> dict[str, Value]:
        if ended.error is None:
            self.end.counts["done"] += 1
            return {**event, "name": "step.done", "status": "ok", "result": ended.result}
        self.end.counts["failed"] += 1
        self.pending_failure = (ended.error, loop.options if loop else None)
        event = {**event, "name": "step.failed", "status": "error", "result": None}
        if loop is not None:
            # Of a parallel loop only that there is a failed one is sure; guards ask no more.
            event["loop"] = loop.counts
        return {**event, "error": ended.error.as_event()}

    def note(
        self,
        step: Step,
        error: Error,
        handled: bool,
        options: frozenset[tuple[str | None, str | None, str]] | None = None,
    ) -> None:
        own = frozenset({(error.task, error.iteration, error.kind)})
        self.end.failures.append(Failure(step.step, handled, options or own))

    # Routing (rules C4–C7)

    def route(self, step: Step, event: dict[str, Value]) -> None:
        failed = event["name"] == "step.failed"
        scope = self.scope(event["args"], event)
        fired = []
        for index, arc in enumerate(step.arcs):
            matches = self.holds(arc.when, scope) if arc.when is not None else not failed
            if matches:
                fired.append(index)
                if not step.is_inclusive:
                    break
        if failed:
            error, options = self.pending_failure
            self.note(step, error, bool(fired), options)
            if not fired:
                self.unhandled(step)
        self.forked |= len(fired) > 1
        for index in fired:
            self.send(step, index, event, scope)

    def unhandled(self, step: Step) -> None:
        """Rule C7."""
        own = step.spec.policy.failure.mode if step.loop is None else None
        modes = (self.spec.policy.failure.mode, own)
        if FailureMode.BEST_EFFORT in modes:
            self.broken = self.broken or "StepFailed"
            return
        self.end.cut = self.forked
        raise Stop(self.broken or "StepFailed")

    def send(
        self, step: Step, index: int, event: dict[str, Value], scope: dict[str, Value]
    ) -> None:
        arc = step.arcs[index]
        try:
            args = render(dict(arc.args), scope)
        except TemplateError:
            self.end.cut = self.forked
            raise Stop("TemplateError") from None
        assert isinstance(args, dict)
        token = Token(arc.step, args, event, (step.step, index))
        if arc.step not in self.places:
            self.todo.append(token)
            return
        places = self.places[arc.step]
        places[(step.step, index)].append(token)
        # With a second token in a place, which ones meet depends on who came first.
        self.arrived[arc.step, step.step, index] += 1
        self.end.ambiguous |= self.arrived[arc.step, step.step, index] > 1
        if all(places.values()):
            self.fire_join(arc.step)

    # Joins (rules C9, K12)

    def fire_join(self, step: str) -> None:
        taken = [held.pop(0) for held in self.places[step].values() if held]
        merged: dict[str, Value] = {}
        for token in taken:
            merged.update(token.args)
        # What `event` a join's admission sees depends on which token came last: not used in tests.
        self.todo.append(Token(step, merged, taken[-1].event))

    def settle_a_join(self) -> bool:
        """The first half full join in workflow order; whether there was one."""
        for step in self.playbook.workflow:
            if not any(self.places.get(step.step, {}).values()):
                continue
            assert step.spec.join is not None
            if step.spec.join.at_end is AtEnd.FAIL:
                raise Stop(self.broken or "JoinIncomplete")
            if step.spec.join.at_end is AtEnd.FIRE:
                self.fire_join(step.step)
            else:
                self.places[step.step] = {arc: [] for arc in self.places[step.step]}
            return True
        return False

    # The end (rules C8, C11, K14–K16)

    def succeed(self) -> None:
        if any(failure.handled for failure in self.end.failures):
            self.end.reason = "SucceededWithHandledFailures"
        if self.spec.result is None:
            self.end.result = self.last.get("result")
            return
        try:
            self.end.result = render(self.spec.result, self.scope(self.last.get("args"), self.last))
        except TemplateError:
            raise Stop("ResultError") from None

    def run_final(self) -> None:
        if self.spec.final_step is None:
            return
        step = self.steps[self.spec.final_step]
        self.end.final_args = {"phase": self.end.phase, "reason": self.end.reason}
        self.end.counts["total"] += 1
        self.end.runs[step.step] += 1
        event = self.boundary(step, {"phase": self.end.phase, "reason": self.end.reason})
        if event["name"] == "step.failed":
            error, options = self.pending_failure
            self.note(step, error, False, options)
            self.end.phase, self.end.reason = "Failed", "FinalStepFailed"
