"""Section J and K40: names, envelopes, order and identity of events; states as JSON."""

from __future__ import annotations

from uuid import UUID, uuid5

import orjson
import pytest

from noetl_core.engine import Program, fold, ids
from noetl_core.engine import events as ev
from noetl_core.engine.codec import decode_state, encode_state
from noetl_core.engine.state import State
from noetl_core.engine.transition import transition
from noetl_core.engine.triggers import Start
from noetl_core.results import reference
from tests.support.sim import BEGIN, EXECUTION, Sim, workflow

CONTROL = """playbook.execution.requested playbook.request.evaluated workflow.started
    policy.admit.evaluated step.scheduled step.skipped loop.started loop.iteration.scheduled
    loop.done next.evaluated ctx.patched execution.suspended execution.resumed
    execution.cancelled workflow.finished step.redelivered step.cancelled join.dropped"""
WORKER = """keychain.resolved step.started task.started task.attempt.failed task.done task.failed
    policy.task.evaluated iter.patched loop.iteration.started loop.iteration.done
    loop.iteration.failed result.stored step.done step.failed"""

CHAIN = workflow("""
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop}}
""")


@pytest.mark.parametrize("source", ["control", "worker"])
def test_J_every_event_has_its_name_and_source(source: str) -> None:
    for name in (CONTROL if source == "control" else WORKER).split():
        assert ev.FACTS[name].source == source, name


def test_J_the_envelope() -> None:
    sim = Sim(CHAIN).start().begin("a").done("a", {"n": 1})
    event = next(e for e in sim.log if e.fact.name == "step.done")
    run_id = event.fact.run_id
    assert event.as_json() == {
        "event_id": ids.event_id(EXECUTION, f"{run_id}/end"),
        "execution_id": EXECUTION,
        "seq": event.seq,
        "name": "step.done",
        "timestamp": BEGIN,
        "source": "worker",
        "entity_type": "step",
        "entity_id": run_id,
        "step": "a",
        "run_id": run_id,
        "task": None,
        "attempt": None,
        "iteration": None,
        "status": "ok",
        "payload": {"result": {"n": 1}},
    }


def test_K40_seq_counts_from_1_without_gaps() -> None:
    sim = Sim(CHAIN).start().begin("a").done("a").done("b")
    assert [e.seq for e in sim.log] == list(range(1, len(sim.log) + 1))


def test_J_the_request_says_what_runs() -> None:
    sim = Sim(CHAIN, {"x": 1}).start()
    payload = sim.payload("playbook.execution.requested")
    assert payload == {
        "playbook": "test",
        "digest": sim.program.digest,
        "engine_version": "1",
        "execution": {"id": EXECUTION, "name": "run-1", "namespace": "default"},
        "workload": {"x": 1},
    }


def test_J_a_large_workload_is_referred_to() -> None:
    sim = Sim(CHAIN, {"x": "y" * 70_000}).start()
    ref = sim.payload("playbook.execution.requested")["workload"]
    assert ref == reference(sim.stored[ref["key"]], {"x": "y" * 70_000})


def test_the_workload_of_an_execution_lies_over_that_of_the_playbook() -> None:
    text = CHAIN.replace("\nworkflow", "\nworkload: {a: {x: 1, y: 2}, b: [1], c: 3}\nworkflow")
    sim = Sim(text, {"a": {"y": 9}, "b": [], "c": None})
    assert sim.program.workload == {"a": {"x": 1, "y": 9}, "b": [], "c": None}


def test_an_execution_without_a_playbook_says_why() -> None:
    program = Program.of(
        None, execution_id=EXECUTION, name="n", namespace="ns", playbook_name="broken"
    )
    start = Start(problems=({"message": "not YAML"},))
    decision, commit = transition(program, State(), start, BEGIN, Sim(CHAIN))
    assert decision.state.reason == "InvalidPlaybook"
    assert decision.state.message == "not YAML"
    assert commit.due_at is None


def test_ids_are_version_5_uuids_of_their_cause() -> None:
    run = "6f9619ff-8b86-5011-b42d-00cf4fc964ff"
    assert ids.arc_token(run, 2) == str(uuid5(UUID(run), "arc/2"))
    assert ids.iteration_lease(run, "2.5") == str(uuid5(UUID(run), "iteration/2.5"))
    names = [str(n) for n in range(300)]
    assert [ids.event_id(run, n) for n in names] == [
        str(uuid5(UUID(run), f"event/{n}")) for n in names
    ]


def test_the_same_triggers_give_the_same_log() -> None:
    def play() -> list[dict[str, object]]:
        sim = Sim(CHAIN).start().begin("a").done("a").fail("b")
        return [event.as_json() for event in sim.log]

    assert play() == play()


def test_a_log_may_be_folded_in_pieces() -> None:
    sim = Sim(CHAIN).start().begin("a").done("a").done("b")
    for cut in range(len(sim.log)):
        half = decode_state(encode_state(fold(sim.log[:cut])))
        assert fold(sim.log[cut:], half) == sim.state


def test_a_state_of_a_newer_version_is_read_and_missing_fields_have_defaults() -> None:
    sim = Sim(CHAIN).start()
    data = orjson.loads(orjson.dumps(sim.state))
    data["later"] = 1
    next(iter(data["runs"].values()))["later"] = {"x": 1}
    del data["unlisted"]
    assert decode_state(data) == sim.state


def test_an_event_of_a_newer_version_is_read_and_an_unknown_one_is_named() -> None:
    fact = ev.fact_of("step.skipped", {"step": "a", "run_id": "r"}, {"reason": "x", "later": 1})
    assert fact == ev.StepSkipped(step="a", run_id="r", reason="x")
    with pytest.raises(ev.UnknownFact, match=r"step\.vanished"):
        ev.fact_of("step.vanished", {}, {})
    with pytest.raises(ev.UnknownFact, match=r"step\.skipped"):
        ev.fact_of("step.skipped", {}, {})
