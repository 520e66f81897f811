"""Authors' files: read whole, bounded, from a path, a folder or stdin (`-`).

What can't be read is wrong usage (exit 2); what a file holds is never judged here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from noetl_cli.errors import UsageError

STDIN = "-"
_SUFFIXES = (".yaml", ".yml")
_MOST = 8 * 1024 * 1024 + 1
"""One byte more than the loader takes: enough for it to refuse a larger file."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file's name as the user gave it, and its bytes."""

    name: str
    data: bytes

    @property
    def label(self) -> str:
        """The name in messages for people."""
        return "<stdin>" if self.name == STDIN else self.name


def read_all(names: Iterable[str]) -> Iterator[SourceFile]:
    """Every file named; a folder stands for the YAML files in it."""
    for name in names:
        if name != STDIN and Path(name).is_dir():
            yield from (read(inner) for inner in _in_folder(name))
        else:
            yield read(name)


def read(name: str) -> SourceFile:
    """One file's bytes, no more than the loader would take."""
    if name == STDIN:
        return SourceFile(name, sys.stdin.buffer.read(_MOST))
    try:
        with open(name, "rb") as file:
            return SourceFile(name, file.read(_MOST))
    except FileNotFoundError:
        raise UsageError(f"{name}: there is no such file", _near(name)) from None
    except IsADirectoryError:
        raise UsageError(f"{name}: is a folder, not a file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{name}: can't be read: {reason}") from None


def _in_folder(name: str) -> list[str]:
    try:
        found = sorted(p for p in Path(name).iterdir() if p.suffix in _SUFFIXES and p.is_file())
    except OSError as error:
        raise UsageError(f"{name}: can't be read: {error.strerror}") from None
    if not found:
        raise UsageError(f"{name}: the folder holds no .yaml or .yml file")
    return [str(path) for path in found]


def _near(name: str) -> str | None:
    """A file beside it with nearly that name."""
    from noetl_core.problems import nearest

    folder = Path(name).parent
    try:
        beside = [p.name for p in folder.iterdir() if p.suffix in _SUFFIXES]
    except (OSError, ValueError):
        return None
    close = nearest(Path(name).name, beside)
    return f"did you mean `{folder / close}`?" if close else None
