"""How values behave inside templates: as text, as truth, as JSON, compared with each other.

Whatever walks a value as a whole measures it first, so that its cost and its size are known and
bounded before any of it is copied.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from noetl_core.templates.errors import TemplateError
from noetl_core.templates.limits import LIMITS

if TYPE_CHECKING:
    from noetl_core.templates.frame import Frame
    from noetl_core.values import Value

JSON = 40
"""Work of writing one value as JSON, besides its parts."""
CHUNK = 65_536
"""Bytes of text that are counted before they are charged."""

FALSE_TEXTS = frozenset(("false", "0", "no", "off", "none", "null", ""))
"""Texts that are false as the whole of a `when` (B2)."""

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False).encode


def when_truth(value: Value) -> bool:
    """The truth of a whole `when` (B2, K7)."""
    if value.__class__ is str:
        return str(value).strip().lower() not in FALSE_TEXTS
    return bool(value)


def text_of(frame: Frame, value: Value) -> str:
    """A value as part of a text: as it stands in JSON, except that text has no quotes."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(frame, value)
    return json_text(frame, value)


def number_text(frame: Frame, value: int | float) -> str:
    """The shortest text that reads back as the same number."""
    frame.work(5 + number_work(value))
    try:
        return repr(value)
    except ValueError:
        raise TemplateError("the number has too many digits", code=TemplateError.BUDGET) from None


def number_work(value: Value) -> int:
    """Work of writing a whole number in decimal: the square of its length."""
    if value.__class__ is not int:
        return 0
    length = value.bit_length() >> 6
    return length + (length * length >> 5)


def json_text(frame: Frame, value: Value, indent: int | None = None) -> str:
    """A value as JSON text, in the order of its keys."""
    frame.work(JSON)
    measure(frame, value, indent)
    try:
        if indent is None:
            return _encode(value)
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError as error:
        raise TemplateError(f"not JSON: {error}", code=TemplateError.VALUE) from None


def measure(frame: Frame, value: Value, indent: int | None = None) -> None:
    """Charge a walk over a whole value that copies it as text.

    Level by level, so that no depth of data can exhaust Python's stack; the size is an upper
    bound of the text's bytes.
    """
    level: list[Value] = [value]
    depth = 0
    while level:
        if depth > LIMITS.data_depth:
            raise TemplateError(
                f"the value is nested deeper than {LIMITS.data_depth} levels",
                code=TemplateError.BUDGET,
            )
        if indent is not None:
            # Python's encoder is many times slower when it has to indent.
            frame.work(6 * len(level))
        level = _charge_level(frame, level, (indent or 0) * depth + 4)
        depth += 1


def _charge_level(frame: Frame, level: list[Value], overhead: int) -> list[Value]:
    """Charge the values of one level and gather those below.

    Sums are kept here and charged when a list or mapping is about to be opened, since this is
    the innermost loop of all.
    """
    below: list[Value] = []
    work = size = 0
    for value in level:
        size += overhead
        if value.__class__ is str:
            size += _json_size(value)
            work += 1
            if size > CHUNK:
                frame.memory(size)
                size = 0
        elif isinstance(value, list | dict):
            frame.work(work + 2 * len(value) + 1)
            frame.memory(size + len(value) * 8)
            work = size = 0
            if isinstance(value, dict):
                work = 2 * len(value)
                size = len(value) * overhead + sum(map(_json_size, value))
                below += value.values()
            else:
                below += value
        else:
            size += _digits(value) if value.__class__ is int else 20
            work += number_work(value) + 1
    frame.work(work)
    frame.memory(size)
    return below


def _json_size(text: str) -> int:
    """Bytes of a text in JSON: quotes, backslashes and control characters grow."""
    if len(text) < 64:
        return len(text) * 2 + 2 if text.isascii() and text.isprintable() else len(text) * 6 + 2
    if text.isascii() and text.isprintable():
        return len(text) + 2 + text.count('"') + text.count("\\")
    return len(text) * 6 + 2


def _digits(value: Value) -> int:
    return value.bit_length() // 3 + 2 if isinstance(value, int) else 20


def equal(frame: Frame, left: Value, right: Value) -> bool:
    """`==`, by value and deep; a number never equals a text."""
    if isinstance(left, list | dict) and isinstance(right, list | dict):
        # Two values are compared at most as far as the smaller one goes.
        weigh(frame, left if len(left) <= len(right) else right)
    elif isinstance(left, str) and isinstance(right, str):
        frame.work(len(left) >> 8)
    return left == right


def weigh(frame: Frame, value: Value) -> int:
    """Charge a walk over a whole value that copies nothing; gives the number of values in it."""
    level: list[Value] = [value]
    depth = count = 0
    while level:
        count += len(level)
        frame.work(len(level))
        if depth > LIMITS.data_depth:
            raise TemplateError("the values are nested too deep to compare", code="B7.budget")
        below: list[Value] = []
        for part in level:
            if isinstance(part, list):
                below += part
            elif isinstance(part, dict):
                below += part.values()
            elif isinstance(part, str):
                frame.work(len(part) >> 8)
            if len(below) > frame.work_left:
                frame.work(len(below))
        level = below
        depth += 1
    return count
