"""Rules C8, C11, K14–K16, K41, K46: the end of an execution."""

from __future__ import annotations

import orjson

from noetl_core.engine.triggers import CancelMode, TellParent
from tests.support.sim import Sim, workflow


def book(spec: str, steps: str = "") -> str:
    return workflow(
        f"""
- {{step: a, tool: {{kind: noop}}, next: {{arcs: [{{step: b}}]}}}}
- {{step: b, tool: {{kind: noop}}}}
- {{step: clean, tool: {{kind: noop}}}}
{steps}
""",
        f"executor: {{spec: {spec}}}",
    )


FINAL = book("{final_step: clean}")


def test_C8_final_step_runs_once_with_the_summary() -> None:
    sim = Sim(FINAL).start().done("a", 1).done("b", 2)
    assert sim.running == ["clean"]
    assert sim.args_of("clean") == {
        "phase": "Succeeded",
        "reason": "Succeeded",
        "result": 2,
        "steps": {"total": 2, "done": 2, "failed": 0, "skipped": 0, "cancelled": 0},
        "failures": [],
    }
    sim.done("clean", "swept")
    assert sim.names[-1] == "workflow.finished"
    assert sim.outcome() == ("Succeeded", "Succeeded")
    assert sim.state.result == 2, "final_step is not counted (rule C11)"
    assert sim.state.steps.total == 3, "but it is a run (rule K13)"


def test_K14_final_step_runs_after_a_failure() -> None:
    sim = Sim(FINAL).start().fail("a", message="bad")
    args = sim.args_of("clean")
    assert args["phase"] == "Failed"
    assert args["reason"] == "StepFailed"
    assert args["result"] is None
    assert [f["step"] for f in args["failures"]] == ["a"]
    sim.done("clean")
    assert sim.outcome() == ("Failed", "StepFailed")
    assert sim.state.message == "step a failed: bad"


def test_K14_final_step_runs_after_a_limit() -> None:
    sim = Sim(book("{final_step: clean, policy: {limits: {max_step_runs: 1}}}")).start().done("a")
    assert sim.running == ["clean"]
    sim.done("clean")
    assert sim.outcome() == ("Failed", "LimitExceeded")


def test_K14_final_step_runs_after_a_graceful_cancel_and_not_after_a_cancel_now() -> None:
    sim = Sim(FINAL).start().cancel()
    assert sim.args_of("clean")["phase"] == "Cancelled"
    sim.done("clean")
    assert sim.outcome() == ("Cancelled", "Cancelled")
    sim = Sim(FINAL).start().cancel(CancelMode.NOW)
    assert sim.outcome() == ("Cancelled", "Cancelled")
    assert sim.facts("step.scheduled", "clean") == []


def test_K14_a_failure_of_final_step_fails_the_execution() -> None:
    sim = Sim(FINAL).start().done("a").done("b").fail("clean", message="stuck")
    assert sim.outcome() == ("Failed", "FinalStepFailed")
    assert sim.state.message == "step clean failed: stuck"
    assert sim.state.result is None
    sim = Sim(FINAL).start().fail("a", message="bad").fail("clean", message="stuck")
    assert sim.outcome() == ("Failed", "FinalStepFailed")
    assert sim.state.message == "step clean failed: stuck; before that: step a failed: bad"


def test_K14_the_arcs_of_other_steps_do_not_see_final_step() -> None:
    sim = Sim(FINAL).start().done("a").done("b").done("clean", 9)
    assert sim.facts("next.evaluated", "clean") == []


def test_K41_final_step_may_loop() -> None:
    text = workflow(
        """
- {step: a, tool: {kind: noop}}
- step: clean
  loop: {in: [1, 2], iterator: x, spec: {mode: parallel}}
  tool: {kind: noop}
""",
        "executor: {spec: {final_step: clean}}",
    )
    sim = Sim(text).start().done("a", "r")
    sim.done("clean", 1, iteration="0").done("clean", 2, iteration="1")
    assert sim.outcome() == ("Succeeded", "Succeeded")
    assert sim.state.result == "r"
    assert sim.payload("loop.done")["result"] == [1, 2]


def test_C11_the_result_is_that_of_the_last_step_that_finished() -> None:
    sim = Sim(book("{}")).start().done("a", 1).done("b", {"rows": 2})
    assert sim.payload("workflow.finished")["result"] == {"rows": 2}


def test_C11_K15_the_result_template_sees_args_and_event_of_the_last_step() -> None:
    text = book(
        """{result: {n: "{{ event.result }}", s: "{{ event.step }}", x: "{{ args.x }}",
                     c: "{{ ctx.c }}", w: "{{ workload.w }}"}}"""
    ).replace("{step: b}", "{step: b, args: {x: 1}}", 1)
    sim = Sim(text, {"w": 4}).start().write("a", c=3).done("a").done("b", 2)
    assert sim.state.result == {"n": 2, "s": "b", "x": 1, "c": 3, "w": 4}


def test_K15_a_result_that_cannot_be_rendered_fails_the_execution() -> None:
    sim = Sim(book('{result: "{{ ctx.missing }}"}')).start().done("a").done("b")
    assert sim.outcome() == ("Failed", "ResultError")
    assert "ctx.missing" in (sim.state.message or "")


def test_K15_the_result_is_rendered_only_on_success() -> None:
    sim = Sim(book('{result: "{{ ctx.missing }}"}')).start().fail("a")
    assert sim.outcome() == ("Failed", "StepFailed")
    assert sim.state.result is None


def test_H1_a_large_result_of_an_execution_is_a_reference() -> None:
    sim = Sim(book('{result: "{{ workload.big }}"}'), {"big": "x" * 70_000}).start()
    sim.done("a").done("b")
    assert sim.state.result["kind"] == "result_ref"
    assert orjson.loads(sim.stored[sim.state.result["key"]]) == "x" * 70_000


def test_K16_failures_list_handled_ones_too_up_to_a_hundred() -> None:
    text = workflow("""
- step: a
  tool: {kind: noop}
  next: {arcs: [{step: a, when: "{{ event.name == 'step.failed' }}"}]}
""")
    sim = Sim(text).start()
    for _ in range(102):
        sim.fail("a")
    sim.done("a")
    assert sim.outcome() == ("Succeeded", "SucceededWithHandledFailures")
    assert len(sim.payload("workflow.finished")["failures"]) == 100
    assert sim.state.unlisted == 2


def test_K46_a_time_limit_of_the_caller_is_reason_DeadlineExceeded() -> None:
    sim = Sim(FINAL).start(deadline_at="2026-01-01T00:01:00Z").begin("a").tick(59)
    assert sim.running == ["a"]
    sim.tick(1)
    assert sim.payload("execution.cancelled")["cause"] == "DeadlineExceeded"
    sim.tick(1).stop("a")
    assert sim.args_of("clean")["reason"] == "DeadlineExceeded"
    sim.done("clean")
    assert sim.outcome() == ("Cancelled", "DeadlineExceeded")


def test_K16_an_invalid_playbook_ends_at_once_with_its_problems() -> None:
    problem = {"code": "A4.unknown-key", "path": "workflow[0]", "message": "unknown key"}
    sim = Sim(FINAL).start(problems=(problem,))
    assert sim.story() == [
        "playbook.execution.requested",
        "playbook.request.evaluated",
        "execution.ending",
        "workflow.finished",
    ]
    assert sim.payload("playbook.request.evaluated") == {"valid": False, "problems": [problem]}
    assert sim.outcome() == ("Failed", "InvalidPlaybook")
    assert sim.state.message == "workflow[0]: unknown key"


def test_a_finished_child_tells_its_parent() -> None:
    parent = {"execution_id": "p", "run_id": "r", "task": "t", "iteration": None}
    sim = Sim(book("{}")).start(parent=parent, depth=1).done("a").done("b")
    assert sim.effects == [TellParent(parent)]
