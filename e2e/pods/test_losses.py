"""Pods that are lost: told within seconds, delivered again or failed as the step says."""

from __future__ import annotations

from e2e.operator.stand import condition, until
from e2e.pods.field import Field, python, step

SLOW = python("import time; time.sleep(600)")


def fails(**lifecycle: object) -> dict[str, object]:
    return {"policy": {"lifecycle": lifecycle}}


def test_a_deleted_pod_is_replaced_and_its_step_runs_again(field: Field) -> None:
    # It never ends in the first Pod.
    code = (
        "import os, time\n"
        "name = os.uname().nodename\n"
        "time.sleep(600 if name.endswith('-0') else 0)\n"
        "result = name"
    )
    field.run("again", step("one", python(code)))
    first = field.pod_of("again")["metadata"]["name"]
    assert first.endswith("-0")
    runs(field, "again")
    field.kubectl("delete", "pod", first, "--grace-period=0", "--force")
    assert field.ended("again")["result"] == first.removesuffix("0") + "1"


def test_on_worker_lost_fail_fails_with_the_reason(field: Field) -> None:
    field.run("fails", step("one", SLOW, spec=fails(on_worker_lost="fail")))
    pod = field.pod_of("fails")["metadata"]["name"]
    runs(field, "fails")
    field.kubectl("delete", "pod", pod, "--grace-period=0", "--force")
    message = condition(field.ended("fails", "Failed"), "Succeeded")["message"]
    assert pod in message
    assert "the worker was lost" in message


def test_a_pod_without_enough_memory_says_so(field: Field) -> None:
    limits = {"limits": {"memory": "20Mi"}, "requests": {"memory": "16Mi"}}
    executor = {"kind": "pod", "spec": {"resources": limits}}
    field.run("oom", step("one", spec=fails(max_redeliveries=1)), executor=executor)
    message = condition(field.ended("oom", "Failed"), "Succeeded")["message"]
    assert "OOMKilled" in message
    assert "its limit is 20Mi" in message
    field.no_pods("noetl.io/execution=oom")


def test_a_worker_that_is_told_to_end_hands_back_what_it_holds(field: Field) -> None:
    quick = python("import time; time.sleep(8); result = 'done'")
    field.run("handed", step("one", quick, spec=fails(max_redeliveries=0)))
    pod = field.pod_of("handed")["metadata"]["name"]
    runs(field, "handed")
    field.kubectl("delete", "pod", pod, "--wait=false")
    assert field.ended("handed")["result"] == "done"


def runs(field: Field, name: str) -> None:
    """Its one step has been begun."""

    def look() -> bool:
        active = field.status(name).get("active") or []
        return any(one["state"] == "Running" for one in active)

    until(f"{name} runs", look, 60.0)
