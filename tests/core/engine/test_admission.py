"""Rules C2, C3, K17, K40: admission, gates and their deadlines."""

from __future__ import annotations

import pytest

from noetl_core.engine.deadlines import due_at
from tests.support.sim import Sim, workflow


def gate(admit: str, lifecycle: str = "{}", head: str = "") -> str:
    return workflow(
        f"""
- {{step: a, tool: {{kind: noop}}, next: {{arcs: [{{step: b, args: {{n: 3}}}}]}}}}
- step: b
  spec: {{policy: {{admit: {admit}, lifecycle: {lifecycle}}}}}
  tool: {{kind: noop}}
  next: {{arcs: [{{step: c, when: "{{{{ event.error.code == 'ADMIT_DEADLINE' }}}}"}}]}}
- {{step: c, tool: {{kind: noop}}}}
""",
        head,
    )


RULES = """{rules: [
  {when: "{{ args.n > 5 }}", then: {allow: false}},
  {when: "{{ ctx.open }}", then: {allow: true}},
  {when: "{{ event.step == 'a' and workload.lenient }}", then: {allow: true}},
  {else: {then: {allow: false}}}]}"""
WAIT = """{on_deny: wait, deadline_s: 60, rules: [{when: "{{ ctx.open }}", then: {allow: true}}]}"""


def test_C2_without_admit_everyone_enters_and_nothing_is_said() -> None:
    sim = Sim(gate("null")).start().done("a")
    assert sim.running == ["b"]
    assert "policy.admit.evaluated" not in sim.names


@pytest.mark.parametrize(
    ("ctx", "workload", "allow", "rule"),
    [
        ({"open": True}, {}, True, 1),
        ({}, {"lenient": True}, True, 2),
        ({"open": False}, {}, False, "else"),
    ],
)
def test_C2_the_first_rule_that_matches_decides(ctx, workload, allow, rule) -> None:
    sim = Sim(gate(RULES), workload).start()
    if ctx:
        sim.write("a", **ctx)
    sim.done("a")
    assert sim.payload("policy.admit.evaluated") == {"allow": allow, "rule": rule}
    assert sim.running == (["b"] if allow else [])


def test_C2_rules_that_do_not_match_deny() -> None:
    sim = Sim(gate("""{rules: [{when: "{{ ctx.open }}", then: {allow: true}}]}""")).start()
    sim.done("a")
    assert sim.payload("policy.admit.evaluated") == {"allow": False, "rule": "none"}


def test_C3_a_denied_token_is_skipped_and_its_branch_ends() -> None:
    sim = Sim(gate(RULES)).start().done("a")
    assert sim.story()[-4:] == [
        "next.evaluated a",
        "policy.admit.evaluated b",
        "step.skipped b",
        "workflow.finished",
    ]
    assert sim.outcome() == ("Succeeded", "Succeeded")
    assert sim.state.steps.as_json() == {
        "total": 1, "done": 1, "failed": 0, "skipped": 1, "cancelled": 0,
    }  # fmt: skip


def test_C3_a_gate_waits_and_is_judged_again_when_ctx_changes() -> None:
    sim = Sim(gate(WAIT)).start().done("a")
    assert sim.state.phase.value == "Waiting"
    assert sim.payload("policy.admit.evaluated")["waits"] is True
    sim.patch("p1", note="not yet")
    assert sim.state.phase.value == "Waiting"
    assert len(sim.facts("policy.admit.evaluated")) == 2
    sim.patch("p2", open=True)
    assert sim.running == ["b"]
    assert sim.payload("policy.admit.evaluated") == {"allow": True, "rule": 0}
    assert sim.args_of("b") == {"n": 3}
    sim.done("b")
    assert sim.outcome() == ("Succeeded", "Succeeded")


def test_C3_a_tick_alone_does_not_judge_again() -> None:
    sim = Sim(gate(WAIT)).start().done("a").tick(1)
    assert len(sim.facts("policy.admit.evaluated")) == 1


def test_K17_a_write_of_another_step_opens_the_gate_too() -> None:
    text = workflow(f"""
- {{step: a, next: {{spec: {{mode: inclusive}}, arcs: [{{step: b}}, {{step: c}}]}}}}
- {{step: b, spec: {{policy: {{admit: {WAIT}}}}}, tool: {{kind: noop}}}}
- {{step: c, tool: {{kind: noop}}}}
""")
    sim = Sim(text).start()
    assert sim.state.phase.value == "Running", "Waiting is for when nothing runs"
    sim.write("c", open=True)
    assert sorted(sim.running) == ["b", "c"]


def test_K17_admit_deadline_fails_the_step_and_its_own_arcs_route() -> None:
    sim = Sim(gate(WAIT)).start().tick(5).done("a")
    assert due_at(sim.state) == "2026-01-01T00:01:05.000000Z"
    sim.tick(59)
    assert sim.state.phase.value == "Waiting"
    sim.tick(1)
    failed = sim.payload("step.failed")
    assert failed["error"]["kind"] == "timeout"
    assert failed["error"]["code"] == "ADMIT_DEADLINE"
    assert failed["args"] == {"n": 3}
    assert sim.running == ["c"]
    sim.done("c")
    assert sim.outcome() == ("Succeeded", "SucceededWithHandledFailures")
    assert sim.state.steps.as_json() == {
        "total": 3, "done": 2, "failed": 1, "skipped": 0, "cancelled": 0,
    }  # fmt: skip


def test_D9_the_deadline_of_a_step_counts_from_the_arrival_at_its_gate() -> None:
    admit = WAIT.replace("deadline_s: 60", "deadline_s: 600")
    sim = Sim(gate(admit, "{deadline_s: 100}")).start().done("a").tick(40).patch("p", open=True)
    assert sim.lease("b").deadline_at == "2026-01-01T00:01:40.000000Z"
    sim.tick(60)
    assert sim.payload("step.failed")["error"]["code"] == "STEP_DEADLINE"
    waiting = Sim(gate(admit, "{deadline_s: 100}")).start().done("a").tick(100)
    assert waiting.payload("step.failed")["error"]["code"] == "STEP_DEADLINE"


def test_K8_an_error_in_admission_fails_the_execution() -> None:
    sim = Sim(gate("""{rules: [{when: "{{ args.n > 'x' }}", then: {allow: true}}]}"""))
    sim.start().done("a")
    assert sim.outcome() == ("Failed", "TemplateError")
    assert (sim.state.message or "").startswith("step b, admission rule 0: ")


def test_C7_tokens_at_gates_are_dropped_at_an_ending() -> None:
    text = workflow(f"""
- {{step: a, next: {{spec: {{mode: inclusive}}, arcs: [{{step: b}}, {{step: c}}]}}}}
- {{step: b, spec: {{policy: {{admit: {WAIT}}}}}, tool: {{kind: noop}}}}
- {{step: c, tool: {{kind: noop}}}}
""")
    sim = Sim(text).start().fail("c")
    assert sim.outcome() == ("Failed", "StepFailed")
    assert sim.state.steps.skipped == 1
    assert not sim.state.waiting


def test_H2_admission_sees_the_reference_only() -> None:
    ref = {"kind": "result_ref", "store": "postgres", "key": "k", "size": 70000}
    rules = """{rules: [{when: "{{ event.result.kind == 'result_ref' }}", then: {allow: true}}]}"""
    assert Sim(gate(rules)).start().done("a", ref).running == ["b"]
