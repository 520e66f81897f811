"""Text with its wrappings taken off, and the way back to where each character stood.

`redact` looks for secrets in plain text: URL encoding, JSON and Python escapes, HTML entities are
undone, line breaks (real or escaped, with the blanks around them) vanish, and the two alphabets of
base64 become one. Encodings may be nested, so this is repeated; a secret is treated alike, so both
meet in the same plain form whatever happened to the secret on its way.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from dataclasses import dataclass, field

ROUNDS = 5
"""How many layers of encoding are taken off; bounds the work on hostile text."""

_MARKS = ("%", "\\", "\n", "\r", "&")
"""Without any of these there is nothing to undo."""

_TOKEN = re.compile(
    r"""
      [\ \t]* (?: \r?\n | \r | \\+r\\+n | \\+[nr] )
      (?: [\ \t]* (?: \r?\n | \r | \\+[nr] ) )* [\ \t]*                # line breaks
    | %[0-7][0-9A-Fa-f]                                                # one ASCII character
    | (?: %[89A-Fa-f][0-9A-Fa-f] )+                                    # characters beyond ASCII
    | (?: \\u[0-9A-Fa-f]{4} )+
    | (?: \\x[0-9A-Fa-f]{2} )+
    | \\[^nrux]
    | &(?: amp|lt|gt|quot|apos|\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6} );
    """,
    re.VERBOSE,
)
_ONE_ALPHABET = str.maketrans("+-_", "  /")
"""`+` is a blank in forms and `-` in the URL-safe base64; `_` is its `/`."""


_BLANKS = re.compile(r"[ \t]+")


def tight(text: str) -> str:
    """The plain form without any blanks: a text that is wrapped loses those at its line ends."""
    return _BLANKS.sub("", plain(text))


def plain(text: str) -> str:
    """The plain form of a text."""
    for _ in range(ROUNDS):
        if not any(mark in text for mark in _MARKS):
            break
        undone = _TOKEN.sub(_meaning, text)
        if undone == text:
            break
        text = undone
    return text.translate(_ONE_ALPHABET)


def _meaning(match: re.Match[str]) -> str:
    """What one token stands for."""
    token = match.group()
    match token[0]:
        case "%":
            return bytes.fromhex(token.replace("%", "")).decode("utf-8", "replace")
        case "&":
            return html.unescape(token)
        case "\\" if token[1] == "u":
            units = bytes.fromhex(token.replace("\\u", ""))
            return units.decode("utf-16-be", "replace")
        case "\\" if token[1] == "x":
            return _bytes_text(bytes.fromhex(token.replace("\\x", "")))
        case "\\" if len(token) == 2 and token[1] not in "nr":
            return _ESCAPES.get(token[1], token[1])
        case _:
            return ""


_ESCAPES = {"t": "\t", "b": "\b", "f": "\f"}


def _bytes_text(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


@dataclass(slots=True)
class _Layer:
    """One round: where pieces of its output came from in its input."""

    out_at: list[int] = field(default_factory=list)
    in_at: list[int] = field(default_factory=list)
    in_end: list[int] = field(default_factory=list)
    same: list[bool] = field(default_factory=list)

    def add(self, out: int, start: int, end: int, same: bool) -> None:
        self.out_at.append(out)
        self.in_at.append(start)
        self.in_end.append(end)
        self.same.append(same)

    def start(self, at: int) -> int:
        piece = bisect_right(self.out_at, at) - 1
        return self.in_at[piece] + (at - self.out_at[piece] if self.same[piece] else 0)

    def end(self, at: int) -> int:
        """The end in the input of what ends at `at` in the output."""
        piece = bisect_right(self.out_at, at - 1) - 1
        if not self.same[piece]:
            return self.in_end[piece]
        return self.in_at[piece] + at - self.out_at[piece]


@dataclass(slots=True)
class Traced:
    """A text in plain form that knows where its characters came from."""

    text: str
    _layers: list[_Layer]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters from `start` to before `end` stood in the text as it was."""
        for layer in reversed(self._layers):
            start, end = layer.start(start), layer.end(end)
        return start, end


def traced(text: str) -> Traced:
    """The plain form of a text, with the way back."""
    layers: list[_Layer] = []
    for _ in range(ROUNDS):
        if not any(mark in text for mark in _MARKS):
            break
        undone, layer = _round(text)
        if undone == text:
            break
        layers.append(layer)
        text = undone
    return Traced(text.translate(_ONE_ALPHABET), layers)


def tightened(way: Traced) -> Traced:
    """The same without any blanks."""
    text, layer = _round(way.text, _BLANKS)
    return Traced(text, [*way._layers, layer])


def _round(text: str, tokens: re.Pattern[str] = _TOKEN) -> tuple[str, _Layer]:
    layer, pieces = _Layer(), list[str]()
    out = at = 0
    for match in tokens.finditer(text):
        if match.start() > at:
            layer.add(out, at, match.start(), True)
            pieces.append(text[at : match.start()])
            out += match.start() - at
        meaning, at = _meaning(match), match.end()
        if meaning:
            layer.add(out, match.start(), at, False)
            pieces.append(meaning)
            out += len(meaning)
    if at < len(text):
        layer.add(out, at, len(text), True)
        pieces.append(text[at:])
    return "".join(pieces), layer
