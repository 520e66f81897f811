"""A cluster whose process was killed leaves nothing once the next run has swept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from e2e.cluster import cgroups, host, layout, mounts, processes, registry
from e2e.cluster.layout import Layout

ROOT = Path(__file__).parents[3]

SCRIPT = """
import time
from e2e.cluster import Cluster
cluster = Cluster()
cluster.up()
print(cluster.name, flush=True)
time.sleep(600)
"""


@pytest.fixture
def crashed(monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A whole cluster that was started by a process which is dead."""
    monkeypatch.delenv(layout.CONTEXT_VARIABLE, raising=False)
    if reason := host.supported():
        pytest.skip(f"no cluster: {reason}")
    argv = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        name = child.stdout.readline().strip()
        child.kill()
    return Layout.of(name)


@pytest.mark.cluster
def test_everything_of_a_crashed_run_is_removed(crashed: Layout) -> None:
    assert registry.alive(crashed, "kubelet")
    assert mounts.below(crashed.root)
    with registry.lock():
        registry.sweep()
    assert not crashed.root.exists()
    assert not crashed.netns.exists()
    assert cgroups.kill(crashed.full_name)
    assert [p for p in processes.mentioning(str(crashed.root)) if p.alive()] == []
