"""The tests: what stands after `is`, and what `select` and its kin take by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetl_core.templates import operators
from noetl_core.templates.registry import tests
from noetl_core.templates.undefined import Operand, Undefined

if TYPE_CHECKING:
    from noetl_core.templates.frame import Frame
    from noetl_core.values import Value

PRESENCE = "Presence"
TYPES = "Types"
COMPARING = "Comparing"
NUMBERS = "Numbers"
TEXT = "Text"


@tests(
    PRESENCE,
    ("missing.path is defined", False),
    ("none is defined", True),
    keeps_undefined=True,
)
def defined(frame: Frame, value: Operand) -> bool:
    """It is there, even if it is null."""
    return not isinstance(value, Undefined)


@tests(PRESENCE, ("missing.path is undefined", True), keeps_undefined=True)
def undefined(frame: Frame, value: Operand) -> bool:
    """It is not there."""
    return isinstance(value, Undefined)


@tests(PRESENCE, ("none is none", True), ("'' is none", False), aliases=("null",))
def none(frame: Frame, value: Value) -> bool:
    """It is null."""
    return value is None


@tests(PRESENCE, ("[] is empty", True), ("none is empty", True), ("0 is empty", False))
def empty(frame: Frame, value: Value) -> bool:
    """It is null, or a text, list or mapping with nothing in it."""
    return value is None or (isinstance(value, str | list | dict) and not value)


@tests(TYPES, ("'a' is string", True), ("1 is string", False), aliases=("text",))
def string(frame: Frame, value: Value) -> bool:
    """It is text."""
    return isinstance(value, str)


@tests(TYPES, ("1.5 is number", True), ("true is number", False))
def number(frame: Frame, value: Value) -> bool:
    """It is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@tests(TYPES, ("1 is integer", True), ("1.0 is integer", False))
def integer(frame: Frame, value: Value) -> bool:
    """It is a whole number, written without a point."""
    return isinstance(value, int) and not isinstance(value, bool)


@tests(TYPES, ("1.0 is float", True), ("1 is float", False))
def float_(frame: Frame, value: Value) -> bool:
    """It is a number with a point."""
    return isinstance(value, float)


@tests(TYPES, ("false is boolean", True), ("0 is boolean", False))
def boolean(frame: Frame, value: Value) -> bool:
    """It is true or false."""
    return isinstance(value, bool)


@tests(TYPES, ("true is true", True), ("1 is true", False))
def true(frame: Frame, value: Value) -> bool:
    """It is the boolean true."""
    return value is True


@tests(TYPES, ("false is false", True), ("0 is false", False))
def false(frame: Frame, value: Value) -> bool:
    """It is the boolean false."""
    return value is False


@tests(TYPES, ("{} is mapping", True), ("[] is mapping", False))
def mapping(frame: Frame, value: Value) -> bool:
    """It is a mapping."""
    return isinstance(value, dict)


@tests(TYPES, ("[] is list", True), ("'a' is list", False))
def list_(frame: Frame, value: Value) -> bool:
    """It is a list."""
    return isinstance(value, list)


@tests(TYPES, ("[] is sequence", True), ("'a' is sequence", True), ("1 is sequence", False))
def sequence(frame: Frame, value: Value) -> bool:
    """It has a length: a list, a text or a mapping."""
    return isinstance(value, list | str | dict)


@tests(TYPES, ("{} is iterable", True), ("none is iterable", False))
def iterable(frame: Frame, value: Value) -> bool:
    """It can be gone through: a list, a text or a mapping."""
    return isinstance(value, list | str | dict)


@tests(NUMBERS, ("3 is odd", True))
def odd(frame: Frame, value: int) -> bool:
    """The whole number leaves 1 when divided by 2."""
    return value % 2 == 1


@tests(NUMBERS, ("4 is even", True))
def even(frame: Frame, value: int) -> bool:
    """The whole number can be divided by 2."""
    return value % 2 == 0


@tests(NUMBERS, ("9 is divisibleby(3)", True), ("9 is divisibleby 2", False))
def divisibleby(frame: Frame, value: int, num: int) -> bool:
    """The whole number can be divided by `num`."""
    return operators.ARITHMETIC["mod"](frame, value, num) == 0


@tests(
    COMPARING,
    ("1 is eq(1.0)", True),
    ("['a', 'b'] | select('==', 'a') | list", ["a"]),
    aliases=("equalto", "=="),
)
def eq(frame: Frame, value: Value, other: Operand) -> bool:
    """It equals `other`."""
    return operators.eq(frame, value, other)


@tests(COMPARING, ("1 is ne 2", True), aliases=("!=",))
def ne(frame: Frame, value: Value, other: Operand) -> bool:
    """It does not equal `other`."""
    return operators.ne(frame, value, other)


@tests(COMPARING, ("1 is lt 2", True), aliases=("lessthan", "<"))
def lt(frame: Frame, value: Value, other: Operand) -> bool:
    """It is smaller than `other`."""
    return operators.COMPARISONS["lt"](frame, value, other)


@tests(COMPARING, ("2 is le 2", True), aliases=("<=",))
def le(frame: Frame, value: Value, other: Operand) -> bool:
    """It is smaller than `other`, or equal."""
    return operators.COMPARISONS["lteq"](frame, value, other)


@tests(COMPARING, ("2 is gt 1", True), aliases=("greaterthan", ">"))
def gt(frame: Frame, value: Value, other: Operand) -> bool:
    """It is larger than `other`."""
    return operators.COMPARISONS["gt"](frame, value, other)


@tests(COMPARING, ("2 is ge 3", False), aliases=(">=",))
def ge(frame: Frame, value: Value, other: Operand) -> bool:
    """It is larger than `other`, or equal."""
    return operators.COMPARISONS["gteq"](frame, value, other)


@tests(COMPARING, ("2 is in [1, 2]", True), ("'a' is in 'abc'", True))
def in_(frame: Frame, value: Value, seq: Operand) -> bool:
    """It is an item of a list, a key of a mapping or a part of a text."""
    return operators.contains(frame, value, seq)


@tests(COMPARING, ("[1, 2] is containing(2)", True), aliases=("contains",))
def containing(frame: Frame, value: Value, item: Operand) -> bool:
    """It has this item, this key or this part."""
    return operators.contains(frame, item, value)


@tests(TEXT, ("'abc' is startingwith('ab')", True), aliases=("startswith",))
def startingwith(frame: Frame, value: str, prefix: str) -> bool:
    """The text begins with `prefix`."""
    frame.work(len(prefix) >> 8)
    return value.startswith(prefix)


@tests(TEXT, ("'abc' is endingwith('bc')", True), aliases=("endswith",))
def endingwith(frame: Frame, value: str, suffix: str) -> bool:
    """The text ends with `suffix`."""
    frame.work(len(suffix) >> 8)
    return value.endswith(suffix)


@tests(TEXT, ("'abc' is lower", True), ("'aBc' is lower", False))
def lower(frame: Frame, value: str) -> bool:
    """The text has letters, and all of them are in lower case."""
    frame.work(len(value) >> 4)
    return value.islower()


@tests(TEXT, ("'ABC' is upper", True), ("'1' is upper", False))
def upper(frame: Frame, value: str) -> bool:
    """The text has letters, and all of them are in upper case."""
    frame.work(len(value) >> 4)
    return value.isupper()


@tests(COMPARING, ("1 is sameas 1", True), ("1 is sameas true", False))
def sameas(frame: Frame, value: Value, other: Operand) -> bool:
    """It equals `other` and has the same type."""
    return operators.eq(frame, value, other) and value.__class__ is other.__class__
