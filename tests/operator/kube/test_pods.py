"""What the status of a worker Pod says, in words."""

from __future__ import annotations

from typing import Any

import pytest

from noetl_operator.kube.pods import Stage, is_over, job_trouble, view_of


def pod(status: dict[str, Any], **meta: Any) -> dict[str, Any]:
    limits = {"limits": {"memory": "128Mi"}}
    return {
        "metadata": {
            "namespace": "team",
            "name": "p",
            "uid": "u",
            "annotations": {"noetl.io/pool": "execution/x", "noetl.io/lease": "l"},
            **meta,
        },
        "spec": {
            "nodeName": "node0",
            "containers": [{"name": "worker", "resources": limits}],
        },
        "status": status,
    }


def container(state: dict[str, Any]) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "worker", "image": "worker:9", "state": state}]}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", **container(state)}


def terminated(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    # The container shows it first; the Pod still says that it runs.
    return {"phase": "Running", **container(state)}


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {
        "phase": "Pending",
        "conditions": [{"type": kind, "status": status, "reason": reason, "message": message}],
    }


def failed(reason: str, message: str = "") -> dict[str, Any]:
    return {"phase": "Failed", "reason": reason, "message": message}


RUNNING = {"phase": "Running", **container({"running": {"startedAt": "x"}})}

CASES: list[tuple[dict[str, Any], Stage, str | None]] = [
    ({}, Stage.STARTING, None),
    ({"phase": "Pending"}, Stage.STARTING, None),
    (waiting("ContainerCreating"), Stage.STARTING, None),
    (RUNNING, Stage.RUNNING, None),
    (
        waiting("ErrImagePull", "no such\n host"),
        Stage.STARTING,
        "the image worker:9 cannot be had: no such host",
    ),
    (waiting("ImagePullBackOff"), Stage.STARTING, "the image worker:9 cannot be had"),
    (waiting("ErrImageNeverPull"), Stage.STARTING, "the image worker:9 cannot be had"),
    (waiting("InvalidImageName"), Stage.STARTING, "`worker:9` is no name of an image"),
    (
        waiting("CreateContainerConfigError", "image has non-numeric user"),
        Stage.STARTING,
        "the container cannot be started: image has non-numeric user",
    ),
    (
        condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available"),
        Stage.STARTING,
        "no node takes the Pod: 0/3 nodes are available",
    ),
    (
        condition("DisruptionTarget", "True", "DeletionByTaintManager"),
        Stage.STARTING,
        "it has to leave its node (DeletionByTaintManager)",
    ),
    (
        {**RUNNING, **condition("Ready", "False", "NodeNotReady"), "phase": "Running"},
        Stage.RUNNING,
        "its node does not answer",
    ),
    (
        terminated(137, "OOMKilled"),
        Stage.ENDED,
        "it ran out of memory (OOMKilled; its limit is 128Mi)",
    ),
    (terminated(0, "Completed"), Stage.ENDED, None),
    (terminated(137), Stage.ENDED, "the worker was killed (signal 9)"),
    (
        terminated(2, message="Traceback\nerror: NOETL_URL: Field required"),
        Stage.ENDED,
        "the worker ended with code 2: error: NOETL_URL: Field required",
    ),
    (
        terminated(128, "StartError", "exec: python: not found"),
        Stage.ENDED,
        "the container cannot be run: exec: python: not found",
    ),
    (
        failed("Evicted", "The node was low on resource: memory."),
        Stage.ENDED,
        "the Pod was evicted: The node was low on resource: memory.",
    ),
    (failed("NodeLost"), Stage.ENDED, "its node is gone"),
    (failed("NodeShutdown"), Stage.ENDED, "its node was shut down"),
    (failed("Preempting"), Stage.ENDED, "the Pod had to make room for a more important one"),
    (failed("OutOfcpu"), Stage.ENDED, "its node has not enough cpu for the Pod"),
    (failed("Strange", "who knows"), Stage.ENDED, "the Pod failed (Strange): who knows"),
    ({"phase": "Failed"}, Stage.ENDED, "the Pod failed"),
    ({"phase": "Succeeded"}, Stage.ENDED, None),
]


@pytest.mark.parametrize(("status", "stage", "words"), CASES)
def test_a_status_is_understood(status: dict[str, Any], stage: Stage, words: str | None) -> None:
    view = view_of(pod(status))
    assert (view.stage, view.trouble) == (stage, words)


def test_a_pod_that_was_told_to_end_is_ending_until_its_container_has_ended() -> None:
    gone = "2026-01-01T00:00:00Z"
    assert view_of(pod(RUNNING, deletionTimestamp=gone)).stage is Stage.ENDING
    assert view_of(pod({}, deletionTimestamp=gone)).stage is Stage.ENDING
    assert view_of(pod(terminated(0), deletionTimestamp=gone)).stage is Stage.ENDED


def test_what_kubernetes_says_is_passed_on_only_so_far() -> None:
    view = view_of(pod(waiting("ErrImagePull", "x" * 10_000)))
    assert view.trouble is not None
    assert len(view.trouble) < 500


def test_a_pod_knows_its_pool_its_command_and_its_job() -> None:
    view = view_of(pod({}, ownerReferences=[{"kind": "Job", "name": "j"}]))
    assert (view.pool, view.lease_id, view.job, view.node) == ("execution/x", "l", "j", "node0")
    mine = view_of(pod({}, ownerReferences=[{"kind": "Execution", "name": "e"}]))
    assert mine.job is None


def job(*conditions: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "j"}, "status": {"conditions": list(conditions)}}


def test_a_job_that_failed_says_why() -> None:
    made = job({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"})
    assert job_trouble(made) == "its Job failed (BackoffLimitExceeded)"
    assert is_over(made)
    assert job_trouble(job()) is None
    assert not is_over(job())
    assert is_over(job({"type": "Complete", "status": "True"}))
