"""A cgroup subtree per cluster, so that two kubelets never take each other's Pods for orphans.

It also finds every container process again after a crash, whatever its parents were.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

V2_CONTROLLERS = "+cpuset +cpu +io +memory +pids"


def create(name: str) -> None:
    """Make the subtree in each hierarchy that the kubelet will use."""
    hierarchies = _hierarchies()
    if any(kind == "cgroup" for _, kind in hierarchies):
        # Version 2 may be mounted beside it, but the kubelet then uses version 1.
        for root, kind in hierarchies:
            if kind == "cgroup":
                (root / name).mkdir(exist_ok=True)
        return
    for root, _ in hierarchies:
        (root / "cgroup.subtree_control").write_text(V2_CONTROLLERS)
        (root / name).mkdir(exist_ok=True)


def kill(name: str) -> bool:
    """Kill every process in the subtree. True when there was none."""
    found = set(_pids(name))
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not found


def remove(name: str) -> None:
    for folder in _folders(name):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _folders(name: str) -> Iterator[Path]:
    """The subtree's folders in every hierarchy, children first."""
    for root, _ in _hierarchies():
        for path, _, _ in os.walk(root / name, topdown=False):
            yield Path(path)


def _pids(name: str) -> Iterator[int]:
    for folder in _folders(name):
        with contextlib.suppress(OSError):
            yield from map(int, (folder / "cgroup.procs").read_text().split())


def _hierarchies() -> list[tuple[Path, str]]:
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    return [(Path(at), kind) for _, at, kind, *_ in mounts if kind in ("cgroup", "cgroup2")]
