"""The status of an Execution: what `kubectl` shows of a state."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from noetl_core.engine.state import (
    Boundary,
    Counts,
    Ending,
    Lease,
    LoopState,
    Phase,
    Reason,
    Run,
    State,
    Token,
)
from noetl_core.execution import ConditionStatus
from noetl_core.results import reference
from noetl_operator.kube.port import Object
from noetl_operator.kube.project import (
    MOST_BYTES,
    About,
    Verdict,
    execution_status,
    idle_status,
    problems_text,
    with_fault,
)

T0 = "2026-11-18T10:00:00.000000Z"
T1 = "2026-11-18T10:01:12.400000Z"
ABOUT = About(
    generation=3,
    created_at="2026-11-18T09:59:59Z",
    execution_id="e",
    playbook="hello",
    playbook_generation=7,
    digest="sha256:abc",
)


def state(**fields: object) -> State:
    given: dict[str, object] = {"execution_id": "e", "seq": 5, "phase": Phase.RUNNING}
    return State(**{**given, "started_at": T0, **fields})  # type: ignore[arg-type]


def run(step: str, **fields: object) -> Run:
    given: dict[str, object] = {"args": {}, "scheduled_at": T0, "leases": {"l": Lease()}}
    return Run(step=step, **{**given, **fields})  # type: ignore[arg-type]


def token(step: str) -> Token:
    return Token("t", step, {}, Boundary("workflow.started"), T0)


def conditions(status: Object) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


@pytest.mark.parametrize(
    ("phase", "reason", "wanted"),
    [
        (Phase.PENDING, None, ("Unknown", "Pending")),
        (Phase.RUNNING, None, ("Unknown", "Running")),
        (Phase.WAITING, None, ("Unknown", "Waiting")),
        (Phase.SUSPENDED, None, ("Unknown", "Suspended")),
        (Phase.SUCCEEDED, "Succeeded", ("True", "Succeeded")),
        (Phase.SUCCEEDED, "SucceededWithHandledFailures", ("True", "SucceededWithHandledFailures")),
        (Phase.FAILED, "StepFailed", ("False", "StepFailed")),
        (Phase.FAILED, "KeychainError", ("False", "KeychainError")),
        (Phase.CANCELLED, "Cancelled", ("False", "Cancelled")),
        (Phase.CANCELLED, "DeadlineExceeded", ("False", "DeadlineExceeded")),
    ],
)
def test_succeeded_has_an_answer_only_at_the_end(
    phase: Phase, reason: str | None, wanted: tuple[str, str]
) -> None:
    ended = T1 if phase.is_final else None
    status = execution_status(ABOUT, state(phase=phase, reason=reason, finished_at=ended), {})
    assert status["phase"] == phase.value
    assert conditions(status)["Succeeded"] == wanted
    assert conditions(status)["Accepted"] == ("True", "Accepted")


def test_every_condition_names_the_generation_that_was_acted_on() -> None:
    status = execution_status(replace(ABOUT, generation=9), state(), {})
    assert status["observedGeneration"] == 9
    assert {one["observedGeneration"] for one in status["conditions"]} == {9}


def test_times_are_those_of_the_log() -> None:
    ended = state(phase=Phase.SUCCEEDED, reason="Succeeded", finished_at=T1)
    status = execution_status(ABOUT, ended, {})
    since = {one["type"]: one["lastTransitionTime"] for one in status["conditions"]}
    assert since == {"Accepted": "2026-11-18T09:59:59Z", "Succeeded": "2026-11-18T10:01:12Z"}
    assert status["startedAt"] == T0
    assert status["finishedAt"] == T1
    assert status["duration"] == "1m12s"
    assert status == execution_status(ABOUT, ended, {}), "the same facts give the same status"


def test_an_invalid_playbook_is_told_with_all_its_problems() -> None:
    problems: tuple[dict[str, object], ...] = (
        {"code": "A5.unknown-step", "path": "spec.workflow[0].next", "message": "no step `x`"},
        {"code": "A4.unknown-key", "path": "spec.foo", "message": "unknown", "hint": "bar"},
    )
    about = replace(ABOUT, problems=problems)  # type: ignore[arg-type]
    ended = state(phase=Phase.FAILED, reason="InvalidPlaybook", finished_at=T1, started_at=None)
    status = execution_status(about, ended, {})
    assert conditions(status)["Accepted"] == ("False", "InvalidPlaybook")
    message = status["conditions"][0]["message"]
    assert "spec.workflow[0].next: no step `x` [A5.unknown-step]" in message
    assert "spec.foo: unknown (bar) [A4.unknown-key]" in message


def test_active_steps_say_what_they_do() -> None:
    now = state(
        runs={
            "a": run("fetch", leases={"a": Lease(started=True)}),
            "b": run("load", scheduled_at=T1),
        },
        waiting={"t": token("approve")},
        steps=Counts(total=7, done=3),
    )
    status = execution_status(ABOUT, now, {"load": "no node takes the Pod"})
    assert [(one["step"], one["state"]) for one in status["active"]] == [
        ("approve", "Waiting"),
        ("fetch", "Running"),
        ("load", "Scheduled"),
    ]
    assert status["active"][2]["message"] == "no node takes the Pod"
    assert status["activeSummary"] == "approve, fetch, load"
    assert status["steps"]["progress"] == "3/7"
    assert status["steps"]["running"] == 2
    assert status["steps"]["waiting"] == 1
    assert status["message"] == "load: no node takes the Pod"


def test_a_loop_says_how_far_it_is() -> None:
    loop = LoopState(frames={}, outermost=10, total=10, done=4, failed=1)
    status = execution_status(ABOUT, state(runs={"a": run("each", loop=loop)}), {})
    assert status["active"][0]["message"] == "5 of 10 iterations, 1 failed"
    assert status["active"][0]["state"] == "Running"


def test_a_gate_is_named() -> None:
    now = state(phase=Phase.WAITING, waiting={"t": token("approve")})
    assert "approve" in execution_status(ABOUT, now, {})["message"]


def test_an_ending_says_why() -> None:
    ending = Ending(Phase.FAILED, Reason.STEP_FAILED, "step x failed")
    assert execution_status(ABOUT, state(ending=ending), {})["message"] == "ending: step x failed"


STORED = reference(b"x" * 9000, None)
LARGE_REF = {**STORED, "selected": {"k": "y" * 9000}}


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"a": 1}, {"a": 1}),
        (STORED, STORED),
        ("x" * 10_000, {"kind": "result_in_log", "size": 10_002}),
        (LARGE_REF, {key: STORED[key] for key in ("kind", "store", "key", "size")}),
    ],
)
def test_a_result_is_small_or_named(value: object, wanted: object) -> None:
    ended = state(phase=Phase.SUCCEEDED, reason="Succeeded", finished_at=T1, result=value)
    assert execution_status(ABOUT, ended, {})["result"] == wanted


def test_a_status_stays_small_with_a_thousand_steps() -> None:
    runs = {
        f"r{i}": run(f"step-{i}-" + "ü" * 50, leases={"l": Lease(started=True)})
        for i in range(1000)
    }
    problems = tuple({"code": "A1.x", "path": "p" * 200, "message": "ß" * 900} for _ in range(100))
    about = replace(ABOUT, problems=problems)  # type: ignore[arg-type]
    now = state(runs=runs, message="ä" * 5000, result="r" * 4000, steps=Counts(total=1000))
    troubles = {one.step: "§" * 5000 for one in runs.values()}
    status = execution_status(about, now, troubles)
    assert len(json.dumps(status)) <= MOST_BYTES
    assert status["active"]
    assert "+" in status["activeSummary"]


def test_problems_that_do_not_fit_are_counted() -> None:
    many = [{"code": "A1.x", "path": f"p{i}", "message": "m" * 500} for i in range(50)]
    text = problems_text(many)  # type: ignore[arg-type]
    assert text.endswith("more")
    assert len(text) < 8000


def test_one_that_does_not_run_says_what_it_waits_for() -> None:
    why = Verdict(ConditionStatus.FALSE, "PlaybookNotFound", "there is no Playbook x")
    status = idle_status(2, "2026-11-18T10:00:00Z", Phase.PENDING, why)
    assert conditions(status) == {
        "Accepted": ("False", "PlaybookNotFound"),
        "Succeeded": ("Unknown", "PlaybookNotFound"),
    }
    assert status["observedGeneration"] == 2


def test_a_refused_one_has_failed() -> None:
    why = Verdict(ConditionStatus.FALSE, "InvalidSpec", "spec.x: no")
    status = idle_status(2, "2026-11-18T10:00:00Z", Phase.FAILED, why)
    assert conditions(status)["Succeeded"] == ("False", "InvalidSpec")


def test_a_fault_is_a_condition_of_its_own() -> None:
    status = with_fault(execution_status(ABOUT, state(), {}), "cannot", ABOUT)
    assert conditions(status)["Reconciled"] == ("False", "Quarantined")
