"""What must hold of every log, whatever happened on the way to it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from noetl_core.engine import Program, evolve, fold, ids
from noetl_core.engine import events as ev
from noetl_core.engine.codec import decode_state, encode_state
from noetl_core.engine.state import State
from noetl_core.engine.transition import Transition
from noetl_core.engine.triggers import Trigger
from noetl_operator.store.memory import Memory
from tests.support.simulation_operator import LogLookup, decided

TERMINAL = (ev.StepDone, ev.StepFailed, ev.LoopDone, ev.StepCancelled)


@dataclass
class Recorded:
    """One decision that was committed."""

    trigger: Trigger
    now: str
    transition: Transition


@dataclass
class Checker:
    """Follows every commit of one execution."""

    execution_id: str
    folded: State = field(default_factory=State)
    history: list[Recorded] = field(default_factory=list)

    def committed(self, recorded: Recorded, deep: bool) -> None:
        """`fold(log) == state`, after each commit."""
        made = recorded.transition
        assert not (self.folded.phase.is_final and made.events), "an event after the end"
        for event in made.events:
            evolve(self.folded, event)
        assert self.folded == made.state, "the log does not add up to the state"
        if deep:
            text = json.dumps(encode_state(made.state))
            assert decode_state(json.loads(text)) == made.state, "the state is not its own JSON"
        self.history.append(recorded)


def check_queue(memory: Memory, state: State) -> None:
    """The queue holds exactly what the state waits for, and whoever shall stop was told."""
    leases = {} if state.keychain is None else {ids.keychain_run(state.execution_id): False}
    for run in state.runs.values():
        stops = run.cancelling is not None or (
            run.loop is not None and run.loop.stopping is not None
        )
        for lease_id, lease in run.leases.items():
            leases[lease_id] = stops and lease.started
    assert set(memory.rows) == set(leases), "the queue and the state know different leases"
    for lease_id, stops in leases.items():
        assert memory.rows[lease_id].stop or not stops, "a worker was not told to stop"


def check_log(log: list[ev.Event]) -> None:
    """Invariants of a finished log."""
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    assert len({event.event_id for event in log}) == len(log)
    facts = [event.fact for event in log]
    _check_tokens(facts)
    _check_ends(facts)
    _check_iterations(facts)
    _check_windows(facts)
    _check_pauses(facts)
    _check_write_once(facts)
    _check_reports(log)
    _check_counts(facts)


def _check_tokens(facts: list[ev.Fact]) -> None:
    """Every token is made once and consumed once; at a bad end, at most once."""
    made: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for fact in facts:
        match fact:
            case ev.WorkflowStarted():
                made[str(fact.run_id)] += 1
            case ev.NextEvaluated():
                made.update(str(one["run_id"]) for one in fact.fired)
            case ev.JoinFilled():
                used.update(fact.tokens)
                made[str(fact.run_id)] += 1
            case ev.JoinDropped():
                used.update(fact.tokens)
            case ev.StepScheduled() if not fact.final:
                used[str(fact.run_id)] += 1
            case ev.StepSkipped():
                used[str(fact.run_id)] += 1
            case ev.StepFailed() if fact.run_id in made and fact.run_id not in used:
                used[str(fact.run_id)] += 1
            case _:
                pass
    assert not made or max(made.values()) == 1, "a token was made twice"
    assert not used or max(used.values()) == 1, "a token was consumed twice"
    assert set(used) <= set(made), "a token came from nowhere"
    last = facts[-1]
    assert isinstance(last, ev.WorkflowFinished)
    if last.phase == "Succeeded":
        assert set(used) == set(made), "a token was forgotten"


def _check_ends(facts: list[ev.Fact]) -> None:
    """Every run that was scheduled ends once."""
    ends = Counter(str(fact.run_id) for fact in facts if isinstance(fact, TERMINAL))
    runs = Counter(str(fact.run_id) for fact in facts if isinstance(fact, ev.StepScheduled))
    assert not ends or max(ends.values()) == 1, "a run ended twice"
    assert not runs or max(runs.values()) == 1, "a run was scheduled twice"
    assert set(runs) <= set(ends), "a run never ended"
    finished = [fact for fact in facts if isinstance(fact, ev.WorkflowFinished)]
    assert len(finished) == 1


def _check_iterations(facts: list[ev.Fact]) -> None:
    """Of a distributed loop every iteration is scheduled once and ends at most once."""
    scheduled: Counter[tuple[str | None, str | None]] = Counter()
    ended: Counter[tuple[str | None, str | None]] = Counter()
    for fact in facts:
        if isinstance(fact, ev.IterationScheduled):
            scheduled[fact.run_id, fact.iteration] += 1
        elif isinstance(fact, ev.IterationDone | ev.IterationFailed | ev.IterationCancelled):
            ended[fact.run_id, fact.iteration] += 1
    assert not scheduled or max(scheduled.values()) == 1, "an iteration was scheduled twice"
    for key in scheduled:
        assert ended[key] <= 1, "an iteration ended twice"


def _check_windows(facts: list[ev.Fact]) -> None:
    """Never more iterations of one list at once than it allows (rule E2)."""
    windows: dict[tuple[str | None, str], int] = {}
    running: Counter[tuple[str | None, str]] = Counter()
    for fact in facts:
        if isinstance(fact, ev.LoopStarted | ev.LoopOpened):
            windows[fact.run_id, fact.iteration or ""] = fact.window
        if fact.iteration is None:
            continue
        place = (fact.run_id, fact.iteration.rpartition(".")[0])
        if isinstance(fact, ev.IterationScheduled):
            running[place] += 1
            assert running[place] <= windows[place], "more iterations at once than the window has"
        elif isinstance(fact, ev.IterationDone | ev.IterationFailed | ev.IterationCancelled):
            running[place] -= 1


def _check_pauses(facts: list[ev.Fact]) -> None:
    """While it is suspended nothing new begins."""
    paused = False
    for fact in facts:
        match fact:
            case ev.ExecutionSuspended():
                paused = True
            case ev.ExecutionResumed() | ev.ExecutionCancelled():
                paused = False
            case ev.StepScheduled() | ev.IterationScheduled():
                assert not paused, "something began while the execution was suspended"
            case _:
                pass


def _check_write_once(facts: list[ev.Fact]) -> None:
    """Iterations of a parallel loop never overwrite each other's `ctx` (rules E7, K29)."""
    parallel: dict[str | None, int] = {}
    written: dict[tuple[str | None, str], dict[str, str]] = {}
    for fact in facts:
        if isinstance(fact, ev.LoopStarted):
            parallel[fact.run_id] = fact.parallel
        if not isinstance(fact, ev.CtxPatched) or fact.iteration is None:
            continue
        level = parallel[fact.run_id]
        by = ".".join(fact.iteration.split(".")[:level])
        for key in set(fact.set) - set(fact.deferred or ()) if level else ():
            values = written.setdefault((fact.run_id, key), {})
            values[by] = json.dumps(fact.set[key])
            assert len(set(values.values())) == 1, "two iterations wrote one key differently"


def _check_reports(log: list[ev.Event]) -> None:
    """A task run is told once: between two starts of a task in one place stands its end."""
    open_tasks: set[tuple[str | None, str | None, str | None]] = set()
    for fact in (event.fact for event in log):
        place = (fact.run_id, fact.iteration, fact.task)
        match fact:
            case ev.TaskStarted():
                assert place not in open_tasks, "a task run was told twice"
                open_tasks.add(place)
            case ev.TaskDone() | ev.TaskFailed() | ev.TaskAttemptFailed():
                assert place in open_tasks, "the end of a task run was told twice"
                open_tasks.remove(place)
            case ev.StepRedelivered():
                open_tasks = {one for one in open_tasks if not _covers(fact, one[0], one[1])}
            case _:
                pass


def _covers(fact: ev.StepRedelivered, run_id: str | None, iteration: str | None) -> bool:
    """Whether the lease that was lost was about this place."""
    if fact.run_id != run_id:
        return False
    own, inside = fact.iteration, iteration or ""
    return own is None or inside == own or inside.startswith(f"{own}.")


def _check_counts(facts: list[ev.Fact]) -> None:
    finished = facts[-1]
    assert isinstance(finished, ev.WorkflowFinished)
    counts = finished.steps
    kinds = Counter(type(fact) for fact in facts)
    assert counts["done"] == kinds[ev.StepDone] + kinds[ev.LoopDone]
    assert counts["failed"] == kinds[ev.StepFailed]
    assert counts["cancelled"] == kinds[ev.StepCancelled]
    assert counts["skipped"] == kinds[ev.StepSkipped]
    ends = sum(int(counts[name]) for name in ("done", "failed", "cancelled"))  # type: ignore[arg-type]
    assert counts["total"] == ends


def check_replay(program: Program, memory: Memory, history: list[Recorded]) -> None:
    """Deciding again on what the log had been gives the same events."""
    state = State(execution_id=program.execution_id)
    for recorded in history:
        lookup = LogLookup(memory, program.execution_id, upto=recorded.transition.expected)
        again, _ = decided(program, state, recorded.trigger, recorded.now, lookup)
        assert again.events == recorded.transition.events, "decided otherwise the second time"
        assert again.dedup_keys == recorded.transition.dedup_keys
        state = fold(again.events, state)
