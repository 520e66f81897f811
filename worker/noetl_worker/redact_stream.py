"""Masking in a stream: a secret may come in pieces, over writes and over lines (rule K32).

Text is let go as soon as no secret can have begun in it; what might be the start of one is held
back until more comes, or the end.
"""

from __future__ import annotations

import codecs
import filecmp
import re
from pathlib import Path

from noetl_worker.needles import Beginnings
from noetl_worker.plain import ROUNDS, Traced, tightened, traced
from noetl_worker.redact import Redactor

HELD_CHARS = 64 * 1024
"""The most that is held back (but a secret of that length), whatever it may turn out to be."""
FILE_CHUNK = 1024 * 1024
OPEN_CHARS = 16
"""No escape sequence is longer."""
_OPEN = re.compile(
    r"""(?: (?:%[89A-Fa-f][0-9A-Fa-f]){1,3} (?:%[0-9A-Fa-f]?)? | %[0-9A-Fa-f]?
        | (?:\\u[0-9A-Fa-f]{4})? \\u[0-9A-Fa-f]{0,3} | \\u[0-9A-Fa-f]{4}
        | (?:\\x[0-9A-Fa-f]{2}){1,3} (?:\\x?[0-9A-Fa-f]?)? | \\x[0-9A-Fa-f]?
        | \\{1,8} | &[#a-zA-Z0-9]{0,8} | \ufffd{1,3} ) \Z""",
    re.VERBOSE,
)
"""An escape sequence at the end that may go on: it cannot be read yet."""


class StreamRedactor:
    """Masks a text that comes in pieces."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, text: str) -> str:
        """Take a piece; give what can be let go."""
        if self._redactor.is_idle:
            text, self._held = self._held + text, ""
            return text
        text = self._held + text
        cut = self._first_doubt(text)
        for start, end in self._redactor.spans(text) if cut < len(text) else ():
            if start < cut < end:
                cut = start
        self._held = text[cut:]
        return self._redactor.text(text[:cut])

    def end(self) -> str:
        """What was held back, at the end."""
        text, self._held = self._held, ""
        return self._redactor.text(text)

    def _first_doubt(self, text: str) -> int:
        """Where the first piece begins that may turn out to be the start of a secret."""
        beginnings = self._redactor.beginnings
        closed = _closed(text)
        cut = len(closed) - beginnings.literal.longest(closed)
        way = traced(closed)
        cut = min(cut, _doubt(way, beginnings.plain, cut))
        if self._redactor.tight:
            cut = min(cut, _doubt(tightened(way), beginnings.tight, cut))
        return max(cut, len(text) - max(HELD_CHARS, 8 * self._redactor.longest))


def _doubt(way: Traced, beginnings: Beginnings, cut: int) -> int:
    closed = _closed(way.text)
    at = len(closed) - beginnings.longest(closed)
    return way.span(at, len(way.text))[0] if at < len(way.text) else cut


def _closed(text: str) -> str:
    """The text without what may be the start of an escape sequence, or of several."""
    end = len(text)
    for _ in range(ROUNDS):
        is_open = _OPEN.search(text[max(0, end - OPEN_CHARS) : end])
        if is_open is None:
            break
        end = max(0, end - OPEN_CHARS) + is_open.start()
    return text[:end]


def redact_file(path: Path, redactor: Redactor) -> bool:
    """Mask the secrets in a file, piece by piece; says whether there were any. Takes its time."""
    if redactor.is_idle:
        return False
    clean = path.with_name(path.name + ".clean")
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    stream, changed = StreamRedactor(redactor), False
    sizes = [0, 0]
    with path.open("rb") as source, clean.open("wb") as target:
        while chunk := source.read(FILE_CHUNK):
            masked = stream.feed(decoder.decode(chunk)).encode("utf-8", "surrogateescape")
            sizes[0] += len(chunk)
            sizes[1] += target.write(masked)
        rest = stream.feed(decoder.decode(b"", True)) + stream.end()
        sizes[1] += target.write(rest.encode("utf-8", "surrogateescape"))
    changed = sizes[0] != sizes[1] or not filecmp.cmp(path, clean, shallow=False)
    if changed:
        clean.replace(path)
    else:
        clean.unlink()
    return changed
