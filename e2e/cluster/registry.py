"""Whose each cluster on this machine is, and which ones nobody will miss.

A cluster belongs to the process that is starting it or testing on it, or it is kept until someone
says `down`. One whose process is gone, or that is kept and has no live part, is swept away by the
next `up` on the machine.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager

from e2e.cluster import build, errors, layout, parts, teardown
from e2e.cluster.layout import Layout
from e2e.cluster.processes import Process

KEPT = {"kept": True}


def lock() -> AbstractContextManager[None]:
    """Held for the short moments in which clusters appear and disappear, not while they start."""
    return build.locked(layout.states_dir() / f"{layout.PREFIX}clusters.lock")


def claim(place: Layout) -> None:
    """Make the state folder, as ours. The lock is held."""
    try:
        place.root.mkdir(mode=0o700)
    except FileExistsError:
        raise errors.ClusterError(f"{place.root} is there already") from None
    (place.root / "run").mkdir()
    (place.root / "logs").mkdir()
    _me().write(place.owner)


def keep(place: Layout) -> None:
    """Let the cluster outlive this process."""
    place.owner.write_text(json.dumps(KEPT))


def names() -> Iterator[str]:
    for folder in sorted(layout.states_dir().glob(f"{layout.PREFIX}*")):
        if folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.geteuid():
            yield folder.name.removeprefix(layout.PREFIX)


def sweep() -> None:
    """Remove the clusters that were left behind. The lock is held."""
    for name in list(names()):
        place = Layout.of(name)
        if abandoned(place):
            print(f"removing the cluster {name}, left behind by a dead run", file=sys.stderr)
            teardown.remove(place)


def abandoned(place: Layout) -> bool:
    if owner := Process.read(place.owner):
        return not owner.alive()
    return not any(alive(place, part) for part in parts.ALL)


def alive(place: Layout, part: str) -> bool:
    process = Process.read(place.record(part))
    return process is not None and process.alive()


def _me() -> Process:
    return Process.of(os.getpid(), "")
