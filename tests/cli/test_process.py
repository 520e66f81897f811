"""The real program in a process of its own: streams, colours, pipes, time."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
EXAMPLE = str(Path(__file__).parents[2] / "examples" / "paginate.yaml")


def environment(**extra: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "PYTHONDONTWRITEBYTECODE")}
    return {**kept, "TERM": "xterm-256color", **extra}


def noetl(*args: str, program: str = "noetl", **extra: str) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / program), *args]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment(**extra), timeout=60, check=False
    )


def on_a_terminal(*args: str, **extra: str) -> str:
    """What the program writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [str(BIN / "noetl"), *args], stdout=theirs, stderr=theirs, env=environment(**extra)
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        written += piece
    process.wait(60)
    os.close(ours)
    return written.decode()


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    path = tmp_path / "wrong.yaml"
    path.write_text("metadata: {name: x}\nworkflow: []\nvars: {}\n")
    return str(path)


def test_colours_only_on_a_terminal_and_never_with_NO_COLOR(wrong: str) -> None:
    assert "\x1b[" in on_a_terminal("check", wrong)
    assert "\x1b[" not in on_a_terminal("check", wrong, NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal("check", wrong, TERM="dumb")
    assert "\x1b[" not in noetl("check", wrong).stdout
    assert "\x1b[" not in on_a_terminal("check", wrong, "-o", "json")


def test_json_is_the_only_thing_on_stdout(wrong: str) -> None:
    done = noetl("check", wrong, EXAMPLE, "-o", "json")
    assert done.returncode == 1
    assert [entry["valid"] for entry in json.loads(done.stdout)] == [False, True]


def test_the_plugin_of_kubectl_is_the_same_program() -> None:
    done = noetl("check", EXAMPLE, program="kubectl-noetl")
    assert done.returncode == 0
    assert noetl("chek", program="kubectl-noetl").stderr.startswith("error: unknown command `chek`")
    assert noetl("-h", program="kubectl-noetl").stdout.startswith("Usage: kubectl noetl COMMAND")


def test_a_reader_that_went_away_is_no_error(wrong: str) -> None:
    command = [str(BIN / "noetl"), "graph", EXAMPLE, "--format", "svg"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), err) == (0, b"")


def test_text_that_the_encoding_lacks_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("métadata: {name: 日本}\n", encoding="utf-8")
    done = noetl("check", str(path), PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert done.returncode == 1
    assert "\\xe9" in done.stdout


def test_completion_of_the_shell_is_there() -> None:
    done = noetl(_NOETL_COMPLETE="complete_bash", COMP_WORDS="noetl ch", COMP_CWORD="1")
    assert "check" in done.stdout.split()
    options = noetl(_NOETL_COMPLETE="complete_bash", COMP_WORDS="noetl check --st", COMP_CWORD="2")
    assert "--strict" in options.stdout.split()


def quickest(*args: str) -> float:
    """The best of some runs: what the program costs, not what else the machine does."""
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        assert noetl(*args).returncode == 0
        best = min(best, time.perf_counter() - start)
    return best


def test_help_is_there_in_a_quarter_of_a_second() -> None:
    assert quickest("--help") < 0.25


def test_a_small_file_is_checked_within_0_6_seconds() -> None:
    hello = str(Path(EXAMPLE).parent / "hello.yaml")
    assert quickest("check", hello) < 0.6
