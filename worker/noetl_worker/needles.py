"""The forms in which a secret may show up in a text (rules K32, K45).

Two sorts: literal ones, sought in a text as it stands, and plain ones, sought in its plain form
(see `plain`). Base64 is known by its middle: of a secret inside something longer, the characters at
the edges also depend on what stands beside it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from noetl_worker.plain import plain, tight

MIN_CHARS = 4
"""Shorter values are no secrets: masking them would make texts unreadable."""


@dataclass(frozen=True, slots=True)
class Needle:
    """A text to look for; `before` and `after`: a character beside it belongs to it, too."""

    text: str
    before: bool = False
    after: bool = False


def literal_forms(value: str) -> set[str]:
    """How a secret looks where no encoding is undone."""
    escaped = json.dumps(value)[1:-1]
    forms = {value, escaped, json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    return {form for form in forms if len(form) >= MIN_CHARS}


def plain_forms(value: str) -> Iterator[Needle]:
    """What to look for in plain text: the secret itself, its base64 and its hex."""
    yield from _long_enough(Needle(plain(value.strip())))
    content = value.encode("utf-8", "surrogatepass")
    for offset in range(3):
        yield from _long_enough(_base64_middle(content, offset))
    yield Needle(content.hex())
    yield Needle(content.hex().upper())


def tight_forms(value: str) -> set[str]:
    """What to look for where blanks do not count: secrets of several words."""
    words = tight(value)
    return {words} if len(value.split()) > 1 and len(words) >= 2 * MIN_CHARS else set()


def _long_enough(needle: Needle) -> Iterable[Needle]:
    return (needle,) if len(needle.text) >= MIN_CHARS else ()


def _base64_middle(content: bytes, offset: int) -> Needle:
    """The characters of base64 that come from the content alone, `offset` bytes after a triple."""
    encoded = base64.b64encode(bytes(offset) + content).decode()
    first = (0, 2, 3)[offset]
    bits = 8 * (offset + len(content))
    return Needle(plain(encoded[first : bits // 6]), before=offset > 0, after=bits % 6 > 0)


def parts(value: str) -> set[str]:
    """A secret, and each of its lines: they may be printed one by one."""
    found = {value, *(line.strip() for line in value.splitlines())}
    return {part for part in found if len(part) >= MIN_CHARS}


class Beginnings:
    """Tells how much at the end of a text may be the beginning of a form."""

    def __init__(self, forms: Iterable[str]) -> None:
        self._by_char: dict[str, list[str]] = {}
        self._by_two: dict[str, list[str]] = {}
        self._longest = 0
        for form in forms:
            self._by_char.setdefault(form[0], []).append(form)
            self._by_two.setdefault(form[:2], []).append(form)
            self._longest = max(self._longest, len(form))

    def longest(self, text: str) -> int:
        """The most characters at the end of a text that a form begins with."""
        size = len(text)
        for at in range(max(0, size - self._longest + 1), size - 1):
            for form in self._by_two.get(text[at : at + 2], ()):
                if form.startswith(text[at:]):
                    return size - at
        return 1 if text[-1:] in self._by_char else 0


@dataclass(frozen=True, slots=True)
class AllBeginnings:
    """Of the three sorts of forms."""

    literal: Beginnings
    plain: Beginnings
    tight: Beginnings
