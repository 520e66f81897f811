"""Sections E and K26–K29 as the control plane sees them: lists, windows, ends, writes."""

from __future__ import annotations

import orjson
import pytest

from noetl_core.engine import events as ev
from noetl_core.engine.state import State
from noetl_core.engine.transition import transition
from noetl_core.engine.triggers import (
    EndStatus,
    IterationEnd,
    Needed,
    Reported,
    Revoke,
    RunEnd,
    Start,
    Stop,
    Unreadable,
    Verdict,
)
from noetl_core.outcomes import ErrorKind, TaskError
from tests.support.sim import BEGIN, Sim, workflow


def loop(text: str, policy: str = "{}", head: str = "") -> str:
    return workflow(
        f"""
- step: a
  spec: {{policy: {policy}}}
  loop: {text}
  tool: {{kind: noop}}
  next:
    arcs:
      - {{step: ok, when: "{{{{ event.name == 'loop.done' }}}}",
         args: {{r: "{{{{ event.result }}}}", loop: "{{{{ event.loop }}}}"}}}}
      - {{step: bad, when: "{{{{ event.name == 'step.failed' }}}}",
         args: {{e: "{{{{ event.error }}}}", loop: "{{{{ event.loop }}}}"}}}}
- {{step: ok, tool: {{kind: noop}}}}
- {{step: bad, tool: {{kind: noop}}}}
""",
        head,
    )


LOCAL = loop("{in: [x, y], iterator: it}")
PARALLEL = loop("{in: [x, y, z], iterator: it, spec: {mode: parallel, max_in_flight: 2}}")
BEST_EFFORT = "{failure: {mode: best_effort}}"


def iteration(sim: Sim, path: str, result: object = None, failed: bool = False) -> ev.Fact:
    """The end of an iteration inside a lease, as a worker says it."""
    run_id = sim.lease("a").run_id
    if failed:
        error = {"kind": "unknown", "message": "boom"}
        return ev.IterationFailed(step="a", run_id=run_id, iteration=path, task="t", error=error)
    return ev.IterationDone(step="a", run_id=run_id, iteration=path, result=result)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ('"{{ workload.text }}"', "text"),
        ('"{{ workload }}"', "a mapping"),
        ('"{{ 3 }}"', "a number"),
    ],
)
def test_E1_anything_but_a_list_fails_the_step_and_names_the_type(given: str, named: str) -> None:
    sim = Sim(loop(f"{{in: {given}, iterator: it}}"), {"text": "no list"}).start()
    error = sim.args_of("bad")["e"]
    assert f"`in` must be a list and is {named}" in error["message"]
    assert "loop.started" not in sim.names


def test_E1_an_error_in_the_template_fails_the_step() -> None:
    sim = Sim(loop('{in: "{{ ctx.missing }}", iterator: it}')).start()
    assert sim.args_of("bad")["e"]["kind"] == "template"


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_E1_an_empty_list_is_done_at_once(mode: str) -> None:
    sim = Sim(loop(f"{{in: [], iterator: it, spec: {{mode: {mode}}}}}")).start()
    assert sim.story("next.evaluated")[3:] == [
        "step.scheduled a",
        "loop.started a",
        "loop.done a",
        "step.scheduled ok",
    ]
    assert sim.args_of("ok") == {
        "r": [],
        "loop": {"total": 0, "done": 0, "failed": 0, "failures": []},
    }


def test_E3_a_sequential_loop_is_one_lease_with_all_its_items() -> None:
    sim = Sim(LOCAL).start()
    command = sim.lease("a")
    assert command.items == ["x", "y"]
    assert command.window == 1
    assert sim.payload("loop.started")["items"] == ["x", "y"]
    sim.report(command, iteration(sim, "0", 1), iteration(sim, "1", 2))
    sim.done("a")
    assert sim.args_of("ok")["r"] == [1, 2]


def test_E3_parallel_and_local_is_one_lease_with_a_window() -> None:
    text = "{in: [1, 2], iterator: it, spec: {mode: parallel, policy: {exec: local}}}"
    command = Sim(loop(text)).start().lease("a")
    assert command.window == 10


def test_E3_a_parallel_loop_leases_each_iteration() -> None:
    sim = Sim(PARALLEL).start()
    first = sim.lease("a", "0")
    assert first.iters == ({"it": "x", "index": 0, "total": 3},)
    assert first.run_id == sim.lease("a", "1").run_id
    assert [f.iteration for f in sim.facts("loop.iteration.scheduled")] == ["0", "1"]
    assert sim.state.steps.total == 1, "an iteration is no step-run (rule K13)"


def test_E2_no_more_than_max_in_flight_run_at_once() -> None:
    sim = Sim(PARALLEL).start()
    assert len(sim.queue) == 2
    sim.done("a", "r1", iteration="1")
    assert [c.iteration for c in sim.queue.values()] == ["0", "2"]


def test_E2_max_in_flight_may_be_a_template() -> None:
    text = PARALLEL.replace("max_in_flight: 2", 'max_in_flight: "{{ workload.n }}"')
    assert len(Sim(text, {"n": 3}).start().queue) == 3
    sim = Sim(text, {"n": 0}).start()
    assert "whole number from 1 and is 0" in sim.args_of("bad")["e"]["message"]
    sim = Sim(text, {"n": "3"}).start()
    assert "is text" in sim.args_of("bad")["e"]["message"]


def test_E6_results_are_in_the_order_of_the_list_and_not_of_their_ends() -> None:
    sim = Sim(PARALLEL).start()
    sim.done("a", "r1", iteration="1").done("a", "r2", iteration="2").done("a", "r0", iteration="0")
    assert sim.args_of("ok") == {
        "r": ["r0", "r1", "r2"],
        "loop": {"total": 3, "done": 3, "failed": 0, "failures": []},
    }
    assert "step.done" not in sim.story("step.scheduled"), "a loop ends with loop.done (K40)"


def test_E6_H1_a_long_list_of_results_is_a_reference() -> None:
    sim = Sim(PARALLEL).start()
    for path in "012":
        sim.done("a", path * 40_000, iteration=path)
    ref = sim.payload("loop.done")["result"]
    assert ref["kind"] == "result_ref"
    assert orjson.loads(sim.stored[ref["key"]]) == [p * 40_000 for p in "012"]
    assert sim.args_of("ok")["r"] == ref, "arcs see the reference only (rule H2)"


def test_H2_a_loop_follows_references() -> None:
    text = workflow("""
- {step: s, tool: {kind: noop},
   next: {arcs: [{step: a, args: {rows: "{{ event.result }}", deep: {r: "{{ event.result }}"}}}]}}
- {step: a, loop: {in: "{{ args.rows }}", iterator: it}, tool: {kind: noop},
   next: {arcs: [{step: b, args: {deep: "{{ event.args.deep }}"}}]}}
- {step: b, loop: {in: "{{ args.deep.r[1].inner }}", iterator: it}, tool: {kind: noop}}
""")
    sim = Sim(text).start()
    content = orjson.dumps([1, {"inner": [7, 8]}])
    ref = {"kind": "result_ref", "store": "postgres", "key": "k1", "size": len(content)}
    ref["checksum"] = "sha256:k1"
    sim.stored["k1"] = content
    sim.done("s", ref)
    assert sim.lease("a").items == [1, {"inner": [7, 8]}]
    sim.report(sim.lease("a"), iteration(sim, "0"), iteration(sim, "1")).done("a")
    assert sim.lease("b").items == [7, 8]


def test_H3_selected_fields_are_read_without_the_stored_value() -> None:
    text = workflow("""
- {step: s, tool: {kind: noop}, next: {arcs: [{step: a, args: {r: "{{ event.result }}"}}]}}
- {step: a, loop: {in: "{{ args.r.selected.ids }}", iterator: it}, tool: {kind: noop}}
""")
    sim = Sim(text).start()
    ref = {"kind": "result_ref", "key": "none", "checksum": "sha256:none"}
    sim.done("s", {**ref, "selected": {"ids": [4]}})
    assert sim.lease("a").items == [4]


def test_E1_a_list_that_is_gone_fails_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    text = workflow("""
- {step: s, tool: {kind: noop}, next: {arcs: [{step: a, args: {r: "{{ event.result }}"}}]}}
- {step: a, loop: {in: "{{ args.r }}", iterator: it}, tool: {kind: noop},
   next: {arcs: [{step: b, when: "{{ event.error.kind == 'not_found' }}"}]}}
- {step: b, tool: {kind: noop}}
""")
    sim = Sim(text).start()
    monkeypatch.setattr(sim, "result", lambda key: Unreadable(f"{key} is gone"))
    sim.done("s", {"kind": "result_ref", "key": "k1", "checksum": "sha256:k1"})
    assert sim.running == ["b"]
    assert sim.payload("step.failed")["error"]["message"] == "loop over it, in: k1 is gone"


def test_H2_data_that_only_resembles_a_reference_is_data() -> None:
    text = workflow("""
- {step: s, tool: {kind: noop}, next: {arcs: [{step: a, args: {r: "{{ event.result }}"}}]}}
- {step: a, loop: {in: "{{ args.r }}", iterator: it}, tool: {kind: noop}}
""")
    sim = Sim(text).start()
    sim.done("s", {"kind": "result_ref", "key": 7, "checksum": "sha256:7"})
    assert "is a mapping" in sim.payload("step.failed")["error"]["message"]


def test_items_that_are_gone_end_the_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were stored by the engine itself: nothing of the loop can go on without them."""
    text = PARALLEL.replace("[x, y, z]", '"{{ workload.rows }}"')
    sim = Sim(text, {"rows": ["row" * 10] * 1000}).start()
    monkeypatch.setattr(sim, "result", lambda key: Unreadable("the items are gone"))
    sim.done("a", 1, iteration="0")
    ending = sim.payload("execution.ending")
    assert (ending["reason"], ending["message"]) == ("ResultError", "the items are gone")


def test_what_is_not_at_hand_is_asked_for() -> None:
    class Nothing:
        def result(self, key: str) -> None:
            return None

        def iterations(self, run_id: str) -> list[IterationEnd] | None:
            return None

        def frames(self, run_id: str) -> dict[str, int] | None:
            return None

    sim = Sim(LOCAL)
    _, commit = transition(sim.program, State(), Start(), BEGIN, Nothing())
    run_id = next(iter(commit.state.runs))
    report = Reported(lease_id=run_id, epoch=1, first=0, end=RunEnd(status=EndStatus.OK))
    with pytest.raises(Needed) as needed:
        transition(sim.program, commit.state, report, BEGIN, Nothing())
    assert needed.value.loop == run_id


def test_a_long_list_is_stored_so_that_the_state_stays_small() -> None:
    text = PARALLEL.replace("[x, y, z]", '"{{ workload.rows }}"')
    sim = Sim(text, {"rows": ["row" * 10] * 1000}).start()
    assert len(orjson.dumps(sim.state)) < 3000
    assert sim.lease("a", "1").iters[0]["it"] == "row" * 10
    before = len(orjson.dumps(sim.state))
    for n in range(100):
        sim.done("a", "r" * 100, iteration=str(n))
    assert len(orjson.dumps(sim.state)) < before + 50, "ended iterations leave a count only"


def test_E5_the_first_failed_iteration_stops_the_rest() -> None:
    text = PARALLEL.replace("max_in_flight: 2", "max_in_flight: 3").replace("z]", "z, u]")
    sim = Sim(text).start().begin("a", "0")
    zero, two = sim.lease("a", "0"), sim.lease("a", "2")
    sim.fail("a", iteration="1", kind="auth", message="no key", task="t")
    assert Revoke(two.lease_id) in sim.effects, "not begun"
    assert Stop(zero.lease_id) in sim.effects
    assert "step.failed" not in sim.names
    sim.done("a", "late", iteration="0")
    failed = sim.args_of("bad")
    assert failed["e"]["kind"] == "auth"
    assert failed["e"]["task"] == "t"
    assert failed["e"]["iteration"] == "1"
    assert failed["loop"]["total"] == 4
    assert failed["loop"]["done"] == 1
    assert failed["loop"]["failed"] == 1
    assert not [f for f in sim.facts("loop.iteration.scheduled") if f.iteration == "3"]


def test_E5_a_stopped_iteration_that_is_cancelled_or_lost_ends_the_loop() -> None:
    for way in ("stop", "lost"):
        sim = Sim(PARALLEL).start().begin("a", "0").fail("a", iteration="1")
        getattr(sim, way)("a", "0")
        assert sim.running == ["bad"]
        assert sim.facts("loop.iteration.cancelled")[0].iteration == "0"


def test_E5_local_fail_fast_is_what_the_worker_says() -> None:
    sim = Sim(LOCAL).start()
    sim.report(sim.lease("a"), iteration(sim, "0", failed=True))
    sim.fail("a", inner="0", task="t", message="boom")
    assert sim.args_of("bad")["e"]["iteration"] == "0"
    assert sim.args_of("bad")["loop"]["failed"] == 1


def test_E5_K26_best_effort_runs_all_and_is_done() -> None:
    text = PARALLEL.replace("policy: {}", f"policy: {BEST_EFFORT}")
    sim = Sim(text).start()
    sim.done("a", "r0", iteration="0").fail("a", iteration="1", task="t").done(
        "a", 2, iteration="2"
    )
    args = sim.args_of("ok")
    assert args["r"] == ["r0", None, 2]
    assert args["loop"]["total"] == 3
    assert args["loop"]["done"] == 2
    assert args["loop"]["failed"] == 1
    (failure,) = args["loop"]["failures"]
    assert failure["iteration"] == "1"
    assert failure["task"] == "t"
    sim.done("ok")
    assert sim.outcome() == ("Succeeded", "SucceededWithHandledFailures")
    assert sim.state.failures[0]["handled"] is True


def test_K26_a_loop_lists_up_to_a_hundred_failures() -> None:
    text = PARALLEL.replace("[x, y, z]", str(list(range(103)))).replace(
        "policy: {}", f"policy: {BEST_EFFORT}"
    )
    sim = Sim(text).start()
    for n in range(103):
        sim.fail("a", iteration=str(n))
    assert len(sim.args_of("ok")["loop"]["failures"]) == 100
    assert sim.args_of("ok")["loop"]["failed"] == 103
    assert sim.state.unlisted == 3


def test_C7_best_effort_of_a_loop_step_says_nothing_about_its_own_failure() -> None:
    text = loop('{in: "{{ 1 }}", iterator: it}', BEST_EFFORT).replace(
        "step: bad, when", "step: ok, when"
    )
    text = text.replace("event.name == 'step.failed'", "false")
    assert Sim(text).start().outcome() == ("Failed", "StepFailed")


NESTED = loop(
    """
    in: [[1, 2], [], [3]]
    iterator: row
    spec: {mode: parallel}
    loop: {in: "{{ iter.row }}", iterator: cell, spec: {mode: parallel, max_in_flight: 1}}"""
)


def test_E4_K27_nested_distributed_loops() -> None:
    sim = Sim(NESTED).start()
    assert [c.iteration for c in sim.queue.values()] == ["0.0", "2.0"]
    assert sim.lease("a", "2.0").iters == (
        {"row": [3], "index": 2, "total": 3},
        {"cell": 3, "index": 0, "total": 1},
    )
    sim.done("a", "c", iteration="2.0").done("a", "a", iteration="0.0")
    assert [c.iteration for c in sim.queue.values()] == ["0.1"]
    sim.done("a", "b", iteration="0.1")
    assert sim.args_of("ok")["r"] == [["a", "b"], [], ["c"]]
    assert sim.args_of("ok")["loop"] == {"total": 3, "done": 3, "failed": 0, "failures": []}


def test_E4_the_inner_list_may_read_all_outer_iterations() -> None:
    text = loop(
        """
    in: [5]
    iterator: x
    spec: {mode: parallel}
    loop:
      in: [6]
      iterator: y
      spec: {mode: parallel}
      loop: {in: ["{{ iter.y }}", "{{ iter.parent.x }}", "{{ iter.parent.index }}"], iterator: z,
             spec: {mode: parallel}}"""
    )
    sim = Sim(text).start()
    assert [c.iters[-1]["z"] for c in sim.queue.values()] == [6, 5, 0]


def test_K27_only_empty_inner_lists() -> None:
    sim = Sim(NESTED.replace("[[1, 2], [], [3]]", "[[], []]")).start()
    assert sim.args_of("ok")["r"] == [[], []]
    assert sim.args_of("ok")["loop"]["total"] == 0


def test_K27_an_inner_list_that_is_none_fails_the_step() -> None:
    sim = Sim(NESTED.replace("[[1, 2], [], [3]]", "[[1], 7]")).start()
    assert sim.args_of("bad")["e"]["iteration"] == "1"
    assert not [c for c in sim.queue.values() if c.step == "a"], "what had begun is revoked"


MIXED = loop(
    """
    in: [[1, 2], [], [3]]
    iterator: row
    spec: {mode: parallel}
    loop: {in: "{{ iter.row }}", iterator: cell}"""
)


def inside(sim: Sim, lease: str, *ends: ev.Fact) -> Sim:
    return sim.report(sim.lease("a", lease), *ends)


def ended(sim: Sim, path: str, result: object = None, failed: bool = False) -> ev.Fact:
    run_id = next(iter(sim.state.runs))
    if failed:
        error = {"kind": "unknown", "message": "boom"}
        return ev.IterationFailed(step="a", run_id=run_id, iteration=path, error=error)
    return ev.IterationDone(step="a", run_id=run_id, iteration=path, result=result)


def test_E3_a_local_level_inside_a_distributed_one_runs_in_its_lease() -> None:
    sim = Sim(MIXED).start()
    assert [c.iteration for c in sim.queue.values()] == ["0", "2"], (
        "nothing to do for the empty one"
    )
    assert sim.lease("a", "0").items == [1, 2]
    inside(sim, "2", ended(sim, "2.0", "c")).done("a", iteration="2")
    inside(sim, "0", ended(sim, "0.0", "a"), ended(sim, "0.1", "b")).done("a", iteration="0")
    assert sim.args_of("ok")["r"] == [["a", "b"], [], ["c"]]
    assert sim.args_of("ok")["loop"]["total"] == 3


def test_E3_best_effort_inside_a_lease() -> None:
    sim = Sim(MIXED.replace("policy: {}", f"policy: {BEST_EFFORT}")).start()
    inside(sim, "0", ended(sim, "0.0", failed=True), ended(sim, "0.1", "b")).done(
        "a", iteration="0"
    )
    inside(sim, "2", ended(sim, "2.0", "c")).done("a", iteration="2")
    assert sim.args_of("ok")["r"] == [[None, "b"], [], ["c"]]
    assert sim.args_of("ok")["loop"]["failed"] == 1


def test_E3_fail_fast_inside_a_lease_names_the_innermost_iteration() -> None:
    sim = Sim(MIXED).start()
    inside(sim, "0", ended(sim, "0.1", failed=True)).fail("a", iteration="0", inner="0.1", task="t")
    assert sim.args_of("bad")["e"]["iteration"] == "0.1"
    assert sim.args_of("bad")["loop"]["failed"] == 1


def test_E1_K22_what_a_best_effort_loop_does_not_survive() -> None:
    sim = Sim(MIXED.replace("policy: {}", f"policy: {BEST_EFFORT}")).start()
    sim.fail("a", iteration="0", inner="0.1", kind="schema", message="`in` is text")
    assert sim.args_of("bad")["e"]["iteration"] == "0.1"
    assert list(sim.queue) == [sim.lease("bad").lease_id], "the other lease is revoked"
    sim = Sim(PARALLEL.replace("policy: {}", f"policy: {BEST_EFFORT}")).start()
    sim.fail("a", iteration="0", kind="timeout", code="STEP_DEADLINE")
    assert sim.args_of("bad")["e"]["code"] == "STEP_DEADLINE"


def test_E3_a_lease_that_is_lost_for_good_fails_what_it_left_undone() -> None:
    policy = "{failure: {mode: best_effort}, lifecycle: {on_worker_lost: fail}}"
    sim = Sim(MIXED.replace("policy: {}", f"policy: {policy}")).start()
    inside(sim, "0", ended(sim, "0.0", "a")).lost("a", "0")
    inside(sim, "2", ended(sim, "2.0", "c")).done("a", iteration="2")
    assert sim.args_of("ok")["r"] == [["a", None], [], ["c"]]
    assert sim.args_of("ok")["loop"]["done"] == 2
    assert sim.args_of("ok")["loop"]["failed"] == 1


def test_E3_what_a_lost_worker_had_counted_is_counted_again_and_the_later_end_stands() -> None:
    sim = Sim(MIXED).start()
    inside(sim, "0", ended(sim, "0.0", "old")).lost("a", "0")
    inside(sim, "0", ended(sim, "0.0", "new"), ended(sim, "0.1", "b")).done("a", iteration="0")
    inside(sim, "2", ended(sim, "2.0", "c")).done("a", iteration="2")
    assert sim.args_of("ok")["r"] == [["new", "b"], [], ["c"]]
    assert sim.args_of("ok")["loop"] == {"total": 3, "done": 3, "failed": 0, "failures": []}


def test_K27_a_nested_local_loop() -> None:
    text = loop('{in: [[1], []], iterator: r, loop: {in: "{{ iter.r }}", iterator: c}}')
    sim = Sim(text).start()
    command = sim.lease("a")
    sim.report(
        command,
        ev.LoopOpened(step="a", run_id=command.run_id, iteration="0", total=1),
        ended(sim, "0.0", "x"),
        ended(sim, "0", ["x"]),
        ev.LoopOpened(step="a", run_id=command.run_id, iteration="1", total=0),
    )
    sim.done("a")
    assert sim.args_of("ok")["r"] == [["x"], []]
    assert sim.args_of("ok")["loop"]["total"] == 1


def test_K28_a_sequential_distributed_loop_runs_one_after_the_other() -> None:
    text = "{in: [1, 2], iterator: it, spec: {policy: {exec: distributed}}}"
    sim = Sim(loop(text)).start()
    assert [c.iteration for c in sim.queue.values()] == ["0"]
    sim.write("a", iteration="0", seen=1)
    sim.done("a", iteration="0")
    assert sim.state.ctx == {"seen": 1}
    sim.write("a", iteration="1", seen=2)
    assert sim.state.ctx == {"seen": 2}, "write-once is for parallel loops"


def test_K18_K41_max_iterations_fails_the_step() -> None:
    head = "executor: {spec: {policy: {limits: {max_iterations: 2}}}}"
    text = PARALLEL.replace("\nworkflow", f"{head}\nworkflow")
    sim = Sim(text).start()
    error = sim.args_of("bad")["e"]
    assert error["kind"] == "limit"
    assert "max_iterations" in error["message"]
    nested = Sim(NESTED.replace("\nworkflow", f"{head}\nworkflow")).start()
    assert nested.args_of("bad")["e"]["kind"] == "limit"


# Writes


def test_E7_write_once_in_a_parallel_loop() -> None:
    sim = Sim(PARALLEL).start().patch("p", k="before")
    sim.write("a", iteration="0", k=1)
    sim.write("a", iteration="1", k=1)
    sim.write("a", Verdict.CONFLICT, iteration="1", k=2)
    assert "ctx.k was written by other iterations" in (sim.decision.message or "")
    assert sim.state.ctx["k"] == 1
    assert len(sim.facts("ctx.patched")) == 3


def test_E7_true_is_not_1() -> None:
    sim = Sim(PARALLEL).start().write("a", iteration="0", k=1)
    sim.write("a", Verdict.CONFLICT, iteration="1", k=True)


def test_K29_one_iteration_may_write_its_key_again() -> None:
    sim = Sim(PARALLEL).start().write("a", iteration="0", k=1).write("a", iteration="0", k=2)
    assert sim.state.ctx["k"] == 2
    sim.write("a", Verdict.CONFLICT, iteration="1", k=1)


def test_K29_inner_sequential_iterations_of_one_parallel_one_are_one_writer() -> None:
    sim = Sim(MIXED).start()
    sim.write("a", iteration="0", inner="0.0", k=1).write("a", iteration="0", inner="0.1", k=2)
    sim.write("a", Verdict.CONFLICT, iteration="2", inner="2.0", k=3)


def test_K29_write_once_is_per_loop() -> None:
    text = workflow("""
- {step: a, loop: {in: [1, 2], iterator: it, spec: {mode: parallel}}, tool: {kind: noop},
   next: {arcs: [{step: a}]}}
""")
    sim = Sim(text).start().write("a", iteration="0", k=1)
    sim.done("a", iteration="0").done("a", iteration="1")
    sim.write("a", iteration="1", k=2)
    assert sim.state.ctx["k"] == 2


def test_E7_facts_before_a_refused_write_are_taken() -> None:
    sim = Sim(PARALLEL).start().write("a", iteration="0", k=1)
    command = sim.lease("a", "1")
    started = ev.StepStarted(step="a", run_id=command.run_id, iteration="1", worker="w")
    bad = ev.CtxPatched(
        step="a", run_id=command.run_id, iteration="1", set={"k": 2}, by="a/t", reason=None
    )
    sim.report(command, started, bad, verdict=Verdict.CONFLICT)
    assert sim.decision.expected == 1
    assert sim.held(command.lease_id) == 1
    sim.fail("a", iteration="1", kind="ctx_conflict")


REDUCED = [
    ("append", None, [2, 0, 1], [0, 1, 2]),
    ("append", ["s"], [2, 0, 1], ["s", 0, 1, 2]),
    ("sum", None, [0.1, 0.2, 0.3], 0.1 + 0.2 + 0.3),
    ("sum", 10, [1, 2, 3], 16),
    ("min", 1, [3, 0, 2], 0),
    ("max", 9, [3, 0, 2], 9),
    ("count", None, ["x", "y", "z"], 3),
    ("count", 2, ["x", "y", "z"], 5),
    ("last", "s", ["x", "y", "z"], "z"),
    (
        "merge",
        {"a": {"s": 1}},
        [{"a": {"x": 1}}, {"a": {"x": 2, "y": 1}}, {"b": None}],
        {"a": {"s": 1, "x": 2, "y": 1}, "b": None},
    ),
]


@pytest.mark.parametrize(("reducer", "start", "writes", "expected"), REDUCED)
def test_E7_K29_reducers_do_not_depend_on_the_order_of_ends(
    reducer: str, start: object, writes: list[object], expected: object
) -> None:
    spec = f"spec: {{mode: parallel, policy: {{reducers: {{k: {reducer}}}}}}}"
    text = loop(f"{{in: [1, 2, 3], iterator: it, {spec}}}")
    found = []
    in_order = sorted(writes) if reducer == "append" else writes
    for order in ((0, 1, 2), (2, 0, 1)):
        sim = Sim(text).start()
        if start is not None:
            sim.patch("p", k=start)
        for n in order:
            sim.write("a", iteration=str(n), k="a write before", other=1)
            assert sim.state.ctx.get("k") == start, "iterations read the value from before"
            sim.done("a", iteration=str(n), writes={"k": in_order[n]})
        patched = sim.facts("ctx.patched")[-1]
        assert patched.payload() == {"set": {"k": expected}, "by": "a", "reason": "reducers"}
        assert sim.story().index("loop.done a") > sim.story().index("ctx.patched a")
        found.append(sim.state.ctx["k"])
    assert found == [expected, expected]


def test_K29_writes_of_failed_iterations_count_and_a_failed_step_reduces_nothing() -> None:
    spec = "spec: {mode: parallel, policy: {reducers: {k: append}}}"
    text = loop(f"{{in: [1, 2], iterator: it, {spec}}}", BEST_EFFORT)
    sim = Sim(text).start()
    sim.fail("a", iteration="0", writes={"k": "f"}).done("a", iteration="1", writes={"k": "d"})
    assert sim.state.ctx == {"k": ["f", "d"]}
    sim = Sim(text.replace(BEST_EFFORT, "{}")).start()
    sim.done("a", iteration="1", writes={"k": "d"}).fail("a", iteration="0", writes={"k": "f"})
    assert sim.running == ["bad"]
    assert sim.state.ctx == {}


def test_K29_what_cannot_be_reduced_fails_the_step() -> None:
    spec = "spec: {mode: parallel, policy: {reducers: {k: sum}}}"
    sim = Sim(loop(f"{{in: [1], iterator: it, {spec}}}")).start().patch("p", k="text")
    sim.done("a", iteration="0", writes={"k": 1})
    assert "ctx.k has reducer sum and holds text" in sim.args_of("bad")["e"]["message"]


def test_K25_a_large_reduced_value_is_stored_and_goes_on_from_there() -> None:
    text = workflow("""
- step: a
  loop: {in: [1], iterator: it, spec: {mode: parallel, policy: {reducers: {k: append}}}}
  tool: {kind: noop}
  next: {arcs: [{step: a}]}
""")
    sim = Sim(text).start()
    sim.done("a", iteration="0", writes={"k": "x" * 70_000})
    assert sim.state.ctx["k"]["kind"] == "result_ref"
    sim.done("a", iteration="0", writes={"k": "y"})
    stored = orjson.loads(sim.stored[sim.state.ctx["k"]["key"]])
    assert stored == ["x" * 70_000, "y"]


# Time


def test_K22_the_time_limits_of_a_step_are_for_all_of_its_loop() -> None:
    policy = "{lifecycle: {timeout_s: 10}}"
    sim = Sim(PARALLEL.replace("policy: {}", f"policy: {policy}")).start().begin("a", "0")
    leases = list(sim.queue)
    assert sim.lease("a", "0").deadline_at == "2026-01-01T00:00:10.000000Z"
    sim.tick(10)
    assert sim.args_of("bad")["e"]["code"] == "STEP_TIMEOUT"
    assert [Revoke(lease) for lease in leases] == sim.effects[:2]
    local = Sim(LOCAL.replace("policy: {}", f"policy: {policy}")).start()
    assert local.lease("a").timeout_s == 10, "the worker enforces it where it has all of the step"


@pytest.mark.parametrize(
    ("lifecycle", "code"),
    [
        ("timeout_s: 10", "STEP_TIMEOUT"),
        ("timeout_s: 10, deadline_s: 60", "STEP_TIMEOUT"),
        ("timeout_s: 60, deadline_s: 10", "STEP_DEADLINE"),
    ],
)
def test_K22_a_worker_that_ends_an_iteration_in_time_is_told_apart(
    lifecycle: str, code: str
) -> None:
    text = PARALLEL.replace("policy: {}", f"policy: {{lifecycle: {{{lifecycle}}}}}")
    sim = Sim(text).start().begin("a", "0").begin("a", "1")
    error = TaskError(kind=ErrorKind.TIMEOUT, code="STEP_DEADLINE", message="the time is up")
    for path in ("0", "1"):
        sim.report(sim.lease("a", path), end=RunEnd(status=EndStatus.ERROR, error=error))
    assert sim.args_of("bad")["e"]["code"] == code


def test_one_decision_schedules_a_bounded_number_of_iterations() -> None:
    text = PARALLEL.replace("max_in_flight: 2", "max_in_flight: 800").replace(
        "[x, y, z]", '"{{ workload.rows }}"'
    )
    sim = Sim(text, {"rows": list(range(900))}).start()
    assert len(sim.queue) == 499, "the step itself is one start"
    sim.tick()
    assert len(sim.queue) == 800
