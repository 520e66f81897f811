"""The offending line of a file with a caret below it, as compilers show it.

Lines are those YAML counts, which knows more line breaks than Python's `\\n`. Tabs and wide
characters keep the caret in its column; a long line is cut around it; control characters are shown
as escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from noetl_cli.terminal import Style, printable, width

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_LONGEST_MARK = 200
_WORD = re.compile(r"[^\s:,\]\[{}#]+")


@dataclass(frozen=True, slots=True)
class Lines:
    """A file's text as numbered lines."""

    lines: tuple[str, ...]

    @classmethod
    def of(cls, data: bytes) -> Lines:
        text = data.decode("utf-8-sig", "replace")
        return cls(tuple(_BREAK.split(text)))

    def get(self, number: int) -> str | None:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else None


def excerpt(
    lines: Lines, line: int, column: int, wide: int, style: Style, colour: str
) -> Iterable[str]:
    """The gutter, the line, and the caret under what is wrong."""
    written = lines.get(line)
    if written is None:
        return
    gutter = len(str(line))
    bar = style("|", "blue")
    start = min(max(column - 1, 0), len(written))
    end = _mark_end(written, start)
    shown, before, marked = _window(written, start, end, max(20, wide - gutter - 4))
    yield f"{' ' * gutter} {bar}"
    yield f"{style(str(line), 'blue')} {bar} {shown}".rstrip()
    yield f"{' ' * gutter} {bar} {' ' * before}{style('^' * marked, 'bold', colour)}"


def _mark_end(written: str, start: int) -> int:
    """Where what begins at `start` ends: a quoted text, a template, a word, or one character."""
    rest = written[start:]
    if rest[:1] in ("'", '"'):
        closing = rest.find(rest[0], 1)
        return start + (closing + 1 if closing > 0 else len(rest.rstrip()))
    if rest.startswith("{{"):
        closing = rest.find("}}")
        return start + (closing + 2 if closing > 0 else len(rest.rstrip()))
    word = _WORD.match(rest)
    return start + (word.end() if word else 1)


def _shown(text: str) -> str:
    return printable(text.replace("\t", "    "))


def _window(written: str, start: int, end: int, room: int) -> tuple[str, int, int]:
    """A piece of the line around the mark: its text, the cells before the mark, the mark's own."""
    end = min(end, start + _LONGEST_MARK)
    left, right = 0, len(written)
    if width(_shown(written[:4000])) > room or len(written) > 4000:
        left = max(0, start - room // 3)
        right = min(len(written), left + room)
        while right > start + 1 and width(_shown(written[left:right])) > room - 2:
            right -= max(1, (right - start) // 8)
    head = "…" if left else ""
    tail = "…" if right < len(written) else ""
    shown = head + _shown(written[left:right]) + tail
    before = width(head + _shown(written[left:start]))
    marked = max(1, width(_shown(written[start : min(end, right)])))
    return shown, before, marked
