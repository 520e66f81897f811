"""How a command ends when it can't do its work: one `error:` line, a `hint:` line, an exit code.

    CliError                    the base: a message, perhaps a hint, an exit code
    ├── UsageError              exit 2: wrong usage, a file that can't be read
    └── Unreachable             exit 5: the cluster or the database does not answer

With `-o json` the document on stdout is then `{"error": {"message", "hint"}}`. A traceback is shown
only with NOETL_DEBUG=1.
"""

from __future__ import annotations

import os
from enum import IntEnum


class Exit(IntEnum):
    """What the exit codes mean."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CANCELLED = 3
    WAITING = 4
    UNREACHABLE = 5
    INTERRUPTED = 130


class CliError(Exception):
    """A command can't go on."""

    exit_code: Exit = Exit.FAILED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def as_json(self) -> dict[str, object]:
        return {"error": {"message": self.message, "hint": self.hint}}


class UsageError(CliError):
    """Wrong usage, or a file that can't be read."""

    exit_code = Exit.USAGE


class Unreachable(CliError):
    """The cluster or the database can't be reached."""

    exit_code = Exit.UNREACHABLE


def unexpected(error: Exception) -> CliError:
    """A defect of ours, told in one line."""
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    message = f"something went wrong inside noetl: {type(error).__name__}: {first[:200]}"
    return CliError(message, "NOETL_DEBUG=1 shows where; please report it")


def debugging() -> bool:
    return os.environ.get("NOETL_DEBUG", "") not in ("", "0")
