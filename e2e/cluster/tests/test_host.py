"""What needs no cluster: processes, builds, and the word on whether a cluster can run."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.cluster import Existing, build, errors, host, layout, mounts, processes, run
from e2e.cluster.processes import Process

ROOT = Path(__file__).parents[3]

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")


@pytest.fixture
def sleeper(tmp_path: Path) -> Process:
    """A process that has become its program: for a moment before, it has no command line."""
    made = processes.spawn(["sleep", "60.125"], log=tmp_path / "log", word="60.125")
    run.until(lambda: any(processes.cmdline(made.pid)), what="a command line", timeout=10.0)
    return made


def test_a_process_is_found_again_by_its_record(sleeper: Process, tmp_path: Path) -> None:
    sleeper.write(tmp_path / "record.json")
    again = Process.read(tmp_path / "record.json")
    assert again == sleeper
    assert sleeper.alive()
    sleeper.end()
    assert not sleeper.alive()


def test_a_pid_that_was_given_out_again_is_not_ours(sleeper: Process) -> None:
    for other in (
        dataclasses.replace(sleeper, started=sleeper.started - 1),
        dataclasses.replace(sleeper, word="another program"),
    ):
        assert not other.alive()
        other.end(grace=0.1)
        assert sleeper.alive()
    sleeper.end(grace=5.0)


def test_a_broken_record_is_no_process(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text("{")
    assert Process.read(tmp_path / "record.json") is None
    assert Process.read(tmp_path / "missing.json") is None


def test_a_mounted_folder_is_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kept").touch()
    monkeypatch.setattr(mounts, "below", lambda folder: [folder / "volume"])
    with pytest.raises(errors.ClusterError, match="still mounted"):
        mounts.delete_tree(tmp_path)
    assert (tmp_path / "kept").exists()


@needs_go
def test_concurrent_builds_build_once(tmp_path: Path) -> None:
    (tmp_path / "noetl-e2e" / "bin").mkdir(parents=True)
    half_done = tmp_path / "noetl-e2e" / "bin" / ".pause-0000"
    half_done.touch()
    argv = [sys.executable, "-m", "e2e.cluster", "build", "pause"]
    compiled = subprocess.check_output(["go", "env", "GOCACHE"], text=True).strip()
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "GOCACHE": compiled}
    builds = [
        subprocess.Popen(argv, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    words = "".join(each.communicate()[1] for each in builds)
    assert [each.returncode for each in builds] == [0, 0]
    assert words.count("built pause") == 1
    assert not half_done.exists()


@needs_go
def test_what_is_built_is_named_by_all_that_goes_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(build.SOURCES, tmp_path / "go")
    monkeypatch.setattr(build, "SOURCES", tmp_path / "go")
    pause = build.PROGRAMS["pause"]
    before = build._digest(pause)
    assert build._digest(pause) == before
    with (tmp_path / "go" / "pause" / "main.go").open("a") as file:
        file.write("// changed\n")
    assert build._digest(pause) != before


def test_it_says_why_no_cluster_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(layout.CONTEXT_VARIABLE, raising=False)
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 1000)
        assert "needs root" in str(host.supported())
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 0)
        patch.setenv("PATH", "/nowhere")
        assert host.supported() == "Go is not installed"
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "darwin")
        assert "needs Linux" in str(host.supported())


def test_it_says_what_could_not_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt = tmp_path / "apt-get"
    apt.write_text("#!/bin/sh\necho no mirror answers >&2\nexit 100\n")
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    package = host.Package("imaginary", ("no-such-command",))
    with pytest.raises(errors.Unsupported, match=r"cannot install imaginary: .*no mirror answers"):
        host.install([package])


@needs_go
def test_it_says_which_modules_could_not_be_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(errors.Unsupported, match="cannot download the modules of coredns"):
        build.program("coredns")


def test_a_named_context_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\necho "$@" >> "$0.calls"\n')
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv(layout.CONTEXT_VARIABLE, "staging")
    assert host.supported() is None
    found = Existing.named()
    assert found is not None
    found.up()
    found.down()
    with pytest.raises(errors.ClusterError, match="not made here"):
        found.stop("apiserver")
    calls = Path(f"{kubectl}.calls").read_text().splitlines()
    assert calls == ["--context staging get --raw /readyz"]
