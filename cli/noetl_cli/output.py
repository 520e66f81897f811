"""Where a command's words go: the result to stdout, everything for people to stderr.

One `Output` per process, made by `main` and found in the context by each command. With `-o json` a
command prints exactly one document on stdout. A reader that went away (`| head`) is no error.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, TYPE_CHECKING

from noetl_cli.errors import CliError
from noetl_cli.terminal import Style, encodable, printable, style_for

if TYPE_CHECKING:
    import typer

_META = "noetl_cli.output"


class Format(StrEnum):
    """How a command prints its result."""

    TEXT = "text"
    JSON = "json"


@dataclass(slots=True)
class Output:
    """What the global options say, and the two streams."""

    format: Format = Format.TEXT
    quiet: bool = False

    @property
    def is_json(self) -> bool:
        return self.format is Format.JSON

    @property
    def style(self) -> Style:
        return style_for(sys.stdout)

    def line(self, text: str = "") -> None:
        """A line of the result."""
        write(sys.stdout, text + "\n")

    def raw(self, text: str) -> None:
        """Text of the result exactly as it is."""
        write(sys.stdout, text)

    def document(self, value: object) -> None:
        """The one JSON document of this command."""
        write(sys.stdout, json.dumps(value, ensure_ascii=False, indent=2) + "\n")

    def note(self, text: str) -> None:
        """A word for people; not with `--quiet`."""
        if not self.quiet:
            write(sys.stderr, text + "\n")

    def warning(self, text: str, hint: str | None = None) -> None:
        """Something a person should know though the command went on."""
        if not self.quiet:
            _labelled("warning", "yellow", text, hint)

    def error(self, error: CliError) -> None:
        """The last words of a command that failed."""
        _labelled("error", "red", error.message, error.hint)
        if self.is_json:
            self.document(error.as_json())


def current(ctx: typer.Context) -> Output:
    """The process's output, made on first use."""
    made = ctx.meta.setdefault(_META, Output())
    assert isinstance(made, Output)
    return made


def _labelled(label: str, colour: str, text: str, hint: str | None) -> None:
    style = style_for(sys.stderr)
    line = style(f"{label}:", "bold", colour) + " " + printable(text) + "\n"
    if hint:
        line += style("hint:", "bold", "cyan") + " " + printable(hint) + "\n"
    write(sys.stderr, line)


def write(stream: IO[str], text: str) -> None:
    """Write and flush; a closed pipe makes the rest silent, without a change of the exit code."""
    try:
        stream.write(encodable(text, stream))
        stream.flush()
    except BrokenPipeError:
        _silence(stream)


def _silence(stream: IO[str]) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
