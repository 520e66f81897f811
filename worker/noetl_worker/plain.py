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

_ESCAPE_MARKS = ("%", "\\", "&")
_BREAK_MARKS = ("\n", "\r", "\\")
"""Without any of these there is nothing to undo."""

_BREAK = re.compile(
    r"""(?<![ \t])[ \t]*(?:\r?\n|\r|\\{1,8}[nr])(?:[ \t]*(?:\r?\n|\r|\\{1,8}[nr]))*[ \t]*"""
)
"""Line breaks, real or escaped, with the blanks around them. Looks back, so that a long run of
blanks is read once and not from each of its places."""
_ESCAPED_BREAK = re.compile(r"\\{1,8}[nr]")
_ESCAPE = re.compile(
    r"""
      %[0-7][0-9A-Fa-f]                                                # one ASCII character
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
        before = text
        if any(mark in text for mark in _BREAK_MARKS):
            text = _joined_lines(text)
        if any(mark in text for mark in _ESCAPE_MARKS):
            text = _ESCAPE.sub(_meaning, text)
        if text == before:
            break
    return text.translate(_ONE_ALPHABET)


def _joined_lines(text: str) -> str:
    """The same as taking out every `_BREAK`, many times faster."""
    text = _ESCAPED_BREAK.sub("\n", text).replace("\r", "\n")
    if "\n" not in text:
        return text
    first, *between, last = text.split("\n")
    inner = "".join([line.strip(" \t") for line in between])
    return first.rstrip(" \t") + inner + last.lstrip(" \t")


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
        case _:
            return _ESCAPES.get(token[1], token[1])


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
        before = text
        for marks, tokens in ((_BREAK_MARKS, _BREAK), (_ESCAPE_MARKS, _ESCAPE)):
            if any(mark in text for mark in marks):
                undone, layer = _round(text, tokens)
                if undone != text:
                    layers.append(layer)
                    text = undone
        if text == before:
            break
    return Traced(text.translate(_ONE_ALPHABET), layers)


def tightened(way: Traced) -> Traced:
    """The same without any blanks."""
    text, layer = _round(way.text, _BLANKS)
    return Traced(text, [*way._layers, layer])


def _round(text: str, tokens: re.Pattern[str]) -> tuple[str, _Layer]:
    layer, pieces = _Layer(), list[str]()
    out = at = 0
    for match in tokens.finditer(text):
        if match.start() > at:
            layer.add(out, at, match.start(), True)
            pieces.append(text[at : match.start()])
            out += match.start() - at
        meaning = _meaning(match) if tokens is _ESCAPE else ""
        at = match.end()
        if meaning:
            layer.add(out, match.start(), at, False)
            pieces.append(meaning)
            out += len(meaning)
    if at < len(text):
        layer.add(out, at, len(text), True)
        pieces.append(text[at:])
    return "".join(pieces), layer
