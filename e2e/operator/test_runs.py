"""An Execution from `kubectl apply` to its end."""

from __future__ import annotations

import json

from e2e.operator import playbooks
from e2e.operator.stand import Stand, condition, until


def test_an_execution_runs_and_its_status_tells_the_outcome(stand: Stand) -> None:
    stand.apply(playbooks.hello(stand), stand.execution("runs", "hello"))
    stand.worker("runs")
    status = stand.phase("runs", "Succeeded")
    assert status["steps"]["progress"] == "2/2"
    assert status["result"] == {"step": "two"}
    assert status["observedGeneration"] == 1
    assert status["playbook"]["name"] == "hello"
    assert condition(status, "Accepted")["status"] == "True"
    assert condition(status, "Succeeded")["reason"] == "Succeeded"
    assert status["finishedAt"] >= status["startedAt"]


def test_kubectl_wait_returns_for_a_success_and_for_a_failure(stand: Stand) -> None:
    stand.apply(playbooks.hello(stand), playbooks.failing(stand))
    stand.apply(stand.execution("waited", "hello"), stand.execution("waited-bad", "failing"))
    stand.worker("waited")
    stand.worker("waited-bad")
    words = ("-n", stand.namespace, "--timeout=60s")
    stand.cluster.kubectl("wait", "--for=condition=Succeeded", "execution/waited", *words)
    stand.cluster.kubectl("wait", "--for=condition=Succeeded=False", "execution/waited-bad", *words)
    status = stand.status("waited-bad")
    assert condition(status, "Succeeded")["reason"] == "StepFailed"
    assert "no such customer" in status["message"]


def test_kubectl_wait_does_not_hang_on_a_new_generation(stand: Stand) -> None:
    """A spec that changes after the end is acknowledged too."""
    stand.apply(playbooks.hello(stand), stand.execution("later", "hello"))
    stand.worker("later")
    stand.phase("later", "Succeeded")
    stand.patch("later", ttlSecondsAfterFinished=3600)
    words = ("-n", stand.namespace, "--timeout=30s")
    stand.cluster.kubectl("wait", "--for=condition=Succeeded", "execution/later", *words)
    status = stand.status("later")
    assert status["observedGeneration"] == condition(status, "Succeeded")["observedGeneration"] == 2


def test_events_tell_the_story(stand: Stand) -> None:
    stand.apply(playbooks.failing(stand), stand.execution("story", "failing"))
    stand.worker("story")
    stand.phase("story", "Failed")

    def told() -> str | None:
        text = stand.cluster.kubectl("describe", "execution", "story", "-n", stand.namespace).stdout
        return text if "Warning  Failed" in text else None

    text = until("the end is told", told)
    assert "StepFailed" in text
    assert "step bad failed" in text
    assert "no such customer" in text


def test_a_bad_playbook_is_told_every_problem_and_its_execution_is_refused(stand: Stand) -> None:
    bad = stand.playbook("bad", playbooks.step("start", "nowhere"), playbooks.step("start"))
    stand.apply(bad, stand.execution("refused", "bad"))
    valid = until("bad is judged", lambda: stand.status("bad", "playbook").get("conditions"))[0]
    assert (valid["type"], valid["status"]) == ("Valid", "False")
    problems = {one["code"] for one in stand.status("bad", "playbook")["problems"]}
    assert len(problems) >= 2
    status = stand.phase("refused", "Failed")
    accepted = condition(status, "Accepted")
    assert (accepted["status"], accepted["reason"]) == ("False", "InvalidPlaybook")
    assert all(code in accepted["message"] for code in problems)
    assert condition(status, "Succeeded")["reason"] == "InvalidPlaybook"


def test_an_execution_waits_for_its_playbook(stand: Stand) -> None:
    stand.apply(stand.execution("early", "comes-later"))
    status = stand.phase("early", "Pending")
    assert condition(status, "Accepted")["reason"] == "PlaybookNotFound"
    stand.apply(stand.playbook("comes-later", playbooks.step("start")))
    stand.worker("early")
    stand.phase("early", "Succeeded")


def test_a_playbook_can_be_written_out_in_the_execution(stand: Stand) -> None:
    inline = {"playbook": {"workflow": [playbooks.step("start")]}}
    stand.apply(stand.resource("Execution", "inline", inline))
    stand.worker("inline")
    assert stand.phase("inline", "Succeeded")["playbook"]["name"] == "inline"
    wrong = {"playbook": {"workflow": [playbooks.step("start", "nowhere")]}}
    stand.apply(stand.resource("Execution", "inline-bad", wrong))
    message = condition(stand.phase("inline-bad", "Failed"), "Accepted")["message"]
    assert "spec.playbook.workflow[0]" in message


def test_an_edit_never_changes_a_running_execution(stand: Stand) -> None:
    first = stand.playbook("edited", playbooks.gated("start"))
    stand.apply(first, stand.execution("unmoved", "edited"))
    before = stand.phase("unmoved", "Waiting")["playbook"]
    stand.apply(stand.playbook("edited", playbooks.step("other")))
    until("it is checked", lambda: stand.status("edited", "playbook")["observedGeneration"] == 2)
    stand.patch("unmoved", ctxPatches=[{"id": "go", "set": {"open": True}}])
    stand.worker("unmoved")
    status = stand.phase("unmoved", "Succeeded")
    assert status["playbook"] == before
    assert status["result"] == {"step": "start"}


def test_children_are_objects_owned_by_their_parent(stand: Stand) -> None:
    child = {"kind": "playbook", "playbook": "hello", "workload": {"n": 1}}
    parent = stand.playbook("parent", {"step": "start", "tool": [child]})
    stand.apply(playbooks.hello(stand), parent, stand.execution("family", "parent"))
    stand.worker("family")

    def born() -> str | None:
        words = ("get", "executions", "-n", stand.namespace, "-l", "noetl.io/parent=family")
        items = json.loads(stand.cluster.kubectl(*words, "-o", "json").stdout)["items"]
        return items[0]["metadata"]["name"] if items else None

    name = until("there is a child", born)
    stand.worker(name)
    assert stand.phase("family", "Succeeded")["result"] == {"step": "two"}
    assert stand.phase(name, "Succeeded")["steps"]["progress"] == "2/2"
    made = stand.get("execution", name)
    assert made is not None
    assert made["metadata"]["ownerReferences"][0]["name"] == "family"
