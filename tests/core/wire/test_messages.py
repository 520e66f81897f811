"""The protocol, version 1: golden examples, tolerance for newer peers, clear refusals."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from noetl_core import wire
from noetl_core.engine.triggers import EndStatus, Enqueue, Reported, StartChild
from noetl_core.outcomes import ErrorKind
from noetl_core.values import Value
from tests.support.wire_examples import (
    CHILD,
    COMMAND,
    DIGEST,
    EXAMPLES,
    EXECUTION,
    LEASE,
    RUN,
    Message,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "wire"
NAMES = sorted(EXAMPLES)


def text_of(message: Message) -> str:
    return json.dumps(message.as_json(), indent=2, ensure_ascii=False) + "\n"


def read(name: str, data: Value) -> Message:
    of = type(EXAMPLES[name]).of  # type: ignore[attr-defined]
    message: Message = of(data)
    return message


def data_of(name: str) -> dict[str, Value]:
    return copy.deepcopy(EXAMPLES[name].as_json())


@pytest.mark.parametrize("name", NAMES)
def test_every_message_is_written_as_its_golden_example(name: str) -> None:
    assert (GOLDEN / f"{name}.json").read_bytes() == text_of(EXAMPLES[name]).encode()


def test_there_is_a_golden_example_for_every_message_and_no_other() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.json")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_golden_example_reads_back_as_its_message(name: str) -> None:
    data: Value = json.loads((GOLDEN / f"{name}.json").read_text())
    assert read(name, data) == EXAMPLES[name]


def _with_more(value: Value, depth: int = 0) -> Value:
    """The message of a newer peer: objects of the protocol have keys nobody here knows."""
    if isinstance(value, list):
        return [_with_more(item, depth) for item in value]
    if not isinstance(value, dict) or depth > 1:
        return value
    kept = {k: _with_more(v, depth + 1) if k in _OF_PROTOCOL else v for k, v in value.items()}
    return {**kept, "shiny": {"new": [1]}}


_OF_PROTOCOL = {
    "facts",
    "payload",
    "end",
    "commands",
    "next",
    "leases",
    "children",
    "error",
    "knows",
}


@pytest.mark.parametrize("name", NAMES)
def test_keys_of_a_newer_peer_are_passed_over(name: str) -> None:
    assert read(name, _with_more(data_of(name))) == EXAMPLES[name]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("lease_request", "worker"),
        ("lease_request", "pool"),
        ("lease_request", "capacity"),
        ("report", "run_id"),
        ("report", "step"),
        ("report", "epoch"),
        ("report", "first"),
        ("heartbeat", "worker"),
        ("heartbeat_answer", "ttl_s"),
        ("handback", "reason"),
        ("reports", "worker"),
        ("reports", "pool"),
        ("child_request", "epoch"),
        ("child_request", "task"),
        ("child_request", "task_run"),
        ("child_request", "playbook"),
        ("child_answer", "verdict"),
    ],
)
def test_what_is_missing_is_named(name: str, key: str) -> None:
    data = data_of(name)
    del data[key]
    with pytest.raises(wire.Malformed, match=rf"\.{key}: missing"):
        read(name, data)


@pytest.mark.parametrize(
    "key", ["lease_id", "epoch", "capability", "ttl_s", "digest", "run_id", "step", "execution"]
)
def test_what_is_missing_in_a_command_is_named_with_its_place(key: str) -> None:
    data = json.loads(json.dumps(data_of("lease_answer")))
    del data["commands"][1][key]
    with pytest.raises(wire.Malformed, match=rf"commands\[1\]\.{key}: missing"):
        wire.LeaseAnswer.of(data)


@pytest.mark.parametrize("spoken", [2, None, "1", True, 0])
@pytest.mark.parametrize(
    "name", ["lease_request", "lease_answer", "heartbeat", "handback", "reports"]
)
def test_another_version_is_refused_in_words_that_help(name: str, spoken: Value) -> None:
    data = {**data_of(name), "protocol": spoken}
    with pytest.raises(wire.WrongProtocol, match="one release") as refused:
        read(name, data)
    assert refused.value.status == 426


def test_the_header_of_another_version_is_refused() -> None:
    wire.check_header("1", "the worker")
    for value in ("2", None, "", "one", "١"):
        with pytest.raises(wire.WrongProtocol, match="the worker"):
            wire.check_header(value, "the worker")


@pytest.mark.parametrize("data", [None, [], "x", 1])
def test_a_message_is_an_object(data: Value) -> None:
    with pytest.raises(wire.Malformed, match="expected an object"):
        wire.Report.of(data)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epoch", -1),
        ("epoch", "1"),
        ("epoch", True),
        ("first", 1.5),
        ("run_id", 5),
        ("facts", {}),
        ("end", []),
        ("end", {"status": "maybe"}),
        ("end", {"status": "error"}),
        ("end", {"status": "error", "error": {"kind": "x"}}),
    ],
)
def test_what_has_a_wrong_type_is_refused(key: str, value: Value) -> None:
    with pytest.raises(wire.Malformed, match=f"report.*{key}"):
        wire.Report.of({**data_of("report_ok"), key: value})


def test_more_than_a_message_may_hold_is_refused() -> None:
    data = data_of("report")
    data["facts"] = [{"name": "task.started", "payload": {"kind": "noop"}}] * (wire.MAX_FACTS + 1)
    with pytest.raises(wire.TooMuch) as refused:
        wire.Report.of(data)
    assert refused.value.status == 413
    with pytest.raises(wire.TooMuch):
        wire.Report.of({**data_of("report"), "run_id": "x" * 5000})


def test_an_error_kind_of_a_newer_worker_is_unknown() -> None:
    data = json.loads(json.dumps(data_of("report_failed")))
    data["end"]["error"]["kind"] = "quantum"
    end = wire.Report.of(data).end
    assert end is not None
    assert end.error is not None
    assert end.error.kind is ErrorKind.UNKNOWN


def test_a_report_becomes_the_trigger_of_a_decision() -> None:
    report = EXAMPLES["report_ok"]
    assert isinstance(report, wire.Report)
    trigger = report.trigger(LEASE)
    assert isinstance(trigger, Reported)
    assert (trigger.lease_id, trigger.epoch, trigger.first) == (LEASE, 2, 18)
    assert trigger.end is not None
    assert trigger.end.status is EndStatus.OK


def test_a_child_request_becomes_the_trigger_of_a_decision() -> None:
    request = EXAMPLES["child_request"]
    assert isinstance(request, wire.ChildRequest)
    trigger = request.trigger(LEASE)
    assert isinstance(trigger, StartChild)
    assert (trigger.iteration, trigger.playbook, trigger.wait) == ("4.1", "lib/clean", True)


def test_a_report_about_another_run_or_iteration_is_foreign() -> None:
    report = EXAMPLES["report"]
    assert isinstance(report, wire.Report)
    assert report.foreign(RUN, "load", None) is None
    assert report.foreign(RUN, "load", "4") is None
    assert report.foreign(LEASE, "load", "4") is not None
    assert report.foreign(RUN, "other", "4") is not None
    assert report.foreign(RUN, "load", "44") is not None


def test_a_command_is_the_enqueued_work_with_what_the_lease_adds() -> None:
    enqueue = Enqueue(
        lease_id=LEASE,
        run_id=RUN,
        step="load",
        iteration="4",
        args={"page": 1},
        iters=({"region": "eu", "index": 4, "total": 9},),
        items=["a", "b"],
        window=2,
        timeout_s=60.0,
    )
    made = wire.Command.of_enqueue(
        enqueue,
        epoch=2,
        capability="v1.abc.def",
        ttl_s=30.0,
        execution=EXECUTION,
        digest=DIGEST,
        ctx={"seen": [1, 2]},
        remaining_s=3599.5,
    )
    assert made == COMMAND


def test_an_empty_list_to_go_through_survives() -> None:
    answer = wire.LeaseAnswer(commands=(wire.Command.of_enqueue(
        Enqueue(lease_id=LEASE, run_id=RUN, step="s", args={}, items=[]),
        epoch=1, capability="c", ttl_s=1.0, execution=EXECUTION, digest=DIGEST, ctx={},
    ),))  # fmt: skip
    (command,) = wire.LeaseAnswer.of(answer.as_json()).commands
    assert command.items == []


def test_only_what_the_worker_does_not_know_is_sent_along() -> None:
    knows = wire.Knows(playbooks=(DIGEST,))
    assert wire.unknown_to(knows, [COMMAND, COMMAND]) == ([], [EXECUTION["id"]])
    assert wire.unknown_to(wire.Knows(), [COMMAND]) == ([DIGEST], [EXECUTION["id"]])


def test_results_are_named_and_verified_by_their_digest() -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert wire.result_at(empty) == f"/v1/results/{empty}"
    wire.check_content(empty, b"")
    with pytest.raises(wire.Malformed, match="digest"):
        wire.check_content(empty, b"x")
    for bad in ("", "../secret", empty.upper(), empty + "0"):
        with pytest.raises(wire.Malformed):
            wire.checked_digest(bad)


def test_paths_name_the_lease() -> None:
    assert wire.children_of(CHILD) == f"/v1/runs/{CHILD}/children"


def test_a_refusal_carries_the_code_of_its_error() -> None:
    refusal = wire.Refusal.of_error(wire.TooMuch("too long"))
    assert refusal.as_json() == {
        "error": {"code": "too_much", "message": "too long", "retry": False}
    }
