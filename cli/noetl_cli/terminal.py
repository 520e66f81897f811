"""Text for a terminal: colours where they are wanted, width of characters, nothing raw from a file.

Every command prints through this. Files are hostile: a control character, a bidirectional override
or an escape sequence in one must not act on the terminal that shows it.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from typing import IO

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
}
# Controls (C0, C1), format and bidirectional characters, line separators, surrogates.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\ufffe\uffff\U000e0000-\U000e0fff]"
)


@dataclass(frozen=True, slots=True)
class Style:
    """Paints text, or leaves it as it is when colours are off."""

    enabled: bool

    def __call__(self, text: str, *names: str) -> str:
        if not self.enabled or not text or not names:
            return text
        codes = ";".join(_CODES[name] for name in names)
        return f"\x1b[{codes}m{text}\x1b[0m"


def style_for(stream: IO[str]) -> Style:
    """Colours only on a terminal, never with NO_COLOR or a dumb one."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return Style(False)
    try:
        return Style(stream.isatty())
    except ValueError:  # a closed stream
        return Style(False)


def printable(text: str) -> str:
    """One line of text with every unsafe character written as its escape."""
    return _UNSAFE.sub(_escaped, text)


def printable_lines(text: str) -> list[str]:
    """Text of several lines, each printable; tabs become two spaces."""
    return [printable(line.replace("\t", "  ")) for line in text.replace("\r\n", "\n").split("\n")]


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    short = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}.get(code)
    if short:
        return short
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def width(text: str) -> int:
    """How many cells printable text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def encodable(text: str, stream: IO[str]) -> str:
    """Text that a stream of a small encoding can take (a pipe under LC_ALL=C)."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def columns() -> int:
    """How wide the terminal is; 100 when nothing says so."""
    import shutil

    return max(40, shutil.get_terminal_size((100, 24)).columns) if sys.stdout.isatty() else 100
