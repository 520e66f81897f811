"""Ending a cluster and removing every trace of it, however far it came and however it died."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from e2e.cluster import cgroups, mounts, network, parts, processes, run
from e2e.cluster.layout import Layout
from e2e.cluster.processes import Process

CNI_RESULTS = Path("/var/lib/cni/results")
CONTAINER_LOGS = Path("/var/log/containers")
SHIM_SOCKETS = Path("/run/containerd/s")
CONTAINERS_TIMEOUT_S = 10.0


def remove(place: Layout) -> None:
    """Take the cluster away. Repeating it, or doing it to nothing, is fine.

    The kubelet and containerd go first, since they would start again what is ended after them.
    """
    _end(_recorded(place))
    run.until(
        lambda: cgroups.kill(place.full_name),
        what=f"the containers of {place.name} have ended",
        timeout=CONTAINERS_TIMEOUT_S,
    )
    _end(processes.mentioning(str(place.containerd_socket)))
    _end(_strays(place))
    _remove_traces(place)
    if place.root.exists():
        mounts.delete_tree(place.root)
    cgroups.remove(place.full_name)
    network.delete(place)


def _recorded(place: Layout) -> list[Process]:
    found = (Process.read(place.record(part)) for part in ("kubelet", "containerd", *parts.ALL))
    return [process for process in found if process is not None]


def _strays(place: Layout) -> list[Process]:
    """What is in our namespace and speaks of our folder, but was not written down in time."""
    inside = set(network.pids(place))
    return [p for p in processes.mentioning(str(place.root)) if p.pid in inside]


def _end(doomed: list[Process]) -> None:
    for process in doomed:
        process.kill()
    for process in doomed:
        process.end()


def _remove_traces(place: Layout) -> None:
    """Files that the parts put at fixed places outside the state folder."""
    for file in CNI_RESULTS.glob(f"{place.full_name}-*"):
        container = file.name.removeprefix(f"{place.full_name}-").partition("-")[0]
        for trace in CNI_RESULTS.glob(f"*-{container}-*"):
            trace.unlink(missing_ok=True)
    for address in place.root.glob("containerd-state/*/k8s.io/*/address"):
        socket = Path(address.read_text().removeprefix("unix://"))
        if socket.parent == SHIM_SOCKETS:
            socket.unlink(missing_ok=True)
    for link in CONTAINER_LOGS.glob("*.log"):
        with contextlib.suppress(OSError):
            if Path(os.readlink(link)).is_relative_to(place.root):
                link.unlink()
