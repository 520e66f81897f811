"""Run a command to its end, and wait for a condition: the two things every module here does."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from e2e.cluster import errors

POLL_S = 0.1
"""How often a condition is looked at."""


def command(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    stdin: str | None = None,
) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(argv, cwd=cwd, env=env, input=stdin, text=True, capture_output=True)
    if done.returncode:
        words = " ".join(str(word) for word in argv)
        raise errors.ClusterError(f"{words}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def succeeds(argv: Sequence[str | Path]) -> bool:
    return not subprocess.run(argv, capture_output=True).returncode


def until(check: Callable[[], bool], *, what: str, timeout: float) -> None:
    """Look until `check` says yes. Raises StartError when it does not in time."""
    deadline = time.monotonic() + timeout
    while not check():
        if time.monotonic() > deadline:
            raise errors.StartError(f"{what}: not so after {timeout:g} s")
        time.sleep(POLL_S)
