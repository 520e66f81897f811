"""The program run in this process, its two streams apart."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from noetl_cli.main import run

VALID = """\
metadata:
  name: small
workflow:
  - step: only
    tool:
      - name: say
        kind: noop
"""


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> object:
        return json.loads(self.out)


Noetl = Callable[..., Result]


@pytest.fixture
def noetl(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Noetl:
    def call(*args: str, stdin: str | bytes = b"", prog: str = "noetl") -> Result:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        capsys.readouterr()
        code = run(args, prog)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """Writes a file in an own folder, which is the working folder."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str) -> str:
        (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
        return name

    return write


@pytest.fixture
def valid(file: Callable[[str, str], str]) -> str:
    return file("small.yaml", VALID)
