"""Pools of worker Pods: they come with the work and go when there is none."""

from __future__ import annotations

import json

from e2e.operator.stand import until
from e2e.pods.field import Field, gate, python, step


def test_an_execution_runs_in_a_pod_of_its_own_that_goes_with_it(field: Field) -> None:
    field.run("own", step("one", then="two"), step("two", python("result = 40 + 2")))
    status = field.ended("own")
    assert status["result"] == 42
    assert status["steps"]["progress"] == "2/2"
    field.no_pods("noetl.io/execution=own")


def test_its_pod_is_found_by_labels_and_owned_by_it(field: Field) -> None:
    field.run("labels", step("one", then="wait"), gate("wait"))
    pod = field.pod_of("labels")
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Execution", "labels")
    assert pod["metadata"]["labels"]["noetl.io/playbook"] == "labels"
    assert pod["spec"]["automountServiceAccountToken"] is False
    open_gate(field, "labels")
    field.ended("labels")


def test_deleting_an_execution_removes_its_pods(field: Field) -> None:
    field.run("deleted", step("long", python("import time; time.sleep(600)")))
    field.pod_of("deleted")
    field.kubectl("delete", "execution", "deleted")
    field.no_pods("noetl.io/execution=deleted")


def test_a_warm_pool_is_shared_by_the_executions_of_a_playbook(field: Field) -> None:
    executor = {"spec": {"pool": {"scope": "playbook", "min": 1, "max": 1}}}
    field.playbook("warm", step("one", python("import os; result = os.uname().nodename")),
                   executor=executor)  # fmt: skip
    labels = "noetl.io/playbook=warm"
    (pod,) = until("a Pod before anybody asks", lambda: running(field, labels), 90.0)
    for name in ("first", "second"):
        field.execution(name, "warm")
        assert field.ended(name)["result"] == pod["metadata"]["name"]
    (left,) = field.pods(labels)
    assert left["metadata"]["uid"] == pod["metadata"]["uid"]
    assert left["metadata"]["ownerReferences"][0]["kind"] == "Playbook"
    field.kubectl("delete", "playbook", "warm")
    field.no_pods(labels)


def test_a_shared_pool_scales_to_zero_and_comes_back(field: Field) -> None:
    executor = {"spec": {"pool": {"scope": "playbook", "idle_s": 1}}}
    field.playbook("zero", step("one"), executor=executor)
    for name in ("zero-1", "zero-2"):
        field.execution(name, "zero")
        field.ended(name)
        field.no_pods("noetl.io/playbook=zero")


def test_many_iterations_get_several_pods_but_no_more_than_allowed(field: Field) -> None:
    loop = {
        "in": "{{ workload.numbers }}",
        "iterator": "n",
        "spec": {"mode": "parallel", "max_in_flight": 40, "policy": {"exec": "distributed"}},
    }
    work = python("import os, time; time.sleep(1); result = os.uname().nodename")
    executor = {"spec": {"pool": {"max": 2}}}
    workload = {"numbers": list(range(40))}
    field.run("many", step("all", work, loop=loop), executor=executor, workload=workload)
    result = field.ended("many")["result"]
    assert len(result) == 40
    assert 1 <= len(set(result)) <= 2


def running(field: Field, labels: str) -> list[dict[str, object]]:
    return [pod for pod in field.pods(labels) if pod["status"].get("phase") == "Running"]


def open_gate(field: Field, name: str) -> None:
    patch = {"spec": {"ctxPatches": [{"id": "open", "set": {"open": True}}]}}
    field.kubectl("patch", "execution", name, "--type=merge", "-p", json.dumps(patch))
