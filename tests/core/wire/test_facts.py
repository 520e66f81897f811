"""Facts of workers: every kind both ways, and nothing that is not a worker's to say (section J)."""

from __future__ import annotations

import json

import pytest

from noetl_core import wire
from noetl_core.engine.events import FACTS, Source
from noetl_core.values import Value
from noetl_core.wire.facts import ALLOWED
from tests.support.wire_examples import EXAMPLES, RUN, Message, facts


def report(*sent: Value) -> wire.Report:
    return wire.Report.of(
        {"run_id": RUN, "step": "load", "epoch": 1, "first": 0, "facts": list(sent)}
    )


def test_J_the_examples_hold_every_fact_that_a_worker_reports() -> None:
    keychain: Message = EXAMPLES["report_keychain"]
    assert isinstance(keychain, wire.Report)
    assert {fact.name for fact in (*facts(), *keychain.facts)} == ALLOWED


@pytest.mark.parametrize("at", range(len(facts())))
def test_J_a_fact_comes_through_as_it_was(at: int) -> None:
    fact = facts()[at]
    (back,) = report(json.loads(json.dumps(wire.fact_json(fact)))).facts
    assert back == fact
    assert back.payload() == fact.payload()


@pytest.mark.parametrize("name", [*sorted(set(FACTS) - ALLOWED), "no.such.event"])
def test_what_only_the_control_plane_decides_is_refused(name: str) -> None:
    with pytest.raises(wire.Malformed, match=r"report\.facts\[0\]\.name"):
        report({"name": name, "payload": {}})


def test_the_end_of_a_step_is_no_fact_of_a_report() -> None:
    assert {"step.done", "step.failed"} & ALLOWED == set()
    assert {n for n, k in FACTS.items() if k.source is Source.WORKER} - ALLOWED == {
        "step.done",
        "step.failed",
    }


def test_no_worker_speaks_for_another_run() -> None:
    sent: Value = {
        "name": "task.started",
        "run_id": "other",
        "step": "x",
        "payload": {"kind": "noop"},
    }
    (fact,) = report(sent).facts
    assert (fact.run_id, fact.step) == (RUN, "load")


@pytest.mark.parametrize(
    ("fact", "place"),
    [
        ({"name": "task.started"}, "payload.kind: missing"),
        ({"name": "task.started", "payload": {"kind": 5}}, "payload.kind: expected text"),
        ({"name": "task.started", "payload": []}, "payload: expected an object"),
        ({"name": "task.started", "attempt": "1", "payload": {"kind": "x"}}, "attempt"),
        ({"name": "task.started", "attempt": -1, "payload": {"kind": "x"}}, "attempt"),
        ({"name": "task.started", "task": 7, "payload": {"kind": "x"}}, "task: expected text"),
        ({"name": "task.started", "iteration": 7, "payload": {"kind": "x"}}, "iteration"),
        ({"name": "iter.patched", "payload": {"set": [1]}}, "payload.set"),
        ({"name": "loop.opened", "payload": {"total": True}}, "payload.total"),
        ({"name": "keychain.resolved", "payload": {"entries": [1]}}, "payload.entries"),
        (
            {
                "name": "policy.task.evaluated",
                "payload": {"rule": 1.5, "action": "x", "to": None, "delay": None},
            },
            "payload.rule",
        ),
        (
            {
                "name": "policy.task.evaluated",
                "payload": {"rule": 1, "action": "x", "to": None, "delay": "1"},
            },
            "payload.delay",
        ),
        (
            {
                "name": "ctx.patched",
                "payload": {"set": {}, "by": "x", "reason": None, "patch_id": "p"},
            },
            "payload.patch_id",
        ),
        (
            {
                "name": "ctx.patched",
                "payload": {"set": {}, "by": "x", "reason": None, "deferred": "n"},
            },
            "payload.deferred",
        ),
    ],
)
def test_a_fact_of_the_wrong_shape_is_refused_with_its_place(fact: Value, place: str) -> None:
    good: Value = {"name": "task.started", "payload": {"kind": "noop"}}
    with pytest.raises(wire.Malformed) as refused:
        report(good, fact)
    assert "report.facts[1]" in str(refused.value)
    assert place in str(refused.value)


def test_whole_numbers_are_numbers() -> None:
    payload: Value = {"rule": "else", "action": "retry", "to": None, "delay": 2}
    (fact,) = report({"name": "policy.task.evaluated", "payload": payload}).facts
    assert fact.payload()["delay"] == 2


def test_fields_of_a_newer_worker_are_passed_over() -> None:
    (fact,) = report({"name": "task.started", "payload": {"kind": "noop", "shiny": 1}}).facts
    assert fact.payload() == {"kind": "noop"}


def test_a_fact_without_a_payload_keeps_its_place() -> None:
    (fact,) = report({"name": "loop.iteration.started", "iteration": "4"}).facts
    assert fact.iteration == "4"
