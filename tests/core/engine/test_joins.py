"""Rules C9, K12: joins."""

from __future__ import annotations

from noetl_core.engine.events import JoinFilled
from tests.support.sim import Sim, workflow


def diamond(join: str, extra: str = "") -> str:
    return workflow(f"""
- {{step: a, tool: {{kind: noop}},
    next: {{spec: {{mode: inclusive}}, arcs: [{{step: b}}, {{step: c}}]}}}}
- {{step: b, tool: {{kind: noop}},
    next: {{arcs: [{{step: j, when: "{{{{ event.status == 'ok' and event.result != 'no' }}}}",
                    args: {{x: "{{{{ event.result }}}}", b: 1}}}}]}}}}
- {{step: c, tool: {{kind: noop}},
    next: {{arcs: [{{step: j, args: {{x: "{{{{ event.result }}}}", c: 1}}}}]}}}}
- {{step: j, spec: {{join: {join}}}, tool: {{kind: noop}}}}
{extra}
""")


def test_C9_a_join_fires_once_with_args_in_the_order_of_the_arcs() -> None:
    sim = Sim(diamond("all")).start().done("a").done("c", "from c")
    assert sim.running == ["b"]
    assert "step.scheduled j" not in sim.story()
    sim.done("b", "from b")
    assert sim.running == ["j"]
    assert sim.args_of("j") == {"x": "from c", "b": 1, "c": 1}, "the later arc wins"
    sim.done("j", "end")
    assert sim.outcome() == ("Succeeded", "Succeeded")
    assert len(sim.facts("step.scheduled", "j")) == 1


def test_C9_the_event_of_a_join_is_that_of_the_token_that_came_last() -> None:
    text = diamond("all").replace(
        "spec: {join: all}",
        """spec: {join: all, policy: {admit: {rules: [
            {when: "{{ event.step == 'b' and args.c == 1 }}", then: {allow: true}}]}}}""",
    )
    assert Sim(text).start().done("a").done("c").done("b").running == ["j"]
    assert Sim(text).start().done("a").done("b").done("c").running == []


def test_C9_sets_of_tokens_are_matched_one_by_one() -> None:
    sim = Sim(
        workflow("""
- step: a
  next: {spec: {mode: inclusive}, arcs: [{step: b}, {step: b}, {step: c}, {step: c}]}
- {step: b, tool: {kind: noop}, next: {arcs: [{step: j, args: {b: "{{ event.result }}"}}]}}
- {step: c, tool: {kind: noop}, next: {arcs: [{step: j, args: {c: "{{ event.result }}"}}]}}
- {step: j, spec: {join: all}, tool: {kind: noop}}
""")
    ).start()
    sim.done("b", 1).done("b", 2)
    assert sim.running == ["c", "c"]
    sim.done("c", 3).done("c", 4)
    assert sim.running == ["j", "j"]
    assert [sim.args_of("j", n) for n in (0, 1)] == [{"b": 1, "c": 3}, {"b": 2, "c": 4}]


def test_K12_two_arcs_of_one_step_are_two_places() -> None:
    sim = Sim(
        workflow("""
- {step: a, tool: {kind: noop}, next: {spec: {mode: inclusive},
   arcs: [{step: j, args: {p: 1}}, {step: j, args: {q: 2}}]}}
- {step: j, spec: {join: all}, tool: {kind: noop}}
""")
    ).start()
    sim.done("a")
    assert sim.running == ["j"]
    assert sim.args_of("j") == {"p": 1, "q": 2}


def test_K12_the_entry_token_enters_a_join_directly() -> None:
    sim = Sim(
        workflow("""
- {step: j, spec: {join: {mode: all, at_end: drop}}, tool: {kind: noop},
   next: {arcs: [{step: b, when: "{{ event.result == 1 }}"}]}}
- {step: b, tool: {kind: noop}, next: {arcs: [{step: j}]}}
- {step: c, tool: {kind: noop}, next: {arcs: [{step: j}]}}
""")
    ).start()
    assert sim.running == ["j"]


def test_C9_at_end_fail_names_the_step_and_the_arcs_without_a_token() -> None:
    sim = Sim(diamond("all")).start().done("a").done("b", "no").done("c")
    assert sim.outcome() == ("Failed", "JoinIncomplete")
    assert sim.state.message == "step j waits for all its arcs, and no token came by b/0"


def test_C9_at_end_fire_runs_it_once_with_what_is_there() -> None:
    sim = Sim(diamond("{mode: all, at_end: fire}")).start().done("a").done("b", "no").done("c", 5)
    assert sim.running == ["j"]
    assert sim.args_of("j") == {"x": 5, "c": 1}
    filled = sim.facts("join.filled")[0]
    assert isinstance(filled, JoinFilled)
    assert filled.missing == ["b/0"]
    sim.done("j")
    assert sim.outcome() == ("Succeeded", "Succeeded")


def test_C9_at_end_drop_forgets_the_tokens_with_an_event() -> None:
    sim = Sim(diamond("{mode: all, at_end: drop}")).start().done("a").done("b", "no").done("c")
    assert sim.story()[-2:] == ["join.dropped j", "workflow.finished"]
    assert len(sim.payload("join.dropped")["tokens"]) == 1
    assert sim.outcome() == ("Succeeded", "Succeeded")


def test_C8_tokens_in_a_join_do_not_keep_an_execution_alive() -> None:
    sim = Sim(diamond("{mode: all, at_end: drop}")).start().done("a").done("c")
    assert sim.state.phase.value == "Running"
    assert not sim.state.is_quiet, "b still runs"
    sim.done("b", "no")
    assert sim.state.phase.is_final


TWO = """
- {step: a, tool: {kind: noop},
   next: {spec: {mode: inclusive}, arcs: [{step: j1}, {step: j2}]}}
- {step: x, tool: {kind: noop}, next: {arcs: [{step: j1}]}}
- {step: j1, spec: {join: {mode: all, at_end: fire}}, tool: {kind: noop},
   next: {arcs: [{step: j2}]}}
- {step: j2, spec: {join: {mode: all, at_end: drop}}, tool: {kind: noop}}
"""


def test_K12_joins_are_judged_one_at_a_time_in_workflow_order_then_again() -> None:
    sim = Sim(workflow(TWO)).start().done("a")
    assert sim.running == ["j1"], "j2 is not judged yet: j1 may fill it"
    sim.done("j1")
    assert sim.running == ["j2"]
    assert "join.dropped" not in sim.names
    sim.done("j2")
    assert sim.outcome() == ("Succeeded", "Succeeded")


def test_C7_a_join_that_lacks_the_tokens_of_a_failed_branch_is_not_the_reason() -> None:
    head = "executor: {spec: {policy: {failure: {mode: best_effort}}}}\nworkflow"
    sim = Sim(diamond("all").replace("workflow", head)).start().done("a").fail("b").done("c")
    assert sim.outcome() == ("Failed", "StepFailed")


def test_C7_tokens_in_joins_vanish_at_an_ending() -> None:
    sim = Sim(diamond("all")).start().done("a").done("c").fail("b")
    assert sim.outcome() == ("Failed", "StepFailed")
    assert not sim.state.places
    assert "join.dropped" not in sim.names


def test_C3_a_filled_join_may_wait_at_its_gate() -> None:
    text = diamond("all").replace(
        "spec: {join: all}",
        """spec: {join: all, policy: {admit: {on_deny: wait, rules: [
            {when: "{{ ctx.open }}", then: {allow: true}}]}}}""",
    )
    sim = Sim(text).start().done("a").done("b").done("c")
    assert sim.state.phase.value == "Waiting"
    sim.patch("p", open=True)
    assert sim.running == ["j"]


def test_C9_tokens_of_one_router_meet_an_earlier_one() -> None:
    sim = Sim(
        workflow("""
- step: a
  next: {spec: {mode: inclusive}, arcs: [{step: s}, {step: s}]}
- step: s
  tool: {kind: noop}
  next:
    spec: {mode: inclusive}
    arcs:
      - {step: j, args: {n: "{{ event.result }}"}}
      - {step: j, when: "{{ event.result == 2 }}", args: {m: "{{ event.result }}"}}
- {step: j, spec: {join: {mode: all, at_end: drop}}, tool: {kind: noop}}
""")
    ).start()
    sim.done("s", 1)
    assert sim.running == ["s"]
    sim.done("s", 2)
    assert sim.running == ["j"]
    assert sim.args_of("j") == {"n": 1, "m": 2}, "the earlier token of the first place goes first"
    sim.done("j", "end")
    assert len(sim.facts("join.dropped", "j")) == 1
    assert sim.outcome() == ("Succeeded", "Succeeded")
