"""Drives the control plane's core by hand: each call is one trigger, the log is kept in memory.

    sim = Sim(PLAYBOOK).start()
    sim.done("a", result=1).fail("b", kind="auth")
    assert sim.state.reason == "StepFailed"

After every trigger it is checked that `decide` left its input alone, that the log alone gives the
state, that the state survives JSON, and that the same trigger again changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from noetl_core.engine import Program, fold, transition
from noetl_core.engine import events as ev
from noetl_core.engine.clock import later
from noetl_core.engine.codec import decode_state, encode_state
from noetl_core.engine.events import Event, Fact
from noetl_core.engine.state import State
from noetl_core.engine.transition import Transition
from noetl_core.engine.triggers import (
    Cancel,
    CancelMode,
    ChildEnded,
    Decision,
    Effect,
    EndStatus,
    Enqueue,
    IterationEnd,
    Patch,
    Reported,
    Resume,
    RunEnd,
    Start,
    StartChild,
    Suspend,
    Tick,
    Trigger,
    Verdict,
    WorkerLost,
)
from noetl_core.load import load
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.values import Value

EXECUTION = "01890000-0000-7000-8000-000000000001"
BEGIN = "2026-01-01T00:00:00.000000Z"


class Sim:
    def __init__(self, text: str, workload: dict[str, Value] | None = None) -> None:
        loaded = load(text)[0]
        assert loaded.playbook is not None, loaded.problems
        self.program = Program.of(
            loaded.playbook,
            execution_id=EXECUTION,
            name="run-1",
            namespace="default",
            workload=workload,
        )
        self.state = State()
        self.log: list[Event] = []
        self.keys: set[str] = set()
        self.stored: dict[str, bytes] = {}
        self.queue: dict[str, Enqueue] = {}
        self.epochs: dict[str, int] = {}
        self.now = BEGIN
        self.decision: Decision | None = None
        self.effects: list[Effect] = []
        self.stopped: list[str] = []

    # What the engine may look up

    def result(self, key: str) -> Value | None:
        found: Value = orjson.loads(self.stored[key])
        return found

    def iterations(self, run_id: str) -> Sequence[IterationEnd]:
        found: list[IterationEnd] = []
        for event in self.log:
            fact = event.fact
            if fact.run_id != run_id or fact.iteration is None:
                continue
            if isinstance(fact, ev.IterationDone):
                found.append(IterationEnd(fact.iteration, fact.result, False, fact.writes))
            elif isinstance(fact, ev.IterationFailed):
                found.append(IterationEnd(fact.iteration, None, True, fact.writes))
        return found

    def frames(self, run_id: str) -> dict[str, int]:
        return {
            event.fact.iteration: event.fact.total
            for event in self.log
            if isinstance(event.fact, ev.LoopOpened)
            and event.fact.run_id == run_id
            and event.fact.iteration is not None
        }

    # Triggers

    def send(self, trigger: Trigger, verdict: Verdict | None = Verdict.ACCEPTED) -> Sim:
        """Decide and commit; `verdict` is what is expected, None: whatever it is."""
        decision = self._commit(trigger)
        if verdict is not None:
            assert decision.verdict is verdict, (decision.verdict, decision.message)
        again = self._decide(trigger)[0]
        if not isinstance(trigger, Tick) and verdict is Verdict.ACCEPTED:
            assert again.events == (), f"{trigger} twice: {again.facts}"
            assert again.effects == ()
        return self

    def _commit(self, trigger: Trigger) -> Decision:
        decision, commit = self._decide(trigger)
        self.decision = decision
        self._check(decision, commit)
        self.state = decision.state
        self.log += decision.events
        self._carry_out(commit)
        self.effects = list(decision.effects)
        assert fold(self.log) == self.state
        assert decode_state(orjson.loads(orjson.dumps(self.state))) == self.state
        assert decode_state(encode_state(self.state)) == self.state
        assert orjson.loads(orjson.dumps(self.state)) == encode_state(self.state)
        return decision

    def _decide(self, trigger: Trigger) -> tuple[Decision, Transition]:
        before = orjson.dumps(self.state)
        decision, commit = transition(self.program, self.state, trigger, self.now, self)
        assert orjson.dumps(self.state) == before, "decide changed its input"
        assert transition(self.program, self.state, trigger, self.now, self)[0] == decision
        return decision, commit

    def _check(self, decision: Decision, commit: Transition) -> None:
        assert [e.seq for e in decision.events] == list(
            range(self.state.seq + 1, self.state.seq + 1 + len(decision.events))
        )
        assert len(decision.dedup_keys) == len(decision.events)
        assert not self.keys & set(decision.dedup_keys)
        assert len(set(decision.dedup_keys)) == len(decision.dedup_keys)
        self.keys |= set(decision.dedup_keys)
        steps = decision.state.steps
        if decision.state.phase.is_final:
            assert steps.total == steps.done + steps.failed + steps.cancelled
        for event in decision.events:
            data = orjson.loads(orjson.dumps(event.as_json()))
            context = {key: data[key] for key in ev.CONTEXT}
            assert ev.fact_of(data["name"], context, data["payload"]) == event.fact

    def _carry_out(self, commit: Transition) -> None:
        for fence in commit.ended:
            assert self.epochs[fence.lease_id] == fence.epoch
            del self.queue[fence.lease_id]
        for fence in commit.held:
            assert self.epochs[fence.lease_id] == fence.epoch
        for again in commit.requeue:
            assert self.epochs[again.lease_id] == again.epoch
            self.epochs[again.lease_id] += 1
        for lease_id in commit.revoke:
            self.queue.pop(lease_id, None)
        self.stopped += commit.stop
        self.stored.update((one.key, one.content) for one in commit.store)
        for command in commit.enqueue:
            assert command.lease_id not in self.queue
            self.queue[command.lease_id] = command
            self.epochs[command.lease_id] = 1

    def start(self, **options: object) -> Sim:
        return self.send(Start(**options))  # type: ignore[arg-type]

    def tick(self, seconds: float = 0) -> Sim:
        self.now = later(self.now, seconds) or self.now
        return self.send(Tick())

    def suspend(self) -> Sim:
        return self.send(Suspend(by="ann"))

    def resume(self) -> Sim:
        return self.send(Resume(by="ann"))

    def cancel(self, mode: CancelMode = CancelMode.GRACEFUL) -> Sim:
        return self.send(Cancel(mode=mode, by="ann", reason="enough"))

    def patch(self, name: str, **values: Value) -> Sim:
        return self.send(Patch(id=name, set=values, by="ann", reason="approved"))

    # Workers

    def lease(self, step: str | None, iteration: str | None = None, nth: int = 0) -> Enqueue:
        """The command of a step (or iteration) that is queued or held."""
        found = [c for c in self.queue.values() if c.step == step and c.iteration == iteration]
        assert found, f"no command for {step} {iteration}; there are {list(self.queue.values())}"
        return found[nth]

    def report(
        self,
        command: Enqueue,
        *facts: Fact,
        end: RunEnd | None = None,
        verdict: Verdict = Verdict.ACCEPTED,
    ) -> Sim:
        lease = self.held(command.lease_id)
        return self.send(
            Reported(
                lease_id=command.lease_id,
                epoch=self.epochs[command.lease_id],
                first=lease,
                facts=facts,
                end=end,
            ),
            verdict,
        )

    def held(self, lease_id: str) -> int:
        if self.state.keychain is not None:
            return self.state.keychain.reported
        run_id = self.state.leases.get(lease_id, lease_id)
        return self.state.runs[run_id].leases[lease_id].reported

    def begin(self, step: str, iteration: str | None = None) -> Sim:
        command = self.lease(step, iteration)
        return self.report(
            command,
            ev.StepStarted(step=step, run_id=command.run_id, iteration=iteration, worker="w1"),
        )

    def done(
        self,
        step: str,
        result: Value = None,
        *,
        iteration: str | None = None,
        writes: dict[str, Value] | None = None,
        nth: int = 0,
    ) -> Sim:
        end = RunEnd(status=EndStatus.OK, result=result, writes=writes)
        return self.report(self.lease(step, iteration, nth), end=end)

    def fail(
        self,
        step: str,
        *,
        kind: str = "unknown",
        message: str = "boom",
        code: str = "E1",
        task: str | None = None,
        iteration: str | None = None,
        inner: str | None = None,
        writes: dict[str, Value] | None = None,
    ) -> Sim:
        error = TaskError(kind=ErrorKind(kind), message=message, code=code, source="test")
        end = RunEnd(status=EndStatus.ERROR, error=error, task=task, iteration=inner, writes=writes)
        return self.report(self.lease(step, iteration), end=end)

    def stop(self, step: str, iteration: str | None = None) -> Sim:
        return self.report(self.lease(step, iteration), end=RunEnd(status=EndStatus.CANCELLED))

    def write(
        self,
        step: str,
        verdict: Verdict = Verdict.ACCEPTED,
        iteration: str | None = None,
        inner: str | None = None,
        **values: Value,
    ) -> Sim:
        command = self.lease(step, iteration)
        fact = ev.CtxPatched(
            step=step,
            run_id=command.run_id,
            iteration=inner or iteration,
            set=values,
            by=f"{step}/t",
            reason=None,
        )
        return self.report(command, fact, verdict=verdict)

    def lost(self, step: str | None, iteration: str | None = None, *, back: bool = False) -> Sim:
        command = self.lease(step, iteration)
        epoch = self.epochs[command.lease_id]
        return self.send(
            WorkerLost(
                lease_id=command.lease_id, epoch=epoch, reason="node is gone", handed_back=back
            )
        )

    def child(self, step: str, *, wait: bool = True, iteration: str | None = None) -> str:
        """Ask for a child execution; answers its id."""
        command = self.lease(step, iteration)
        self.send(
            StartChild(
                lease_id=command.lease_id,
                epoch=self.epochs[command.lease_id],
                task="call",
                task_run=0,
                playbook="other",
                workload={"n": 1},
                wait=wait,
            )
        )
        return next(reversed(self.state.children))

    def child_ended(self, child: str, phase: str = "Succeeded") -> Sim:
        return self.send(
            ChildEnded(child=child, phase=phase, reason=phase, message=None, result={"ok": True})
        )

    # What happened

    @property
    def names(self) -> list[str]:
        return [event.fact.name for event in self.log]

    def facts(self, name: str, step: str | None = None) -> list[Fact]:
        return [
            event.fact
            for event in self.log
            if event.fact.name == name and step in (None, event.fact.step)
        ]

    def payload(self, name: str, step: str | None = None, nth: int = -1) -> dict[str, Value]:
        return self.facts(name, step)[nth].payload()

    def story(self, *leave_out: str) -> list[str]:
        """The log in short: `name step`."""
        return [
            " ".join(filter(None, (e.fact.name, e.fact.step, e.fact.iteration)))
            for e in self.log
            if e.fact.name not in leave_out
        ]

    def outcome(self) -> tuple[str, str | None]:
        return self.state.phase.value, self.state.reason

    @property
    def running(self) -> list[str]:
        return [run.step for run in self.state.runs.values()]

    def args_of(self, step: str, nth: int = 0) -> Value:
        return self.facts("step.scheduled", step)[nth].payload()["args"]


def workflow(steps: str, head: str = "") -> str:
    """A playbook around the text of its steps."""
    return f"metadata: {{name: test}}\n{head}\nworkflow:\n{steps}"
