"""Filters on numbers: reading them from text, rounding, sums and extremes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from noetl_core.templates import operators
from noetl_core.templates.errors import TemplateError
from noetl_core.templates.filters.common import column, sort_keys
from noetl_core.templates.limits import LIMITS
from noetl_core.templates.registry import filters
from noetl_core.templates.undefined import Operand, Undefined

if TYPE_CHECKING:
    from noetl_core.templates.frame import Frame
    from noetl_core.values import Value

GROUP = "Numbers"

MAX_PLACES = 300
"""Decimal places that `round` goes to, either side of the point."""


@filters(
    GROUP,
    ("'42' | int", 42),
    ("3.9 | int", 3),
    ("'many' | int(-1)", -1),
    ("'ff' | int(base=16)", 255),
)
def int_(frame: Frame, value: Value, default: Value = 0, base: int = 10) -> Value:
    """The value as a whole number, cut at the point; `default` where it is no number."""
    if base != 0 and not 2 <= base <= 36:
        raise TemplateError("base of int is 0 or from 2 to 36", code=TemplateError.VALUE)
    if isinstance(value, str):
        return _checked(_read_int(frame, value, default, base))
    if isinstance(value, int | float):
        return _checked(int(value)) if _finite(value) else default
    return default


def _checked(value: Value) -> Value:
    return operators.checked_number(value, "int") if isinstance(value, int) else value


def _read_int(frame: Frame, text: str, default: Value, base: int) -> Value:
    try:
        return int(_bounded(frame, text), base)
    except ValueError:
        number = _read_float(frame, text)
    return default if number is None else int(number)


def _bounded(frame: Frame, text: str) -> str:
    """A text that may be a number; one with too many digits is an error."""
    frame.work(1 + (len(text) >> 2))
    if len(text) > LIMITS.integer_digits:
        frame.text(len(text))
        text = text.strip()
        if len(text) > LIMITS.integer_digits:
            raise TemplateError("the number has too many digits", code=TemplateError.BUDGET)
    return text


def _read_float(frame: Frame, text: str) -> float | None:
    """The number that a text holds; not a number and infinity are none."""
    try:
        number = float(_bounded(frame, text))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _finite(value: int | float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


@filters(GROUP, ("'1.5' | float", 1.5), ("2 | float", 2.0), ("'x' | float(-1.0)", -1.0))
def float_(frame: Frame, value: Value, default: Value = 0.0) -> Value:
    """The value as a number with a point; `default` where it is no number."""
    if isinstance(value, str):
        number = _read_float(frame, value)
        return default if number is None else number
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            raise TemplateError(
                "the number is too large for float", code=TemplateError.VALUE
            ) from None
        return number if math.isfinite(number) else default
    return default


@filters(GROUP, ("-3 | abs", 3))
def abs_(frame: Frame, value: int | float) -> int | float:
    """The number without its sign."""
    return operators.checked_number(abs(value), "abs")


@filters(
    GROUP,
    ("42.55 | round", 43.0),
    ("42.55 | round(1, 'floor')", 42.5),
    ("2.5 | round | int", 2),
    ("7 | round", 7),
)
def round_(
    frame: Frame, value: int | float, precision: int = 0, method: str = "common"
) -> int | float:
    """The number rounded to `precision` places; `method` is `common`, `ceil` or `floor`.

    `common` takes a half to the even neighbour. A number with a point stays one: write `| int`
    after it for a whole number.
    """
    if not -MAX_PLACES <= precision <= MAX_PLACES:
        message = f"precision of round is from -{MAX_PLACES} to {MAX_PLACES}"
        raise TemplateError(message, code=TemplateError.VALUE)
    if method not in ("common", "ceil", "floor"):
        message = "method of round is 'common', 'ceil' or 'floor'"
        raise TemplateError(message, code=TemplateError.VALUE)
    operators.checked_number(value, "round")
    try:
        return operators.checked_number(_rounded(value, precision, method), "round")
    except OverflowError:
        raise TemplateError("the number is too large for round", code=TemplateError.VALUE) from None


def _rounded(value: int | float, precision: int, method: str) -> int | float:
    if method == "common":
        return round(value, precision)
    if isinstance(value, int) and precision >= 0:
        return value
    towards = math.ceil if method == "ceil" else math.floor
    if precision >= 0:
        scale: int | float = 10.0**precision
        return towards(value * scale) / scale
    scale = 10**-precision
    whole = towards(value / scale) * scale
    return whole if isinstance(value, int) else float(whole)


@filters(
    GROUP,
    ("[1, 2, 3.5] | sum", 6.5),
    ("[{'n': 1}, {'n': 2}] | sum(attribute='n')", 3),
    ("[] | sum", 0),
    ("[1] | sum(start=10)", 11),
)
def sum_(
    frame: Frame, value: list[Value], attribute: str | None = None, start: int | float = 0
) -> Operand:
    """The sum of the numbers, or of one attribute of each item."""
    total: Operand = start
    values = column(frame, value, attribute)
    frame.work(len(values) * 4)
    plus = operators.ARITHMETIC["add"]
    for one in values:
        if isinstance(one, str | list):
            raise TemplateError("sum takes numbers", hint="write `| map('float')` or `| join`")
        total = plus(frame, total, one)
    return total


@filters(
    GROUP,
    ("[3, 1, 2] | min", 1),
    ("[{'n': 4}, {'n': 2}] | min(attribute='n')", {"n": 2}),
    ("[] | min | default(0)", 0),
)
def min_(
    frame: Frame, value: list[Value], case_sensitive: bool = False, attribute: str | None = None
) -> Operand:
    """The smallest item, or the one with the smallest attribute; undefined for an empty list."""
    return _extreme(frame, value, case_sensitive, attribute, "min")


@filters(
    GROUP,
    ("[3, 1, 2] | max", 3),
    ("['b', 'C', 'a'] | max", "C"),
    ("[] | max is defined", False),
)
def max_(
    frame: Frame, value: list[Value], case_sensitive: bool = False, attribute: str | None = None
) -> Operand:
    """The largest item, or the one with the largest attribute; undefined for an empty list."""
    return _extreme(frame, value, case_sensitive, attribute, "max")


def _extreme(
    frame: Frame, values: list[Value], case_sensitive: bool, attribute: str | None, name: str
) -> Operand:
    if not values:
        return Undefined((), what=f"the {name} of an empty list")
    by = column(frame, values, attribute)
    keys = sort_keys(frame, by, case_sensitive=case_sensitive, what=name)
    choose = min if name == "min" else max
    return values[choose(range(len(keys)), key=keys.__getitem__)]
