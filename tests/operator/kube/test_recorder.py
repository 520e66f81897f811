"""Kubernetes Events of what is in the log."""

from __future__ import annotations

from noetl_core.engine import events as ev
from noetl_operator.kube.port import EVENT, EXECUTION, Key
from noetl_operator.kube.recorder import MOST_OF_ONE, Happening, Recorder, gathered, happenings
from tests.support.cluster import FakeCluster

KEY = Key(EXECUTION, "n", "x")
ERROR = {"kind": "http", "code": "HTTP_500", "message": "server error", "task": "fetch"}
STARTED = ev.WorkflowStarted(step="start", run_id="t")
FAILED = ev.StepFailed(step="load", run_id="r", error=ERROR)
FINISHED = ev.WorkflowFinished(
    phase="Failed", reason="StepFailed", message="load failed", result=None, steps={}, failures=[]
)


def test_a_failed_step_is_told_with_its_error() -> None:
    (told,) = happenings([FAILED])
    assert told.reason == "StepFailed"
    assert told.type == "Warning"
    assert told.message == "step load failed: task fetch: server error [http HTTP_500]"


def test_what_nobody_wants_to_see_is_not_told() -> None:
    assert list(happenings([ev.StepDone(step="a", run_id="r", result=None)])) == []


def test_of_a_short_run_only_the_end_is_told() -> None:
    assert [one.reason for one in gathered(happenings([STARTED]))] == ["Started"]
    told = gathered(happenings([STARTED, FAILED, FINISHED]))
    assert [one.reason for one in told] == ["StepFailed", "Failed"]


def test_what_repeats_is_counted() -> None:
    again = [
        ev.IterationFailed(step="each", run_id="r", iteration=str(i), error=ERROR) for i in range(9)
    ]
    (told,) = gathered(happenings(again))
    assert told.count == 9
    assert told.message.startswith("iteration 8 of each failed")


def test_one_execution_cannot_flood_the_cluster() -> None:
    many = [Happening("Warning", "StepFailed", "m", f"step-{i}") for i in range(500)]
    told = gathered([*many, *happenings([FINISHED])])
    assert len(told) == MOST_OF_ONE
    assert told[-1].reason == "Failed"


async def test_what_comes_again_raises_the_count_of_its_event() -> None:
    cluster = FakeCluster()
    for _ in range(2):
        # Another process knows nothing of what this one has told.
        recorder = Recorder(cluster, lambda: "2026-11-18T10:00:00.5Z", "op")
        for _ in range(2):
            recorder.note(KEY, "u", happenings([FAILED]))
            await recorder.flush()
    (event,) = await cluster.list(EVENT)
    assert event["count"] == 4
    assert event["involvedObject"]["uid"] == "u"


async def test_an_event_that_cannot_be_written_is_lost_and_nothing_else() -> None:
    cluster = FakeCluster()
    recorder = Recorder(cluster, lambda: "2026-11-18T10:00:00.5Z", "op")
    cluster.down = True
    recorder.note(KEY, "u", happenings([FAILED]))
    await recorder.flush()
    cluster.down = False
    recorder.note(KEY, "u", happenings([FINISHED]))
    await recorder.flush()
    assert [event["reason"] for event in await cluster.list(EVENT)] == ["Failed"]
