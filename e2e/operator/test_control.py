"""What people ask of an Execution while it runs, and after."""

from __future__ import annotations

import json

from e2e.operator import playbooks
from e2e.operator.stand import Object, Stand, condition, until
from tests.support.postgres import run_sql


def test_a_ctx_patch_opens_a_gate(stand: Stand) -> None:
    stand.apply(playbooks.gate(stand), stand.execution("approved", "gate"))
    stand.worker("approved")
    status = stand.phase("approved", "Waiting")
    assert status["active"][0] == {**status["active"][0], "step": "gate", "state": "Waiting"}
    assert "gate" in status["message"]
    patch = {"id": "ok", "set": {"open": True}, "by": "ops", "reason": "seen"}
    stand.patch("approved", ctxPatches=[patch])
    assert stand.phase("approved", "Succeeded")["result"] == {"step": "last"}


def test_suspend_and_resume(stand: Stand) -> None:
    stand.apply(playbooks.gate(stand), stand.execution("paused", "gate"))
    stand.worker("paused")
    stand.phase("paused", "Waiting")
    stand.patch("paused", suspend=True)
    stand.phase("paused", "Suspended")
    stand.patch("paused", ctxPatches=[{"id": "ok", "set": {"open": True}}])
    until("it is seen", lambda: stand.status("paused")["observedGeneration"] == 3)
    assert stand.status("paused")["phase"] == "Suspended"
    stand.patch("paused", suspend=False)
    stand.phase("paused", "Succeeded")


def test_one_that_is_made_suspended_begins_when_it_is_resumed(stand: Stand) -> None:
    stand.apply(playbooks.hello(stand), stand.execution("held", "hello", suspend=True))
    assert "executionId" not in stand.phase("held", "Suspended")
    stand.patch("held", suspend=False)
    stand.worker("held")
    stand.phase("held", "Succeeded")


def test_graceful_cancel_runs_the_final_step(stand: Stand) -> None:
    stand.apply(playbooks.gate(stand), stand.execution("stopped", "gate"))
    stand.worker("stopped")
    stand.phase("stopped", "Waiting")
    stand.patch("stopped", cancel="Graceful")
    status = stand.phase("stopped", "Cancelled")
    assert condition(status, "Succeeded")["reason"] == "Cancelled"
    assert status["steps"]["done"] == 2, "start and the final step"


def test_cancel_now_does_not(stand: Stand) -> None:
    stand.apply(playbooks.gate(stand), stand.execution("stopped-now", "gate"))
    stand.worker("stopped-now")
    stand.phase("stopped-now", "Waiting")
    stand.patch("stopped-now", cancel="Now")
    assert stand.phase("stopped-now", "Cancelled")["steps"]["done"] == 1


def test_a_deadline_ends_it(stand: Stand) -> None:
    # No worker serves it: the final step would wait for one.
    book = stand.playbook("endless", playbooks.gated("start"))
    stand.apply(book, stand.execution("late", "endless", activeDeadlineSeconds=2))
    status = stand.phase("late", "Cancelled")
    assert condition(status, "Succeeded")["reason"] == "DeadlineExceeded"


def test_it_is_removed_when_its_time_is_over_and_shows_its_outcome_when_made_again(
    stand: Stand,
) -> None:
    again = stand.execution("gone", "hello", ttlSecondsAfterFinished=1)
    stand.apply(playbooks.hello(stand), again)
    stand.worker("gone")
    first = until("it has begun", lambda: stand.status("gone").get("executionId"))
    until("it is removed", lambda: stand.get("execution", "gone") is None)
    stand.apply(again)
    status = stand.phase("gone", "Succeeded")
    assert status["executionId"] == first
    stand.delete("gone")
    stand.apply(again)
    second = until("it begins anew", lambda: stand.status("gone").get("executionId"))
    assert second != first, "a person deleted it: it runs again"


def test_deleting_it_cancels_it_and_its_name_is_free(stand: Stand) -> None:
    book = playbooks.gate(stand)
    stand.apply(book, stand.execution("dropped", "gate"))
    stand.worker("dropped")
    first = stand.phase("dropped", "Waiting")["executionId"]
    stand.delete("dropped")
    stand.apply(stand.execution("dropped", "gate"))

    def other() -> bool:
        return stand.status("dropped").get("executionId", first) != first

    until("another one runs", other)
    until("the first is cancelled", lambda: phase_in_log(stand, first) == "Cancelled")
    stand.patch("dropped", cancel="Now")
    stand.phase("dropped", "Cancelled")


def test_a_rerun_takes_over_what_was_done(stand: Stand) -> None:
    stand.apply(playbooks.gate(stand), stand.execution("one", "gate"))
    stand.worker("one")
    stand.phase("one", "Waiting")
    stand.patch("one", cancel="Now")
    stand.phase("one", "Cancelled")
    rerun = {"name": "one", "fromStep": "gate"}
    patches = [{"id": "ok", "set": {"open": True}}]
    stand.apply(stand.execution("two", "gate", rerunOf=rerun, ctxPatches=patches))
    stand.worker("two")
    status = stand.phase("two", "Succeeded")
    assert status["steps"]["done"] == 3, "gate, last and clean; not start"


def test_a_status_that_somebody_else_wrote_is_put_right(stand: Stand) -> None:
    stand.apply(playbooks.hello(stand), stand.execution("forged", "hello"))
    stand.worker("forged")
    right = stand.phase("forged", "Succeeded")
    words = ("patch", "execution", "forged", "-n", stand.namespace, "--subresource=status")
    wrong = json.dumps({"status": {"phase": "Failed", "message": "hacked"}})
    stand.cluster.kubectl(*words, "--type=merge", "-p", wrong)
    until("it is right again", lambda: stand.status("forged") == right)


def phase_in_log(stand: Stand, execution_id: str) -> str:
    text = f"SELECT phase FROM noetl.execution WHERE execution_id = '{execution_id}'"
    found: Object = dict(run_sql(stand.postgres.uri(), text)[0])
    return str(found["phase"])
