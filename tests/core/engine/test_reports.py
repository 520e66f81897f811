"""What workers report, late, twice or wrongly; lost workers and time limits (K22, K24, K33)."""

from __future__ import annotations

import pytest

from noetl_core.engine import events as ev
from noetl_core.engine.triggers import (
    EndStatus,
    Reported,
    Requeue,
    Revoke,
    RunEnd,
    Verdict,
    WorkerLost,
)
from tests.support.sim import Sim, workflow


def book(policy: str = "{}", head: str = "") -> str:
    return workflow(
        f"""
- {{step: a, spec: {{policy: {policy}}}, tool: {{kind: noop}},
   next: {{arcs: [{{step: b, when: "{{{{ event.error.kind == 'worker_lost' }}}}"}},
                 {{step: c, when: "{{{{ event.error.kind == 'timeout' }}}}"}}]}}}}
- {{step: b, tool: {{kind: noop}}}}
- {{step: c, tool: {{kind: noop}}}}
""",
        head,
    )


def started(sim: Sim) -> ev.StepStarted:
    return ev.StepStarted(step="a", run_id=sim.lease("a").run_id, worker="w1")


def task(sim: Sim, result: object = 1) -> ev.TaskDone:
    return ev.TaskDone(step="a", run_id=sim.lease("a").run_id, task="t", result=result)


def report(sim: Sim, first: int, *facts: ev.Fact, epoch: int = 1, end: bool = False) -> Reported:
    return Reported(
        lease_id=sim.lease("a").lease_id,
        epoch=epoch,
        first=first,
        facts=facts,
        end=RunEnd(status=EndStatus.OK) if end else None,
    )


def test_facts_of_a_worker_come_into_the_log_in_order() -> None:
    sim = Sim(book()).start()
    sim.send(report(sim, 0, started(sim), task(sim)))
    assert sim.story()[-2:] == ["step.started a", "task.done a"]
    assert [e.source for e in sim.log[-2:]] == ["worker", "worker"]
    assert sim.held(sim.lease("a").lease_id) == 2


def test_a_retried_report_is_taken_once() -> None:
    sim = Sim(book()).start()
    sim.send(report(sim, 0, started(sim)))
    sim.send(report(sim, 0, started(sim)), Verdict.DUPLICATE)
    sim.send(report(sim, 0, started(sim), task(sim)))
    assert sim.names.count("step.started") == 1
    assert sim.names.count("task.done") == 1


def test_a_report_that_skips_facts_is_told_where_to_go_on() -> None:
    sim = Sim(book()).start()
    sim.send(report(sim, 2, task(sim)), Verdict.AHEAD)
    assert sim.decision.expected == 0


def test_a_report_of_another_epoch_or_of_a_run_that_is_over_changes_nothing() -> None:
    sim = Sim(book()).start()
    sim.send(report(sim, 0, started(sim), epoch=2), Verdict.GONE)
    late = report(sim, 0, started(sim), end=True)
    sim.lost("a")
    sim.send(late, Verdict.GONE)
    assert sim.running == ["a"]
    again = report(sim, 0, end=True, epoch=2)
    sim.send(again)
    sim.send(again, Verdict.GONE)
    assert sim.outcome() == ("Succeeded", "Succeeded")


def test_an_empty_report_is_fine() -> None:
    sim = Sim(book()).start()
    sim.send(report(sim, 0))
    assert sim.decision.events == ()


@pytest.mark.parametrize(
    "change",
    [
        {"step": "b"},
        {"run_id": "00000000-0000-0000-0000-000000000000"},
        {"iteration": "0"},
    ],
)
def test_a_worker_speaks_of_its_own_run_only(change: dict[str, str]) -> None:
    sim = Sim(book()).start()
    given = {"step": "a", "run_id": sim.lease("a").run_id, "task": "t", "result": 1, **change}
    sim.send(report(sim, 0, ev.TaskDone(**given)), Verdict.REFUSED)
    assert sim.decision.events == ()


def test_a_worker_may_not_say_what_the_control_plane_decides() -> None:
    sim = Sim(book()).start()
    run_id = sim.lease("a").run_id
    for fact in (
        ev.StepDone(step="a", run_id=run_id, result=1),
        ev.WorkflowFinished(
            run_id=run_id, step="a", phase="Succeeded", reason="Succeeded", message=None,
            result=None, steps={}, failures=[],
        ),
    ):  # fmt: skip
        sim.send(report(sim, 0, fact), Verdict.REFUSED)


def test_iterations_of_other_leases_are_not_for_a_worker_to_report() -> None:
    text = workflow("""
- {step: a, loop: {in: [1, 2], iterator: x, spec: {mode: parallel}}, tool: {kind: noop}}
""")
    sim = Sim(text).start()
    command = sim.lease("a", "0")
    for path in ("1", "0", None, "0.0", "x"):
        fact = ev.IterationDone(step="a", run_id=command.run_id, iteration=path, result=1)
        sim.report(command, fact, verdict=Verdict.REFUSED)


def test_K33_an_event_over_the_limit_is_refused_and_a_result_over_it_is_a_failure() -> None:
    head = "executor: {spec: {policy: {limits: {max_payload_bytes: 2000}}}}"
    sim = Sim(book(head=head)).start()
    sim.send(report(sim, 0, started(sim), task(sim, "x" * 3000)), Verdict.TOO_LARGE)
    assert sim.decision.expected == 1
    sim.send(report(sim, 1, task(sim, "é" * 900)))
    sim.done("a", "x" * 3000)
    error = sim.payload("step.failed")["error"]
    assert error["kind"] == "limit"
    assert "max_payload_bytes" in error["message"]


def test_K33_arc_args_over_the_limit_end_the_execution() -> None:
    head = "executor: {spec: {policy: {limits: {max_payload_bytes: 2000}}}}"
    text = workflow(
        """
- {step: a, tool: {kind: noop},
   next: {arcs: [{step: b, args: {x: "{{ event.result }}", y: "{{ event.result }}"}}]}}
- {step: b, tool: {kind: noop}}
""",
        head,
    )
    sim = Sim(text).start().done("a", "x" * 1500)
    assert sim.outcome() == ("Failed", "LimitExceeded")


def test_a_value_nested_beyond_reason_is_too_large() -> None:
    sim = Sim(book()).start()
    deep: list[object] = []
    for _ in range(900):
        deep = [deep]
    sim.send(report(sim, 0, task(sim, deep)), Verdict.TOO_LARGE)


# Lost workers


def test_a_lost_run_goes_to_another_worker_under_the_next_epoch() -> None:
    sim = Sim(book()).start().begin("a").lost("a")
    lease = sim.lease("a").lease_id
    assert sim.effects == [Requeue(lease, 1)]
    assert sim.payload("step.redelivered") == {"epoch": 1, "reason": "node is gone"}
    assert sim.state.runs[lease].leases[lease].reported == 0
    assert not sim.state.runs[lease].leases[lease].started
    sim.send(WorkerLost(lease_id=lease, epoch=1, reason="again"), Verdict.DUPLICATE)
    sim.begin("a").done("a")
    assert sim.outcome() == ("Succeeded", "Succeeded")
    assert sim.state.steps.total == 1, "redeliveries are not counted (rule K13)"


def test_K24_a_run_that_is_lost_too_often_fails_with_worker_lost() -> None:
    sim = Sim(book()).start()
    for _ in range(4):
        sim.lost("a")
    error = sim.payload("step.failed")["error"]
    assert error["kind"] == "worker_lost"
    assert error["code"] == "WORKER_LOST"
    assert error["retryable"] is True
    assert sim.running == ["b"], "routable like any failure"
    assert sim.names.count("step.redelivered") == 3


def test_max_redeliveries_and_on_worker_lost() -> None:
    sim = Sim(book("{lifecycle: {max_redeliveries: 1}}")).start().lost("a").lost("a")
    assert sim.running == ["b"]
    sim = Sim(book("{lifecycle: {on_worker_lost: fail}}")).start().lost("a")
    assert sim.running == ["b"]


def test_a_run_that_was_handed_back_is_redelivered_whatever_the_limits() -> None:
    sim = Sim(book("{lifecycle: {on_worker_lost: fail}}")).start()
    for _ in range(5):
        sim.lost("a", back=True)
    assert sim.running == ["a"]
    assert sim.payload("step.redelivered")["counts"] is False
    sim.lost("a")
    assert sim.running == ["b"]


def test_a_lost_iteration_is_redelivered_by_itself() -> None:
    text = workflow("""
- {step: a, loop: {in: [1, 2], iterator: x, spec: {mode: parallel}}, tool: {kind: noop}}
""")
    sim = Sim(text).start().begin("a", "0").lost("a", "0")
    assert sim.facts("step.redelivered")[0].iteration == "0"
    sim.done("a", 1, iteration="0").done("a", 2, iteration="1")
    assert sim.payload("loop.done")["result"] == [1, 2]


def test_an_end_that_says_cancelled_without_being_asked_is_a_failure() -> None:
    sim = Sim(book()).start().begin("a").stop("a")
    assert sim.outcome() == ("Failed", "StepFailed")
    assert sim.payload("step.failed")["error"]["kind"] == "cancelled"


# Time


def test_K22_the_deadline_of_a_step_ends_it_and_fences_its_worker() -> None:
    sim = Sim(book("{lifecycle: {deadline_s: 30}}")).start().begin("a")
    late = report(sim, 1, end=True)
    lease = sim.lease("a").lease_id
    assert sim.lease("a").deadline_at == "2026-01-01T00:00:30.000000Z"
    sim.tick(29.5)
    assert sim.running == ["a"]
    sim.tick(0.5)
    assert Revoke(lease) in sim.effects
    assert sim.payload("step.failed")["error"]["code"] == "STEP_DEADLINE"
    assert sim.running == ["c"]
    sim.send(late, Verdict.GONE)


def test_K42_the_default_timeout_of_steps_goes_with_the_command() -> None:
    head = "executor: {spec: {policy: {defaults: {timeouts: {step: 7}}}}}"
    assert Sim(book(head=head)).start().lease("a").timeout_s == 7
    text = book("{lifecycle: {timeout_s: 3}}", head)
    assert Sim(text).start().lease("a").timeout_s == 3
    assert Sim(book()).start().lease("a").timeout_s is None
