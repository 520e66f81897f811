"""Regular expressions by RE2, whose time is bounded by pattern and text and never explodes.

Patterns are RE2's: no back references, no look-around. They are bounded in length and in the size
of the compiled program, and every search is charged for the worst case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

import re2

from noetl_core.templates.cache import Cache
from noetl_core.templates.errors import TemplateError
from noetl_core.templates.filters.common import encoded
from noetl_core.templates.frame import LIST
from noetl_core.templates.limits import LIMITS
from noetl_core.templates.registry import filters, tests
from noetl_core.values import type_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from noetl_core.templates.frame import Frame
    from noetl_core.values import Value

GROUP = "Regular expressions"

_SEARCH = 30
"""Work of one search besides its way through the text."""


class _Found(Protocol):
    """A match of RE2, on bytes."""

    def span(self, group: int = 0) -> tuple[int, int]: ...
    def group(self, group: int = 0) -> bytes | None: ...


class _Engine(Protocol):
    """What we use of RE2's patterns."""

    groups: int
    groupindex: dict[bytes, int]
    programsize: int
    reverseprogramsize: int

    def search(self, text: bytes, pos: int = 0) -> _Found | None: ...
    def match(self, text: bytes) -> _Found | None: ...
    def fullmatch(self, text: bytes) -> _Found | None: ...


class _Pattern(NamedTuple):
    engine: _Engine
    step: int
    """Work for 64 bytes of text in the worst case."""
    groups: int
    names: dict[str, int]


_cache: Cache[_Pattern] = Cache(4 * LIMITS.pattern_chars)


def _compile(frame: Frame, pattern: str, ignorecase: bool) -> _Pattern:
    written = f"(?i){pattern}" if ignorecase else pattern
    found = _cache.get(written)
    if found is None:
        frame.work(2_000)
        found = _compiled(encoded(frame, written[: LIMITS.pattern_chars + 8]), len(pattern))
        _cache.put(written, found)
    return found


def _compiled(pattern: bytes, length: int) -> _Pattern:
    if length > LIMITS.pattern_chars:
        message = f"the pattern is longer than {LIMITS.pattern_chars:,} characters"
        raise TemplateError(message, code=TemplateError.BUDGET)
    options = re2.Options()
    options.max_mem = LIMITS.pattern_memory
    options.log_errors = False
    try:
        engine = cast("_Engine", re2.compile(pattern, options))
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise TemplateError(
            f"the pattern is not valid: {reason[:200]}",
            code=TemplateError.VALUE,
            hint="patterns are RE2's: no back references and no look-around",
        ) from None
    size = max(engine.programsize, engine.reverseprogramsize)
    if size > LIMITS.pattern_program:
        raise TemplateError("the pattern is too large", code=TemplateError.BUDGET)
    names = {name.decode(): number for name, number in engine.groupindex.items()}
    return _Pattern(engine, 2 + size, engine.groups, names)


def _charge(frame: Frame, pattern: _Pattern, length: int) -> None:
    frame.work(_SEARCH + pattern.groups + (length * pattern.step >> 6))


def _each(frame: Frame, pattern: _Pattern, data: bytes) -> Iterator[_Found]:
    """All matches from left to right; an empty one moves on by one character."""
    position = 0
    while position <= len(data):
        # A search may look at all the rest of the text even when it finds something near.
        _charge(frame, pattern, len(data) - position)
        found = pattern.engine.search(data, position)
        if found is None:
            return
        yield found
        start, end = found.span()
        position = end if end > start else _next_character(data, end)


def _next_character(data: bytes, position: int) -> int:
    position += 1
    while position < len(data) and data[position] & 0xC0 == 0x80:
        position += 1
    return position


def _group(frame: Frame, pattern: _Pattern, found: _Found | None, group: Value) -> str | None:
    """One group of a match as text; null where there is no match or it took no part."""
    if isinstance(group, str):
        number = pattern.names.get(group, -1)
    else:
        number = group if isinstance(group, int) else -1
    if not 0 <= number <= pattern.groups:
        raise TemplateError(f"the pattern has no group {group!r}"[:200], code=TemplateError.VALUE)
    part = found.group(number) if found else None
    return None if part is None else _text(frame, part)


def _text(frame: Frame, data: bytes) -> str:
    frame.text(len(data))
    # A pattern may match single bytes (`\C`), and half a character is no text.
    return data.decode(errors="replace")


@filters(
    GROUP,
    ("'order 66, 7 items' | regex_search('[0-9]+')", "66"),
    ("'key=value' | regex_search('(\\w+)=(\\w+)', group=2)", "value"),
    ("'abc' | regex_search('[0-9]')", None),
)
def regex_search(
    frame: Frame, value: str, pattern: str, group: Value = 0, ignorecase: bool = False
) -> str | None:
    """The first part of the text that matches, or one group of it by number or name; else null."""
    compiled = _compile(frame, pattern, ignorecase)
    data = encoded(frame, value)
    _charge(frame, compiled, len(data))
    return _group(frame, compiled, compiled.engine.search(data), group)


@filters(
    GROUP,
    ("'2024-05-01' | regex_match('(\\d+)-(\\d+)', 1)", "2024"),
    ("'x2024' | regex_match('[0-9]+')", None),
)
def regex_match(
    frame: Frame, value: str, pattern: str, group: Value = 0, ignorecase: bool = False
) -> str | None:
    """Like `regex_search`, but the match must begin where the text begins."""
    compiled = _compile(frame, pattern, ignorecase)
    data = encoded(frame, value)
    _charge(frame, compiled, len(data))
    return _group(frame, compiled, compiled.engine.match(data), group)


@filters(GROUP, ("'abc' | regex_test('^a')", True), ("'abc' | regex_test('B', true)", True))
def regex_test(frame: Frame, value: str, pattern: str, ignorecase: bool = False) -> bool:
    """Whether a part of the text matches."""
    return _tried(frame, value, pattern, ignorecase, "search")


@filters(
    GROUP,
    ("'a1b22' | regex_findall('[0-9]+')", ["1", "22"]),
    ("'a=1,b=2' | regex_findall('(\\w)=(\\w)')", [["a", "1"], ["b", "2"]]),
)
def regex_findall(frame: Frame, value: str, pattern: str, ignorecase: bool = False) -> list[Value]:
    """All matches: the whole of each, or its one group, or the list of its groups."""
    compiled = _compile(frame, pattern, ignorecase)
    results: list[Value] = []
    for found in _each(frame, compiled, encoded(frame, value)):
        frame.memory(LIST * (compiled.groups + 2))
        if compiled.groups > 1:
            groups = range(1, compiled.groups + 1)
            results.append([_group(frame, compiled, found, number) or "" for number in groups])
        else:
            results.append(_group(frame, compiled, found, compiled.groups) or "")
    return results


@filters(
    GROUP,
    ("'2024-05-01' | regex_replace('-', '/')", "2024/05/01"),
    ("'john doe' | regex_replace('(\\w+) (\\w+)', '\\\\2, \\\\1')", "doe, john"),
    ("'a1b2' | regex_replace('[0-9]', '', count=1)", "ab2"),
)
def regex_replace(
    frame: Frame,
    value: str,
    pattern: str,
    replacement: str = "",
    ignorecase: bool = False,
    count: int = 0,
) -> str:
    r"""Every match (or the first `count`) replaced; `\1` to `\9` and `\g<name>` are its groups."""
    compiled = _compile(frame, pattern, ignorecase)
    data = encoded(frame, value)
    parts = _replacement(frame, compiled, replacement)
    pieces: list[bytes] = []
    end = 0
    for done, found in enumerate(_each(frame, compiled, data), 1):
        start, following = found.span()
        _add(frame, pieces, data[end:start])
        for part in parts:
            _add(frame, pieces, part if isinstance(part, bytes) else found.group(part) or b"")
        end = following
        if done == count:
            break
    _add(frame, pieces, data[end:])
    frame.memory(sum(map(len, pieces)))
    return _text(frame, b"".join(pieces))


def _add(frame: Frame, pieces: list[bytes], piece: bytes) -> None:
    if piece:
        frame.work(1)
        frame.memory(len(piece) + 48)
        pieces.append(piece)


def _replacement(frame: Frame, pattern: _Pattern, text: str) -> list[bytes | int]:
    """A replacement as plain bytes and numbers of groups, in turn."""
    frame.work(len(text))
    frame.memory(len(text) * 8)
    parts: list[bytes | int] = []
    plain, rest = "", text
    while rest:
        before, slash, rest = rest.partition("\\")
        plain += before
        if not slash:
            break
        if rest[:1].isdecimal() and rest[0].isascii():
            name, rest = rest[0], rest[1:]
        elif rest.startswith("g<") and ">" in rest:
            name, _, rest = rest[2:].partition(">")
        else:
            plain, rest = plain + (rest[:1] if rest[:1] == "\\" else "\\" + rest[:1]), rest[1:]
            continue
        parts += (encoded(frame, plain), _group_number(pattern, name))
        plain = ""
        _bound_parts(parts)
    parts.append(encoded(frame, plain))
    return parts


def _bound_parts(parts: list[bytes | int]) -> None:
    if len(parts) > 2 * LIMITS.pattern_chars:
        raise TemplateError("the replacement has too many groups", code=TemplateError.BUDGET)


def _group_number(pattern: _Pattern, name: str) -> int:
    digits = name.isdecimal() and name.isascii() and len(name) < 5
    number = int(name) if digits else pattern.names.get(name, -1)
    if not 0 <= number <= pattern.groups:
        raise TemplateError(f"the pattern has no group {name[:80]!r}", code=TemplateError.VALUE)
    return number


@filters(GROUP, ("'a, b;c' | regex_split('[,;] *')", ["a", "b", "c"]))
def regex_split(frame: Frame, value: str, pattern: str, maxsplit: int = 0) -> list[Value]:
    """The parts of the text between matches, cut at most `maxsplit` times."""
    compiled = _compile(frame, pattern, False)
    data = encoded(frame, value)
    parts: list[Value] = []
    end = 0
    for found in _each(frame, compiled, data):
        start, following = found.span()
        if following == start:
            continue
        frame.memory(LIST * 2)
        parts.append(_text(frame, data[end:start]))
        end = following
        if len(parts) == maxsplit:
            break
    parts.append(_text(frame, data[end:]))
    return parts


@filters(GROUP, ("'1.5*x' | regex_escape", "1\\.5\\*x"))
def regex_escape(frame: Frame, value: str) -> str:
    """The text as a pattern that matches nothing but itself."""
    data = encoded(frame, value)
    frame.memory(len(data) * 4)
    escaped = re2.escape(data)
    if not isinstance(escaped, bytes):
        raise TypeError(type_name(escaped))
    return _text(frame, escaped)


def _tried(frame: Frame, value: str, pattern: str, ignorecase: bool, how: str) -> bool:
    compiled = _compile(frame, pattern, ignorecase)
    data = encoded(frame, value)
    _charge(frame, compiled, len(data))
    if how == "search":
        return compiled.engine.search(data) is not None
    if how == "match":
        return compiled.engine.match(data) is not None
    return compiled.engine.fullmatch(data) is not None


@tests("Text", ("'abc' is match('ab')", True), ("'xabc' is match('ab')", False))
def match(frame: Frame, value: str, pattern: str, ignorecase: bool = False) -> bool:
    """The beginning of the text matches a regular expression."""
    return _tried(frame, value, pattern, ignorecase, "match")


@tests("Text", ("'007' is matching('[0-9]+')", True), ("'7x' is matching('[0-9]+')", False))
def matching(frame: Frame, value: str, pattern: str, ignorecase: bool = False) -> bool:
    """The whole text matches a regular expression."""
    return _tried(frame, value, pattern, ignorecase, "fullmatch")


@tests("Text", ("'abc' is search('b')", True), aliases=("regex",))
def search(frame: Frame, value: str, pattern: str, ignorecase: bool = False) -> bool:
    """A part of the text matches a regular expression."""
    return _tried(frame, value, pattern, ignorecase, "search")
