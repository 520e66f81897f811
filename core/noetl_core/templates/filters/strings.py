"""Filters on text: case, blanks, parts, padding, and formatting with `%`."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from noetl_core.templates.data import number_text, text_of
from noetl_core.templates.errors import TemplateError
from noetl_core.templates.frame import LIST, Frame, width
from noetl_core.templates.registry import filters
from noetl_core.values import type_name

if TYPE_CHECKING:
    from noetl_core.values import Value

GROUP = "Text"

MAX_PRECISION = 100
"""Digits after the point that `format` writes."""

_DIRECTIVE = re.compile(r"%([-+ 0#]*)(\d{0,9})(?:\.(\d{0,9}))?(.?)", re.DOTALL)


def _cased(frame: Frame, text: str) -> str:
    """Charge a change of case: some characters have up to three in the other case."""
    frame.like(text, 1 if text.isascii() else 3)
    return text


@filters(GROUP, ("'abc' | upper", "ABC"))
def upper(frame: Frame, value: str) -> str:
    """The text in upper case."""
    return _cased(frame, value).upper()


@filters(GROUP, ("'ABC' | lower", "abc"))
def lower(frame: Frame, value: str) -> str:
    """The text in lower case."""
    return _cased(frame, value).lower()


@filters(GROUP, ("'new YORK' | capitalize", "New york"))
def capitalize(frame: Frame, value: str) -> str:
    """The first character in upper case, the others in lower case."""
    return _cased(frame, value).capitalize()


@filters(GROUP, ('"it\'s a long-term plan" | title', "It's A Long-Term Plan"))
def title(frame: Frame, value: str) -> str:
    """Every word with its first letter in upper case and the others in lower case."""
    frame.work(len(value))
    # At worst every other character is a word of its own.
    frame.memory(len(value) * 60)
    words = re.split(r"([-\s({\[<]+)", _cased(frame, value))
    return "".join(word[:1].upper() + word[1:].lower() for word in words)


@filters(GROUP, ("'  a b ' | trim", "a b"), ("'/a/b/' | trim('/')", "a/b"))
def trim(frame: Frame, value: str, chars: str | None = None) -> str:
    """The text without blanks (or without any of the characters `chars`) at both ends."""
    return _stripped(frame, value, chars).strip(chars)


@filters(GROUP, ("'  a ' | ltrim", "a "), ("'007' | ltrim('0')", "7"))
def ltrim(frame: Frame, value: str, chars: str | None = None) -> str:
    """Like `trim`, at the beginning only."""
    return _stripped(frame, value, chars).lstrip(chars)


@filters(GROUP, ("' a  ' | rtrim", " a"), ("'a/b//' | rtrim('/')", "a/b"))
def rtrim(frame: Frame, value: str, chars: str | None = None) -> str:
    """Like `trim`, at the end only."""
    return _stripped(frame, value, chars).rstrip(chars)


def _stripped(frame: Frame, text: str, chars: str | None) -> str:
    frame.text(len(text), width(text))
    frame.work(len(text) >> 4)
    # Each character at the ends is looked for among `chars` one after the other.
    frame.work(len(text) * len(chars or "") >> 6)
    return text


@filters(GROUP, ("'https://x.io' | removeprefix('https://')", "x.io"))
def removeprefix(frame: Frame, value: str, prefix: str) -> str:
    """The text without `prefix` at its beginning, if it stands there."""
    frame.text(len(value), width(value))
    return value.removeprefix(prefix)


@filters(GROUP, ("'data.csv' | removesuffix('.csv')", "data"))
def removesuffix(frame: Frame, value: str, suffix: str) -> str:
    """The text without `suffix` at its end, if it stands there."""
    frame.text(len(value), width(value))
    return value.removesuffix(suffix)


@filters(GROUP, ("'a-b-c' | replace('-', '+')", "a+b+c"), ("'a-b-c' | replace('-', '', 1)", "ab-c"))
def replace(frame: Frame, value: str, old: str, new: str, count: int = -1) -> str:
    """Every `old` (or the first `count`) replaced by `new`."""
    frame.work(len(value) >> 4)
    found = value.count(old)
    found = found if count < 0 else min(found, count)
    frame.text(len(value) + found * len(new), max(width(value), width(new)))
    frame.work(found)
    return value.replace(old, new, min(count, sys.maxsize))


@filters(
    GROUP,
    ("'a,b,c' | split(',')", ["a", "b", "c"]),
    ("' two  words ' | split", ["two", "words"]),
    ("'k=v=w' | split('=', 1)", ["k", "v=w"]),
)
def split(frame: Frame, value: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    """The parts between `sep`, at most `maxsplit` times; without `sep` the words."""
    if sep == "":
        raise TemplateError("sep of split cannot be empty", code=TemplateError.VALUE)
    frame.work(len(value) >> 4)
    parts = len(value) // 2 + 1 if sep is None else value.count(sep) + 1
    parts = parts if maxsplit < 0 else min(parts, maxsplit + 1)
    _charge_parts(frame, value, parts)
    return value.split(sep, min(maxsplit, sys.maxsize))


@filters(GROUP, ("'a\\nb\\n' | lines", ["a", "b"]))
def lines(frame: Frame, value: str) -> list[str]:
    """The lines of the text, without their ends."""
    frame.work(len(value) >> 3)
    _charge_parts(frame, value, value.count("\n") + 1)
    return value.removesuffix("\n").split("\n") if value else []


def _charge_parts(frame: Frame, text: str, parts: int) -> None:
    """Charge a list of `parts` texts cut out of `text`."""
    frame.items(parts)
    frame.memory(parts * LIST + len(text) * width(text))


@filters(GROUP, ("'one two  three' | wordcount", 3))
def wordcount(frame: Frame, value: str) -> int:
    """The number of words."""
    return len(re.findall(r"\w+", _counted(frame, value)))


def _counted(frame: Frame, text: str) -> str:
    frame.items(len(text) // 2)
    frame.memory(len(text) * 32)
    return text


@filters(
    GROUP,
    ("'foo bar baz qux' | truncate(9)", "foo..."),
    ("'foo bar baz qux' | truncate(9, true)", "foo ba..."),
    ("'foo bar baz qux' | truncate(11)", "foo bar baz qux"),
    ("'foo bar baz qux' | truncate(11, leeway=0)", "foo bar..."),
)
def truncate(
    frame: Frame,
    value: str,
    length: int = 255,
    killwords: bool = False,
    end: str = "...",
    leeway: int = 5,
) -> str:
    """At most `length` characters, `end` included; a text that is only `leeway` longer stays whole.

    Cuts between words unless `killwords`.
    """
    if length < len(end) or leeway < 0:
        raise TemplateError(
            "length of truncate must have room for its end", code=TemplateError.VALUE
        )
    frame.text(len(value) + len(end))
    if len(value) <= length + leeway:
        return value
    kept = value[: length - len(end)]
    return kept + end if killwords else kept.rsplit(" ", 1)[0] + end


@filters(GROUP, ("'a\\nb' | indent(2)", "a\n  b"), ("'a\\nb' | indent(2, true)", "  a\n  b"))
def indent(
    frame: Frame, value: str, width: int = 4, first: bool = False, blank: bool = False
) -> str:
    """Every line moved right by `width` blanks; the `first` and `blank` ones only if asked."""
    frame.work(len(value) >> 3)
    count = value.count("\n") + 1
    _charge_parts(frame, value, count)
    frame.text(len(value) + count * max(0, width))
    margin = " " * width
    written = [margin + line if blank or line.strip() else line for line in value.split("\n")]
    if not first:
        written[0] = value.split("\n", 1)[0]
    return "\n".join(written)


@filters(GROUP, ("'ab' | center(6)", "  ab  "))
def center(frame: Frame, value: str, width: int = 80) -> str:
    """The text in the middle of `width` characters."""
    return _padded(frame, value, width).center(width)


@filters(GROUP, ("'ab' | ljust(4)", "ab  "), ("'ab' | ljust(4, '.')", "ab.."))
def ljust(frame: Frame, value: str, width: int, fill: str = " ") -> str:
    """The text at the left of `width` characters, the rest filled with `fill`."""
    return _padded(frame, value, width, fill).ljust(width, fill)


@filters(GROUP, ("'ab' | rjust(4)", "  ab"), ("7 | rjust(3, '0')", "007"))
def rjust(frame: Frame, value: str, width: int, fill: str = " ") -> str:
    """The text at the right of `width` characters, the rest filled with `fill`."""
    return _padded(frame, value, width, fill).rjust(width, fill)


def _padded(frame: Frame, text: str, wide: int, fill: str = " ") -> str:
    if len(fill) != 1:
        raise TemplateError("fill must be one character", code=TemplateError.VALUE)
    frame.text(max(len(text), wide))
    return text


@filters(GROUP, ("42 | string", "42"), ("[1, 'a', none] | string", '[1, "a", null]'))
def string(frame: Frame, value: Value) -> str:
    """The value as it stands inside a text: numbers plain, lists and mappings as JSON."""
    return text_of(frame, value)


@filters(
    GROUP,
    ("'%s has %d' | format('x', 3)", "x has 3"),
    ("'%05.1f%%' | format(99.25)", "099.2%"),
)
def format_(frame: Frame, value: str, *values: Value) -> str:
    """`%s`, `%d`, `%f`, `%e`, `%g`, `%x`, `%o` and `%%` with flags, width and precision.

    There are as many values as directives.
    """
    frame.work(len(value) >> 2)
    left = list(reversed(values))
    pieces: list[str] = []
    end = 0
    for found in _DIRECTIVE.finditer(value):
        pieces.append(value[end : found.start()])
        end = found.end()
        pieces.append("%" if found[0] == "%%" else _directive(frame, found, left))
        frame.text(len(pieces[-1]) + len(pieces[-2]))
        frame.work(4)
    if left:
        raise TemplateError("format has more values than directives", code=TemplateError.VALUE)
    frame.text(len(value))
    pieces.append(value[end:])
    frame.text(sum(map(len, pieces)))
    return "".join(pieces)


def _directive(frame: Frame, found: re.Match[str], left: list[Value]) -> str:
    """One `%…` with its value."""
    flags, wide, precise, letter = found[1], found[2], found[3], found[4]
    if letter not in ("s", "d", "i", "f", "F", "e", "E", "g", "G", "x", "X", "o"):
        message = f"format does not know `{found[0][:20]}`; write %% for a percent sign"
        raise TemplateError(message, code=TemplateError.VALUE)
    if not left:
        raise TemplateError("format has fewer values than directives", code=TemplateError.VALUE)
    given = left.pop()
    frame.text(int(wide or 0))
    if letter == "s":
        text = text_of(frame, given)
        text = text if precise is None else text[: int(precise or 0)]
        return text.ljust(int(wide or 0)) if "-" in flags else text.rjust(int(wide or 0))
    if given.__class__ not in (int, float):
        raise TemplateError(f"`{found[0]}` takes a number, not {type_name(given)}")
    return _formatted_number(frame, found[0], given, int(precise or 0), letter)


def _formatted_number(
    frame: Frame, directive: str, given: Value, precision: int, letter: str
) -> str:
    if precision > MAX_PRECISION:
        message = f"`{directive}` has a precision over {MAX_PRECISION}"
        raise TemplateError(message, code=TemplateError.VALUE)
    assert isinstance(given, int | float)
    if letter in "xXo" and isinstance(given, float):
        raise TemplateError(f"`{directive}` takes a whole number")
    if isinstance(given, int):
        number_text(frame, given)
        frame.text(given.bit_length())
    try:
        return directive % given
    except (OverflowError, ValueError):
        raise TemplateError(
            f"`{directive}` cannot write this number", code=TemplateError.VALUE
        ) from None
