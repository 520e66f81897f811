"""Suspend, resume, cancel, patches of `ctx`, children, the keychain, reruns."""

from __future__ import annotations

import pytest

from noetl_core.engine import events as ev
from noetl_core.engine import ids
from noetl_core.engine.rerun import adopted
from noetl_core.engine.triggers import (
    Cancel,
    CancelChild,
    CancelMode,
    CreateChild,
    EndStatus,
    Patch,
    Revoke,
    RunEnd,
    Start,
    StartChild,
    Stop,
    Suspend,
    Tick,
    Verdict,
)
from noetl_core.outcomes import ErrorKind, TaskError
from tests.support.sim import EXECUTION, Sim, workflow

CHAIN = workflow(
    """
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b, args: {n: "{{ event.result }}"}}]}}
- {step: b, tool: {kind: noop}}
- {step: clean, tool: {kind: noop}}
""",
    "executor: {spec: {final_step: clean}}",
)
LOOP = workflow("""
- {step: a, loop: {in: [1, 2, 3], iterator: x, spec: {mode: parallel, max_in_flight: 1}},
   tool: {kind: noop}}
""")


def test_suspend_judges_no_token_and_records_what_ends() -> None:
    sim = Sim(CHAIN).start().suspend()
    assert sim.state.phase.value == "Suspended"
    sim.done("a", 5)
    assert sim.story()[-2:] == ["step.done a", "next.evaluated a"]
    assert sim.running == []
    sim.resume()
    assert sim.running == ["b"]
    assert sim.args_of("b") == {"n": 5}
    assert sim.state.phase.value == "Running"


def test_suspend_schedules_no_iteration() -> None:
    sim = Sim(LOOP).start().suspend().done("a", iteration="0")
    assert sim.queue == {}
    sim.resume()
    assert [c.iteration for c in sim.queue.values()] == ["1"]


def test_suspended_and_quiet_it_does_not_end() -> None:
    sim = Sim(CHAIN).start().done("a").suspend().done("b")
    assert sim.state.phase.value == "Suspended"
    assert "workflow.finished" not in sim.names
    sim.resume()
    assert sim.running == ["clean"]


def test_suspend_and_resume_are_asked_for_twice() -> None:
    sim = Sim(CHAIN).start().suspend()
    sim.send(Suspend(), Verdict.DUPLICATE)
    sim.resume().suspend().resume()
    assert sim.names.count("execution.suspended") == 2


def test_a_gate_whose_ctx_changed_while_suspended_opens_on_resume() -> None:
    sim = Sim(
        workflow("""
- step: a
  spec: {policy: {admit: {on_deny: wait, deadline_s: 5,
         rules: [{when: "{{ ctx.open }}", then: {allow: true}}]}}}
  tool: {kind: noop}
""")
    ).start()
    sim.suspend().patch("p", open=True).tick(60)
    assert sim.running == [], "neither judged nor timed out"
    assert sim.state.phase.value == "Suspended"
    sim.resume()
    assert sim.running == ["a"]


def test_cancel_gracefully_stops_what_runs_and_revokes_what_has_not_begun() -> None:
    sim = Sim(CHAIN).start().begin("a").cancel()
    assert sim.payload("execution.cancelled") == {
        "mode": "graceful", "by": "ann", "reason": "enough",
    }  # fmt: skip
    assert Stop(sim.lease("a").lease_id) in sim.effects
    sim.stop("a")
    assert sim.running == ["clean"]
    sim.done("clean")
    assert sim.outcome() == ("Cancelled", "Cancelled")
    assert sim.state.message == "cancelled by ann: enough"
    assert sim.state.steps.cancelled == 1


def test_cancel_now_waits_for_nobody() -> None:
    sim = Sim(CHAIN).start().begin("a")
    lease = sim.lease("a").lease_id
    sim.cancel(CancelMode.NOW)
    assert sim.effects == [Revoke(lease)]
    assert sim.outcome() == ("Cancelled", "Cancelled")
    assert sim.story()[-2:] == ["step.cancelled a", "workflow.finished"]


def test_a_graceful_cancel_may_be_followed_by_a_cancel_now() -> None:
    sim = Sim(CHAIN).start().begin("a").cancel()
    sim.send(Cancel(mode=CancelMode.GRACEFUL), Verdict.DUPLICATE)
    sim.cancel(CancelMode.NOW)
    assert sim.outcome() == ("Cancelled", "Cancelled")


def test_cancel_works_while_suspended() -> None:
    sim = Sim(CHAIN).start().suspend().cancel()
    assert sim.running == ["clean"]
    sim.done("clean")
    assert sim.outcome() == ("Cancelled", "Cancelled")


def test_a_graceful_cancel_lets_final_step_go_on_and_now_does_not() -> None:
    sim = Sim(CHAIN).start().done("a").done("b").begin("clean")
    sim.send(Cancel(mode=CancelMode.GRACEFUL), Verdict.DUPLICATE)
    assert sim.running == ["clean"]
    sim.cancel(CancelMode.NOW)
    assert sim.outcome() == ("Cancelled", "Cancelled")


def test_cancel_now_does_not_change_why_it_failed() -> None:
    sim = Sim(CHAIN).start().fail("a").begin("clean").cancel(CancelMode.NOW)
    assert sim.outcome() == ("Failed", "StepFailed")


def test_cancel_of_a_distributed_loop() -> None:
    sim = Sim(LOOP).start().begin("a", "0").cancel()
    sim.done("a", "late", iteration="0")
    assert sim.outcome() == ("Cancelled", "Cancelled")
    assert sim.state.steps.cancelled == 1
    assert sim.facts("loop.iteration.done")[0].iteration == "0"


def test_nothing_happens_after_the_end() -> None:
    sim = Sim(CHAIN).start().cancel(CancelMode.NOW)
    end = sim.state.seq
    sim.send(Cancel(mode=CancelMode.NOW), Verdict.DUPLICATE)
    sim.send(Suspend(), Verdict.DUPLICATE)
    sim.send(Patch(id="x", set={"a": 1}, by="me"), Verdict.REFUSED)
    sim.send(Tick(), Verdict.DUPLICATE)
    assert sim.state.seq == end


def test_nothing_happens_before_the_start() -> None:
    Sim(CHAIN).send(Tick(), Verdict.REFUSED)
    Sim(CHAIN).start().send(Start(), Verdict.DUPLICATE)


def test_a_patch_is_applied_once() -> None:
    sim = Sim(CHAIN).start().patch("p1", a=1)
    assert sim.payload("ctx.patched") == {
        "set": {"a": 1}, "by": "ann", "reason": "approved", "patch_id": "p1",
    }  # fmt: skip
    sim.send(Patch(id="p1", set={"a": 2}, by="ann"), Verdict.DUPLICATE)
    assert sim.state.ctx == {"a": 1}


def test_K25_a_large_value_of_a_patch_is_stored_and_ctx_is_bounded() -> None:
    sim = Sim(CHAIN).start().patch("p1", a="x" * 70_000)
    assert sim.state.ctx["a"]["kind"] == "result_ref"
    too_much = {f"k{n}": "x" * 60_000 for n in range(20)}
    sim.send(Patch(id="p2", set=too_much, by="ann"), Verdict.TOO_LARGE)
    for n in range(17):
        sim.patch(f"q{n}", **{f"k{n}": "x" * 60_000})
    sim.send(Patch(id="q17", set={"k17": "x" * 60_000}, by="ann"), Verdict.TOO_LARGE)
    sim.write("a", Verdict.TOO_LARGE, k17="x" * 60_000)
    sim.write("a", k16="small")
    sim.write("a", k17="x" * 50_000)


# Children


def test_I4_a_child_is_made_once_however_often_it_is_asked_for() -> None:
    sim = Sim(CHAIN).start().begin("a")
    run_id = sim.lease("a").run_id
    child = sim.child("a")
    assert child == ids.child_execution(EXECUTION, run_id, None, "call", 0)
    assert sim.effects == [
        CreateChild(
            child=child,
            playbook="other",
            workload={"n": 1},
            parent={
                "execution_id": EXECUTION,
                "run_id": run_id,
                "iteration": None,
                "task": "call",
                "depth": 1,
                "max_depth": 10,
            },
            depth=1,
        )
    ]
    assert sim.payload("child.requested") == {"child": child, "playbook": "other"}
    sim.lost("a").begin("a")
    assert sim.child("a") == child
    assert len(sim.facts("child.requested")) == 1
    sim.child_ended(child).lost("a")
    assert sim.child("a") == child, "a finished one is found too while its starter runs"
    assert len(sim.facts("child.requested")) == 1
    sim.done("a")
    assert not sim.state.children


def test_I4_cancelling_the_parent_cancels_its_children() -> None:
    for mode in CancelMode:
        sim = Sim(CHAIN).start().begin("a")
        child = sim.child("a", wait=mode is CancelMode.NOW)
        sim.cancel(mode)
        assert [e for e in sim.effects if isinstance(e, CancelChild)] == [CancelChild(child, mode)]


def test_I4_a_child_that_is_waited_for_does_not_outlive_its_run() -> None:
    sim = Sim(CHAIN).start().begin("a")
    child = sim.child("a")
    sim.fail("a")
    assert CancelChild(child, CancelMode.GRACEFUL) in sim.effects
    sim = Sim(CHAIN).start().begin("a")
    sim.child("a", wait=False)
    sim.done("a")
    assert not [e for e in sim.effects if isinstance(e, CancelChild)]


def test_I4_the_children_of_an_iteration_go_with_it() -> None:
    sim = Sim(LOOP).start().begin("a", "0")
    child = sim.child("a", iteration="0")
    sim.child_ended(child).done("a", iteration="0")
    assert not sim.state.children


def test_K18_K41_children_nest_as_deep_as_the_outermost_allows() -> None:
    sim = Sim(CHAIN).start(depth=3, parent={"max_depth": 3}).begin("a")
    command = sim.lease("a")
    wish = StartChild(
        lease_id=command.lease_id,
        epoch=1,
        task="t",
        task_run=0,
        playbook="p",
        workload={},
        wait=True,
    )
    sim.send(wish, Verdict.REFUSED)
    assert "max_depth" in (sim.decision.message or "")


# Keychain

SECRETS = workflow(
    """
- {step: a, tool: {kind: noop}}
- {step: clean, tool: {kind: noop}}
""",
    "executor: {spec: {final_step: clean}}\nkeychain: [{name: db, kind: secret}]",
)


def test_G3_the_keychain_is_resolved_before_the_first_step() -> None:
    sim = Sim(SECRETS).start()
    assert sim.running == []
    assert sim.state.phase.value == "Pending"
    command = sim.lease(None)
    assert command.lease_id == ids.keychain_run(EXECUTION)
    fact = ev.KeychainResolved(run_id=command.run_id, entries=["db"])
    sim.report(command, fact, end=RunEnd(status=EndStatus.OK))
    assert sim.story()[2:] == ["keychain.resolved", "workflow.started a", "step.scheduled a"]
    assert sim.running == ["a"]
    assert list(sim.queue) == [sim.lease("a").lease_id]


def test_G3_K14_a_keychain_that_fails_ends_it_at_once_without_final_step() -> None:
    for suspended in (False, True):
        sim = Sim(SECRETS).start()
        if suspended:
            sim.suspend()
        error = TaskError(kind=ErrorKind.NOT_FOUND, message="entry db: Secret db has no key token")
        sim.report(sim.lease(None), end=RunEnd(status=EndStatus.ERROR, error=error))
        assert sim.outcome() == ("Failed", "KeychainError")
        assert sim.state.message == error.message
        assert "step.scheduled" not in sim.names


def test_the_keychain_check_survives_three_lost_workers() -> None:
    sim = Sim(SECRETS).start()
    for _ in range(3):
        sim.lost(None)
    sim.lost(None, back=True)
    assert sim.state.phase.value == "Pending"
    sim.lost(None)
    assert sim.outcome() == ("Failed", "KeychainError")
    assert "4 workers were lost" in (sim.state.message or "")


@pytest.mark.parametrize("mode", list(CancelMode))
def test_cancel_before_the_first_step(mode: CancelMode) -> None:
    sim = Sim(SECRETS).start()
    sim.cancel(mode)
    assert sim.outcome() == ("Cancelled", "Cancelled")
    assert Revoke(ids.keychain_run(EXECUTION)) in sim.effects
    assert "step.scheduled" not in sim.names


# Reruns


def test_K47_a_rerun_takes_over_ctx_args_and_results_of_the_moment() -> None:
    old = Sim(CHAIN).start().write("a", k=1).done("a", 5).write("b", k=2).fail("b").done("clean")
    taken = adopted(old.log, "b")
    assert taken is not None
    assert taken.args == {"n": 5}
    assert taken.ctx == {"k": 1}, "as it stood when the step first got its token"
    assert [(s["step"], s["result"]) for s in taken.steps] == [("a", 5)]
    sim = Sim(CHAIN).start(
        adopted=taken, rerun_of={"execution_id": taken.execution_id, "from_step": "b"}
    )
    assert sim.running == ["b"]
    assert sim.args_of("b") == {"n": 5}
    assert sim.state.ctx == {"k": 1}
    assert sim.payload("steps.adopted")["steps"] == list(taken.steps)
    assert sim.facts("step.scheduled", "a") == [], "what was done is not done again"
    sim.done("b", 7).done("clean")
    assert sim.outcome() == ("Succeeded", "Succeeded")
    assert sim.state.steps.total == 2


def test_K47_the_admission_of_the_rerun_sees_the_old_event() -> None:
    text = CHAIN.replace(
        "{step: b, tool",
        """{step: b, spec: {policy: {admit: {rules: [
           {when: "{{ event.step == 'a' and event.result == 5 }}", then: {allow: true}}]}}},
           tool""",
    )
    old = Sim(text).start().done("a", 5)
    assert Sim(text).start(adopted=adopted(old.log, "b")).running == ["b"]


def test_K47_from_the_first_step_from_a_join_and_from_nowhere() -> None:
    text = workflow("""
- {step: a, next: {spec: {mode: inclusive}, arcs: [{step: b}, {step: j, args: {x: 1}}]}}
- {step: b, tool: {kind: noop}, next: {arcs: [{step: j, args: {y: 2}}]}}
- {step: j, spec: {join: all}, tool: {kind: noop}}
- {step: never, tool: {kind: noop}}
""")
    old = Sim(text).start().write("b", k=1).done("b")
    first = adopted(old.log, "a")
    assert first is not None
    assert first.steps == ()
    join = adopted(old.log, "j")
    assert join is not None
    assert join.args == {"x": 1, "y": 2}
    assert join.ctx == {"k": 1}
    assert Sim(text).start(adopted=join).running == ["j"]
    assert adopted(old.log, "never") is None


def test_K47_a_rerun_with_a_keychain_waits_for_it() -> None:
    text = CHAIN.replace("\nworkflow", "\nkeychain: [{name: db, kind: secret}]\nworkflow")
    old = Sim(CHAIN).start().done("a", 5)
    sim = Sim(text).start(adopted=adopted(old.log, "b"))
    assert sim.running == []
    sim.report(sim.lease(None), ev.KeychainResolved(entries=["db"]))
    assert sim.running == ["b"]
    assert sim.args_of("b") == {"n": 5}


def test_K47_a_step_that_is_gone() -> None:
    old = Sim(CHAIN).start().done("a", 5)
    sim = Sim(LOOP).start(adopted=adopted(old.log, "b"))
    assert sim.outcome() == ("Failed", "InvalidPlaybook")
    assert sim.state.message == "there is no step b to go on from"
