"""`noetl` as real processes, for the tests of local runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONG_S = 120
"""Far beyond what anything takes, even on a busy machine."""


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Process:
    """A command under way."""

    def __init__(self, argv: list[str], folder: Path) -> None:
        self._process = subprocess.Popen(
            argv,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self._said: list[str] = []

    def until(self, words: str) -> str:
        """The first line for people that holds these words."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said.append(line)
            if words in line:
                return line
        raise AssertionError(f"it ended without `{words}`: {''.join(self._said)}")

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> Done:
        out, err = self._process.communicate(timeout=LONG_S)
        return Done(self._process.returncode, out, "".join(self._said) + err)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


class Cli:
    """`noetl` in a folder, on a data folder."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder, self.data = folder, data
        self._started: list[Process] = []

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return name

    def argv(self, command: str, *args: str) -> list[str]:
        local = [] if command == "run" else ["--local"]
        data = ["--data", str(self.data)]
        return [sys.executable, "-m", "noetl_cli.main", command, *args, *local, *data]

    def start(self, command: str, *args: str) -> Process:
        process = Process(self.argv(command, *args), self.folder)
        self._started.append(process)
        return process

    def __call__(self, command: str, *args: str) -> Done:
        return self.start(command, *args).wait()

    def json(self, command: str, *args: str) -> Any:
        done = self(command, *args, "-o", "json")
        assert done.out, done.err
        return done.json

    def end(self) -> None:
        for process in self._started:
            process.end()


def environment() -> dict[str, str]:
    hidden = ("NOETL_DEBUG", "XDG_DATA_HOME")
    return {name: value for name, value in os.environ.items() if name not in hidden}
