"""What a worker says is judged: it tells of its own tasks and starts nothing itself."""

from __future__ import annotations

import pytest

from noetl_core.engine import Program, decide, ids
from noetl_core.engine import events as ev
from noetl_core.engine.state import State
from noetl_core.engine.triggers import EndStatus, Reported, RunEnd, Start, Verdict
from noetl_operator.store.memory import Memory
from tests.support.generated import loaded
from tests.support.simulation_operator import LogLookup

EXECUTION = "00000000-0000-7000-8000-000000000001"
NOW = "2026-01-01T00:00:00.000000Z"
LOOKUP = LogLookup(Memory(), EXECUTION)

PROGRAM = Program.of(
    loaded(
        {
            "metadata": {"name": "two"},
            "workflow": [
                {"step": "first", "tool": [{"name": "t", "kind": "noop"}], "next": {
                    "arcs": [{"step": "second", "when": "{{ event.result == 2 }}"}]}},
                {"step": "second", "tool": [{"name": "t", "kind": "noop"}]},
            ],
        }
    ),
    execution_id=EXECUTION,
    name="one",
    namespace="here",
)  # fmt: skip

RUN = ids.entry_token(EXECUTION)
OTHER = ids.arc_token(RUN, 0)
HERE = {"step": "first", "run_id": RUN}

STARTING = [
    ev.StepScheduled(step="second", run_id=OTHER, args={}),
    ev.NextEvaluated(
        **HERE,
        mode="exclusive",
        matched=[0],
        fired=[{"arc": 0, "step": "second", "run_id": OTHER}],
    ),
    ev.WorkflowStarted(step="second", run_id=OTHER),
    ev.IterationScheduled(**HERE, iteration="0"),
    ev.ExecutionEnding(phase="Succeeded", reason="Succeeded", message=""),
    ev.WorkflowFinished(
        phase="Succeeded", reason="Succeeded", message=None, result=1, steps={}, failures=[]
    ),
    ev.StepDone(**HERE, result=2),
    ev.TaskDone(step="second", run_id=OTHER, task="t", attempt=1, result=1),
    ev.IterationDone(**HERE, iteration="0", result=1),
]


def started() -> State:
    return decide(PROGRAM, State(execution_id=EXECUTION), Start(), NOW, LOOKUP).state


@pytest.mark.parametrize("fact", STARTING, ids=lambda fact: fact.name)
def test_D8_a_worker_starts_no_step_and_ends_nothing_but_its_own_run(fact: ev.Fact) -> None:
    before = started()
    report = Reported(lease_id=RUN, epoch=1, first=0, facts=(fact,))
    decision = decide(PROGRAM, before, report, NOW, LOOKUP)
    assert decision.verdict is Verdict.REFUSED
    assert decision.events == ()
    assert decision.state == before


def test_D8_only_the_arcs_of_a_step_start_another() -> None:
    end = RunEnd(status=EndStatus.OK, result=2)
    report = Reported(lease_id=RUN, epoch=1, first=0, end=end)
    decision = decide(PROGRAM, started(), report, NOW, LOOKUP)
    assert [run.step for run in decision.state.runs.values()] == ["second"]


@pytest.mark.parametrize("epoch", [0, 2, 7])
def test_J_a_report_under_another_epoch_changes_nothing(epoch: int) -> None:
    before = started()
    end = RunEnd(status=EndStatus.OK, result=2)
    report = Reported(lease_id=RUN, epoch=epoch, first=0, end=end)
    decision = decide(PROGRAM, before, report, NOW, LOOKUP)
    assert (decision.verdict, decision.events) == (Verdict.GONE, ())
    assert decision.state == before
