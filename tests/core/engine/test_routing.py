"""Rules C1, C4–C8, C10, C12, K10, K11, K13, K18: tokens, arcs, and what a failure does."""

from __future__ import annotations

import pytest

from noetl_core.engine.events import NextEvaluated
from noetl_core.engine.triggers import Revoke, Stop
from tests.support.sim import EXECUTION, Sim, workflow

CHAIN = workflow("""
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop}}
""")


def test_C1_the_first_step_gets_the_one_first_token() -> None:
    sim = Sim(CHAIN).start()
    assert sim.story() == [
        "playbook.execution.requested",
        "playbook.request.evaluated",
        "workflow.started a",
        "step.scheduled a",
    ]
    assert sim.running == ["a"]


def test_C1_entry_step_wins_over_the_order_of_the_file() -> None:
    sim = Sim(
        workflow(
            """
- {step: a, tool: {kind: noop}}
- {step: b, tool: {kind: noop}}
""",
            "executor: {spec: {entry_step: b}}",
        )
    ).start()
    assert sim.running == ["b"]


def test_C4_exclusive_fires_the_first_match_only() -> None:
    sim = Sim(
        workflow("""
- step: a
  tool: {kind: noop}
  next:
    arcs:
      - {step: b, when: "{{ event.result > 5 }}"}
      - {step: c, when: "{{ event.result > 1 }}"}
      - {step: b}
- {step: b, tool: {kind: noop}}
- {step: c, tool: {kind: noop}}
""")
    ).start()
    sim.done("a", 3)
    evaluated = sim.facts("next.evaluated", "a")[0]
    assert isinstance(evaluated, NextEvaluated)
    assert evaluated.payload() == {
        "mode": "exclusive",
        "matched": [1],
        "fired": [{"arc": 1, "step": "c", "run_id": next(iter(sim.state.runs))}],
    }
    assert sim.running == ["c"]


def test_C4_inclusive_fires_every_match_in_order() -> None:
    sim = Sim(
        workflow("""
- step: a
  tool: {kind: noop}
  next:
    spec: {mode: inclusive}
    arcs:
      - {step: b, when: "{{ event.result > 1 }}"}
      - {step: c, when: "{{ event.result > 5 }}"}
      - {step: d}
- {step: b, tool: {kind: noop}}
- {step: c, tool: {kind: noop}}
- {step: d, tool: {kind: noop}}
""")
    ).start()
    sim.done("a", 3)
    assert sim.payload("next.evaluated")["matched"] == [0, 2]
    assert sim.running == ["b", "d"]
    assert sim.story()[-4:] == ["step.done a", "next.evaluated a", "step.scheduled b",
                                "step.scheduled d"]  # fmt: skip


def test_C5_an_arc_without_when_fires_on_success_and_not_on_failure() -> None:
    assert Sim(CHAIN).start().done("a").running == ["b"]
    sim = Sim(CHAIN).start().fail("a")
    assert sim.payload("next.evaluated", "a")["fired"] == []
    assert sim.outcome() == ("Failed", "StepFailed")


def test_C5_when_true_fires_on_failure_too() -> None:
    text = CHAIN.replace("{step: b}", "{step: b, when: true}", 1)
    assert Sim(text).start().fail("a").running == ["b"]
    assert Sim(text).start().done("a").running == ["b"]


def test_C5_a_loop_step_routes_once_on_loop_done() -> None:
    sim = Sim(
        workflow("""
- step: a
  loop: {in: [1, 2], iterator: x}
  tool: {kind: noop}
  next:
    spec: {mode: inclusive}
    arcs:
      - {step: b, when: "{{ event.name == 'loop.done' }}"}
      - {step: c, when: "{{ event.name == 'step.done' }}"}
- {step: b, tool: {kind: noop}}
- {step: c, tool: {kind: noop}}
""")
    ).start()
    sim.done("a")
    assert sim.running == ["b"]
    assert "step.done" not in sim.names


def test_C6_arc_args_are_rendered_with_native_types() -> None:
    sim = Sim(
        workflow(
            """
- step: a
  tool: {kind: noop}
  next:
    arcs:
      - step: b
        args:
          n: "{{ event.result.n }}"
          text: "n={{ event.result.n }}"
          from: "{{ workload.source }}"
          bare: "{{ source }}"
          run: "{{ execution.name }}/{{ execution_id }}"
- {step: b, tool: {kind: noop}}
""",
            "workload: {source: db}",
        ),
    ).start()
    sim.done("a", {"n": 3})
    assert sim.args_of("b") == {
        "n": 3,
        "text": "n=3",
        "from": "db",
        "bare": "db",
        "run": f"run-1/{EXECUTION}",
    }
    assert sim.lease("b").args == sim.args_of("b")


def test_K10_a_token_inherits_no_args() -> None:
    sim = Sim(
        workflow("""
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b, args: {x: 1}}]}}
- {step: b, tool: {kind: noop}, next: {arcs: [{step: c}]}}
- {step: c, tool: {kind: noop}}
""")
    ).start()
    sim.done("a").done("b")
    assert sim.args_of("b") == {"x": 1}
    assert sim.args_of("c") == {}


def test_C7_an_unhandled_failure_ends_the_execution_and_cancels_the_rest() -> None:
    sim = Sim(FORK).start().done("a")
    sim.begin("c")
    b, c = sim.lease("b"), sim.lease("c")
    d = sim.lease("d")
    sim.fail("b", kind="auth", message="no key", task="t")
    assert sim.payload("execution.ending") == {
        "phase": "Failed",
        "reason": "StepFailed",
        "message": "step b, task t failed: no key",
    }
    assert Revoke(d.lease_id) in sim.effects, "nobody had begun it"
    assert Stop(c.lease_id) in sim.effects, "its worker is asked to stop"
    assert b.lease_id not in sim.queue
    assert sim.running == ["c"]
    assert sim.state.phase.value == "Running", "it is over when its last run has answered"
    sim.stop("c")
    assert sim.outcome() == ("Failed", "StepFailed")
    assert sim.payload("workflow.finished")["steps"] == {
        "total": 4, "done": 1, "failed": 1, "skipped": 0, "cancelled": 2,
    }  # fmt: skip
    assert [f["step"] for f in sim.state.failures] == ["b"], "cancelled runs are no failures"


FORK = workflow("""
- step: a
  tool: {kind: noop}
  next: {spec: {mode: inclusive}, arcs: [{step: b}, {step: c}, {step: d}]}
- {step: b, tool: {kind: noop}, next: {arcs: [{step: e}]}}
- {step: c, tool: {kind: noop}, next: {arcs: [{step: e}]}}
- {step: d, tool: {kind: noop}, next: {arcs: [{step: e}]}}
- {step: e, tool: {kind: noop}}
""")


def test_C7_a_run_that_ends_well_while_it_is_cancelled_counts_and_does_not_route() -> None:
    sim = Sim(FORK).start().done("a").begin("c").fail("b")
    sim.done("c", "late")
    assert sim.outcome() == ("Failed", "StepFailed")
    assert sim.state.steps.done == 2
    assert sim.facts("next.evaluated", "c") == []
    assert sim.facts("step.scheduled", "e") == []


def test_C7_a_worker_lost_while_its_run_is_cancelled_ends_it() -> None:
    sim = Sim(FORK).start().done("a").begin("c").fail("b").lost("c")
    assert sim.outcome() == ("Failed", "StepFailed")
    assert sim.facts("step.redelivered") == []
    assert sim.state.steps.cancelled == 2


@pytest.mark.parametrize(
    ("head", "spec"),
    [
        ("executor: {spec: {policy: {failure: {mode: best_effort}}}}", ""),
        ("", "spec: {policy: {failure: {mode: best_effort}}}, "),
    ],
    ids=["executor", "step"],
)
def test_C7_best_effort_lets_other_branches_end_first(head: str, spec: str) -> None:
    text = FORK.replace("{step: b, tool", f"{{step: b, {spec}tool").replace(
        "\nworkflow", f"{head}\nworkflow"
    )
    sim = Sim(text).start().done("a").fail("b", message="bad")
    assert sim.running == ["c", "d"]
    assert "execution.ending" not in sim.names
    sim.done("c").done("d").done("e").done("e")
    assert sim.outcome() == ("Failed", "StepFailed")
    assert sim.state.message == "step b failed: bad"
    assert sim.state.steps.done == 5


def test_C7_a_failure_that_an_arc_took_is_handled() -> None:
    sim = Sim(
        workflow("""
- step: a
  tool: {kind: noop}
  next: {arcs: [{step: fix, when: "{{ event.error.kind == 'auth' }}",
                 args: {why: "{{ event.error.message }}", task: "{{ event.error.task }}"}}]}
- {step: fix, tool: {kind: noop}}
""")
    ).start()
    sim.fail("a", kind="auth", message="no key", task="login")
    assert sim.args_of("fix") == {"why": "no key", "task": "login"}
    sim.done("fix")
    assert sim.outcome() == ("Succeeded", "SucceededWithHandledFailures")
    (failure,) = sim.state.failures
    assert failure["handled"] is True
    assert failure["error"]["kind"] == "auth"
    assert sim.payload("step.failed")["handled"] is True


def test_C8_without_next_or_a_match_the_branch_ends() -> None:
    text = CHAIN.replace("{step: b}", '{step: b, when: "{{ event.result }}"}', 1)
    sim = Sim(text).start().done("a", 0)
    assert sim.outcome() == ("Succeeded", "Succeeded")
    sim = Sim(CHAIN).start().done("a").done("b")
    assert sim.outcome() == ("Succeeded", "Succeeded")
    assert sim.names[-1] == "workflow.finished"
    assert sim.facts("next.evaluated", "b") == [], "no router, no decision"


def test_C9_every_token_that_reaches_a_plain_step_runs_it() -> None:
    sim = Sim(FORK).start().done("a").done("b").done("c").done("d")
    assert sim.running == ["e", "e", "e"]
    assert len({run for run in sim.state.runs}) == 3


CYCLE = workflow(
    """
- step: a
  tool: {kind: noop}
  next: {arcs: [{step: a, when: "{{ event.result < 3 }}", args: {n: "{{ event.result }}"}}]}
""",
    "executor: {spec: {policy: {limits: {max_step_runs: 5}}}}",
)


def test_C10_cycles_are_legal() -> None:
    sim = Sim(CYCLE).start()
    for n in range(1, 4):
        sim.done("a", n)
    assert sim.outcome() == ("Succeeded", "Succeeded")
    assert sim.state.steps.total == 3


def test_C10_K18_max_step_runs_ends_a_runaway_and_no_arc_can_take_it() -> None:
    sim = Sim(CYCLE).start()
    for _ in range(5):
        sim.done("a", 0)
    assert sim.outcome() == ("Failed", "LimitExceeded")
    assert sim.state.steps.total == 5
    assert "max_step_runs" in (sim.state.message or "")
    assert sim.state.steps.skipped == 1, "the token that was one too many"


def test_C12_event_of_the_entry_token_has_only_a_name() -> None:
    sim = Sim(
        workflow("""
- step: a
  spec:
    policy:
      admit:
        rules:
          - {when: "{{ event.name == 'workflow.started' and event.step is not defined }}",
             then: {allow: true}}
  tool: {kind: noop}
""")
    ).start()
    assert sim.running == ["a"]


def test_C12_event_carries_what_the_run_was() -> None:
    sim = Sim(
        workflow("""
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b, args: {x: 7}}]}}
- step: b
  tool: {kind: noop}
  next: {arcs: [{step: c, args: {e: "{{ event }}", own: "{{ args.x }}"}}]}
- {step: c, tool: {kind: noop}}
""")
    ).start()
    run_id = sim.done("a").lease("b").run_id
    sim.done("b", {"rows": 2})
    assert sim.args_of("c") == {
        "own": 7,
        "e": {
            "name": "step.done",
            "step": "b",
            "run_id": run_id,
            "status": "ok",
            "result": {"rows": 2},
            "error": None,
            "loop": None,
            "args": {"x": 7},
        },
    }


def test_K11_of_two_branches_that_write_one_key_the_later_commit_stands() -> None:
    sim = Sim(FORK).start().done("a")
    sim.write("c", x=1).write("b", x=2)
    assert sim.state.ctx == {"x": 2}
    assert [f.payload()["set"] for f in sim.facts("ctx.patched")] == [{"x": 1}, {"x": 2}]


def test_K13_a_step_that_only_routes_is_run_by_the_control_plane_and_counts() -> None:
    sim = Sim(
        workflow("""
- {step: a, next: {arcs: [{step: b, when: "{{ event.result is none }}"}]}}
- {step: b, next: {arcs: [{step: c}]}}
- {step: c, tool: {kind: noop}}
""")
    ).start()
    assert sim.story()[2:] == [
        "workflow.started a",
        "step.scheduled a",
        "step.done a",
        "next.evaluated a",
        "step.scheduled b",
        "step.done b",
        "next.evaluated b",
        "step.scheduled c",
    ]
    assert [e.source for e in sim.log if e.fact.name == "step.done"] == ["control", "control"]
    sim.done("c")
    assert sim.state.steps.total == sim.state.steps.done == 3


@pytest.mark.parametrize(
    ("arc", "place"),
    [
        ('{step: b, when: "{{ event.result > 1 }}"}', "step a, arc 0 to b, when"),
        ('{step: b, args: {x: "{{ event.result.missing }}"}}', "step a, arc 0 to b, args"),
    ],
)
def test_K8_an_error_in_an_arc_fails_the_execution(arc: str, place: str) -> None:
    sim = Sim(CHAIN.replace("{step: b}", arc, 1)).start().done("a", "text")
    assert sim.outcome() == ("Failed", "TemplateError")
    assert (sim.state.message or "").startswith(place)


def test_K8_an_error_in_an_arc_of_a_failed_step_fails_the_execution_so() -> None:
    text = CHAIN.replace("{step: b}", '{step: b, when: "{{ event.error > 1 }}"}', 1)
    sim = Sim(text).start().fail("a")
    assert sim.outcome() == ("Failed", "TemplateError")


def test_B4_the_keychain_is_no_name_of_the_control_plane() -> None:
    text = CHAIN.replace("{step: b}", '{step: b, when: "{{ keychain is not defined }}"}', 1)
    assert Sim(text).start().done("a").running == ["b"]


def test_one_decision_starts_a_bounded_number_of_runs() -> None:
    arcs = ", ".join("{step: b}" for _ in range(700))
    text = workflow(f"""
- {{step: a, tool: {{kind: noop}}, next: {{spec: {{mode: inclusive}}, arcs: [{arcs}]}}}}
- {{step: b, tool: {{kind: noop}}}}
""")
    sim = Sim(text).start().done("a")
    assert len(sim.state.runs) == 500
    assert len(sim.state.pending) == 200
    sim.tick()
    assert len(sim.state.runs) == 700
    assert not sim.state.pending
