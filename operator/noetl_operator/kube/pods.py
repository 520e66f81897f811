"""What a worker Pod's status says, in words a person can act on. Pure.

Containers' statuses are read before the Pod's phase: a container's end shows there about a second
earlier. `launch` asks how far a Pod is and what is wrong with it; the words go to the Execution's
status and, with a worker that was lost, into the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any

from noetl_operator.kube.manifests import CONTAINER, LEASE
from noetl_operator.kube.port import POOL, Object

LONGEST = 400
"""How much of what Kubernetes says is passed on."""


class Stage(StrEnum):
    """How far a Pod is."""

    STARTING = "starting"
    RUNNING = "running"
    ENDING = "ending"
    """It was told to end and may still finish what it holds."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """A worker Pod as far as the launcher cares."""

    namespace: str
    name: str
    uid: str
    pool: str
    lease_id: str | None
    """Of a Pod that serves one command."""
    job: str | None
    """The Job that it belongs to."""
    stage: Stage
    trouble: str | None = None
    """What keeps it from working, or what ended it."""
    node: str | None = None


def view_of(pod: Object) -> PodView:
    meta, status = pod["metadata"], pod.get("status") or {}
    annotations = meta.get("annotations") or {}
    stage = _stage(meta, status)
    return PodView(
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        uid=meta["uid"],
        pool=annotations.get(POOL, ""),
        lease_id=annotations.get(LEASE),
        job=_job(meta),
        stage=stage,
        trouble=_end(pod, status) if stage is Stage.ENDED else _hindrance(status),
        node=(pod.get("spec") or {}).get("nodeName"),
    )


def _job(meta: Mapping[str, Any]) -> str | None:
    owners = meta.get("ownerReferences") or []
    return next((str(one["name"]) for one in owners if one["kind"] == "Job"), None)


def _stage(meta: Mapping[str, Any], status: Mapping[str, Any]) -> Stage:
    states = [one.get("state") or {} for one in _containers(status)]
    phase = status.get("phase")
    if phase in ("Succeeded", "Failed") or (states and all("terminated" in s for s in states)):
        return Stage.ENDED
    if meta.get("deletionTimestamp"):
        return Stage.ENDING
    if any("running" in state for state in states) or phase == "Running":
        return Stage.RUNNING
    return Stage.STARTING


def _containers(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(status.get("containerStatuses") or [])


def _hindrance(status: Mapping[str, Any]) -> str | None:
    """Why a Pod that has not ended does not work."""
    return next(chain(_waiting(status), _conditions(status)), None)


def _waiting(status: Mapping[str, Any]) -> Iterator[str]:
    for container in _containers(status):
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason, said = waiting.get("reason", ""), _said(waiting.get("message"))
        if reason in ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"):
            yield f"the image {container.get('image')} cannot be had{said}"
        elif reason == "InvalidImageName":
            yield f"`{container.get('image')}` is no name of an image"
        elif reason in ("CreateContainerConfigError", "CreateContainerError", "RunContainerError"):
            yield f"the container cannot be started{said}"


def _conditions(status: Mapping[str, Any]) -> Iterator[str]:
    for one in status.get("conditions") or []:
        kind, reason, said = one.get("type"), one.get("reason", ""), _said(one.get("message"))
        if one.get("status") == "True":
            if kind == "DisruptionTarget":
                yield f"it has to leave its node ({reason}){said}"
            continue
        if kind == "PodScheduled" and reason == "Unschedulable":
            yield f"no node takes the Pod{said}"
        elif kind == "PodScheduled" and reason == "SchedulerError":
            yield f"the Pod cannot be scheduled{said}"
        elif kind == "Ready" and reason in ("NodeNotReady", "NodeLost", "NodeStatusUnknown"):
            yield f"its node does not answer{said}"


_BY_REASON = {
    "Evicted": "the Pod was evicted",
    "Preempting": "the Pod had to make room for a more important one",
    "NodeLost": "its node is gone",
    "NodeShutdown": "its node was shut down",
    "Terminated": "its node was shut down",
    "Shutdown": "its node was shut down",
    "NodeAffinity": "its node does not suit the Pod any more",
    "UnexpectedAdmissionError": "its node refused the Pod",
    "DeadlineExceeded": "the Pod was given no more time",
}


def _end(pod: Object, status: Mapping[str, Any]) -> str | None:
    """Why a Pod ended; None where it ended well."""
    reason, said = status.get("reason", ""), _said(status.get("message"))
    if reason in _BY_REASON:
        return _BY_REASON[reason] + said
    if reason.startswith("OutOf"):
        return f"its node has not enough {reason.removeprefix('OutOf')} for the Pod{said}"
    for container in _containers(status):
        ended = (container.get("state") or {}).get("terminated") or {}
        if ended.get("reason") == "OOMKilled":
            return f"it ran out of memory (OOMKilled{_memory_limit(pod)})"
        if ended.get("exitCode"):
            return _exit(ended)
    if status.get("phase") == "Failed":
        leaves = next(_conditions(status), None)
        return leaves or (f"the Pod failed ({reason}){said}" if reason else f"the Pod failed{said}")
    return None


def _exit(ended: Mapping[str, Any]) -> str:
    code = ended["exitCode"]
    if ended.get("reason") in ("StartError", "ContainerCannotRun", "ContainerStatusUnknown"):
        return f"the container cannot be run{_said(ended.get('message'))}"
    killed = f"was killed (signal {code - 128})" if code > 128 else f"ended with code {code}"
    return f"the worker {killed}{_said(_last_line(ended.get('message')))}"


def _last_line(text: str | None) -> str | None:
    lines = (text or "").strip().splitlines()
    return lines[-1] if lines else None


def _memory_limit(pod: Object) -> str:
    for container in (pod.get("spec") or {}).get("containers") or []:
        limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
        if container.get("name") == CONTAINER and limit:
            return f"; its limit is {limit}"
    return ""


def _said(text: str | None) -> str:
    plain = " ".join((text or "").split())
    if len(plain) > LONGEST:
        plain = plain[: LONGEST - 1] + "…"
    return f": {plain}" if plain else ""


def job_trouble(job: Object) -> str | None:
    """Why a Job has no Pod that could work; None where nothing speaks of it."""
    for one in (job.get("status") or {}).get("conditions") or []:
        if one.get("type") in ("Failed", "FailureTarget") and one.get("status") == "True":
            return f"its Job failed ({one.get('reason', 'unknown')}){_said(one.get('message'))}"
    return None


def is_over(job: Object) -> bool:
    """Whether a Job will never have a Pod again."""
    conditions = (job.get("status") or {}).get("conditions") or []
    return any(
        one.get("type") in ("Failed", "Complete") and one.get("status") == "True"
        for one in conditions
    )
