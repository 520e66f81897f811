"""What the operators of expressions do.

Every function here takes evaluated operands and a frame. In a `when` an undefined operand makes
arithmetic undefined and comparisons false; in a value it is an error (B3).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from noetl_core.templates.data import equal, text_of, weigh
from noetl_core.templates.errors import TemplateError
from noetl_core.templates.frame import Frame, width
from noetl_core.templates.undefined import Operand, Undefined, undefined_error
from noetl_core.values import is_storable_integer, type_name

if TYPE_CHECKING:
    from noetl_core.values import Value

Number: TypeAlias = "int | float"
Comparison: TypeAlias = "Callable[[Frame, Operand, Operand], bool]"
Arithmetic: TypeAlias = "Callable[[Frame, Operand, Operand], Operand]"


def truth(frame: Frame, value: Operand) -> bool:
    """The truth of a value inside an expression: whether it is there and not empty, zero, false."""
    if value.__class__ is Undefined:
        return is_missing(frame, value)
    return bool(value)


def is_missing(frame: Frame, *operands: Operand) -> bool:
    """For operands of which one is undefined: an error in a value, plain false in a `when`."""
    if frame.strict:
        for operand in operands:
            if isinstance(operand, Undefined):
                raise undefined_error(operand)
    return False


def eq(frame: Frame, left: Operand, right: Operand) -> bool:
    if isinstance(left, Undefined) or isinstance(right, Undefined):
        return is_missing(frame, left, right) or left.__class__ is right.__class__
    return equal(frame, left, right)


def ne(frame: Frame, left: Operand, right: Operand) -> bool:
    return not eq(frame, left, right)


def contains(frame: Frame, left: Operand, right: Operand) -> bool:
    """`left in right`: an item of a list, a key of a mapping, a part of a text."""
    if isinstance(left, Undefined) or isinstance(right, Undefined):
        return is_missing(frame, left, right)
    if isinstance(right, list):
        each = weigh(frame, left) if isinstance(left, list | dict) else 1
        frame.work(len(right) * each >> 2)
        return left in right
    if isinstance(right, str) and isinstance(left, str):
        frame.work(len(right) >> 5)
        return left in right
    if isinstance(right, dict):
        return isinstance(left, str) and left in right
    raise TemplateError(f"`in` looks into a list, a mapping or text, not {type_name(right)}")


def lacks(frame: Frame, left: Operand, right: Operand) -> bool:
    if isinstance(left, Undefined) or isinstance(right, Undefined):
        return not is_missing(frame, left, right)
    return not contains(frame, left, right)


def _order(sign: str, compare: Callable[[Number, Number], bool]) -> Comparison:
    texts: dict[str, Callable[[str, str], bool]] = {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
    compare_text = texts[sign]

    def ordered(frame: Frame, left: Operand, right: Operand) -> bool:
        if _is_number(left) and _is_number(right):
            return compare(left, right)  # type: ignore[arg-type]  # both are numbers
        if isinstance(left, str) and isinstance(right, str):
            frame.work(min(len(left), len(right)) >> 8)
            return compare_text(left, right)
        if isinstance(left, Undefined) or isinstance(right, Undefined):
            return is_missing(frame, left, right)
        raise _type_error(sign, left, right)

    return ordered


def _is_number(value: Operand) -> bool:
    return value.__class__ is int or value.__class__ is float


COMPARISONS: dict[str, Comparison] = {
    "eq": eq,
    "ne": ne,
    "lt": _order("<", operator.lt),
    "lteq": _order("<=", operator.le),
    "gt": _order(">", operator.gt),
    "gteq": _order(">=", operator.ge),
    "in": contains,
    "notin": lacks,
}


def add(frame: Frame, left: Operand, right: Operand) -> Operand:
    """Numbers are added, texts and lists put together."""
    if isinstance(left, str) and isinstance(right, str):
        frame.text(len(left) + len(right), max(width(left), width(right)))
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        frame.items(len(left) + len(right))
        return left + right
    return _add(frame, left, right)


def _arithmetic(sign: str, compute: Callable[[Number, Number], Number]) -> Arithmetic:
    def computed(frame: Frame, left: Operand, right: Operand) -> Operand:
        if not (_is_number(left) and _is_number(right)):
            return _not_numbers(frame, sign, left, right)
        _check_size(left, right)
        try:
            result = compute(left, right)  # type: ignore[arg-type]  # both are numbers
        except ZeroDivisionError:
            raise TemplateError(f"`{sign}` by zero", code=TemplateError.VALUE) from None
        except OverflowError:
            raise _too_large(sign) from None
        return checked_number(result, sign)

    return computed


def checked_number(result: Number, sign: str) -> Number:
    """A result that events can hold: finite, and of 64 bits where it is a whole number."""
    if isinstance(result, float):
        if not math.isfinite(result):
            raise _too_large(sign)
    elif not is_storable_integer(result):
        raise _too_large(sign)
    return result


def _check_size(left: Operand, right: Operand) -> None:
    """Data may hold longer numbers than templates may make: they are not computed with."""
    for value in (left, right):
        if isinstance(value, int) and not is_storable_integer(value):
            raise _too_large("a whole number")


def _too_large(sign: str) -> TemplateError:
    return TemplateError(f"the result of `{sign}` is too large", code=TemplateError.VALUE)


def _not_numbers(frame: Frame, sign: str, left: Operand, right: Operand) -> Operand:
    for side in (left, right):
        if isinstance(side, Undefined):
            is_missing(frame, side)
            return side
    raise _type_error(sign, left, right)


def _type_error(sign: str, left: Operand, right: Operand) -> TemplateError:
    message = f"`{sign}` cannot take {type_name(left)} and {type_name(right)}"
    kinds = {left.__class__, right.__class__}
    hint = ""
    if sign == "*" and kinds & {str, list}:
        hint = "repetition is not part of the language"
    elif sign == "%" and left.__class__ is str:
        hint = "write `| format(…)`"
    elif sign == "+" and dict in kinds:
        hint = "write `a | combine(b)`"
    elif sign == "+" and str in kinds:
        hint = "write `a ~ b` for text, or `a | int + b` for numbers"
    elif str in kinds:
        hint = "write `| int` or `| float` after the text"
    elif bool in kinds:
        hint = "write `| int` after the boolean"
    return TemplateError(message, hint=hint)


_add = _arithmetic("+", operator.add)
ARITHMETIC: dict[str, Arithmetic] = {
    "add": add,
    "sub": _arithmetic("-", operator.sub),
    "mul": _arithmetic("*", operator.mul),
    "div": _arithmetic("/", operator.truediv),
    "floordiv": _arithmetic("//", operator.floordiv),
    "mod": _arithmetic("%", operator.mod),
}


def negate(frame: Frame, value: Operand) -> Operand:
    """`-value`."""
    if isinstance(value, float):
        return -value
    return ARITHMETIC["sub"](frame, 0, value)


def posit(frame: Frame, value: Operand) -> Operand:
    """`+value`: a number, or an error."""
    return ARITHMETIC["add"](frame, 0, value)


def key_error(key: Operand) -> TemplateError:
    """The error of a mapping whose key is not text."""
    return TemplateError(
        f"the keys of a mapping are text, not {type_name(key)}", hint="write `key | string`"
    )


def join_text(frame: Frame, pieces: list[Operand]) -> str:
    """`a ~ b ~ c`, and the text around expressions."""
    texts: list[str] = []
    length, wide = 0, 1
    for piece in pieces:
        if isinstance(piece, Undefined):
            is_missing(frame, piece)
            continue
        text = text_of(frame, piece)
        frame.work(2)
        length += len(text)
        wide = max(wide, width(text))
        texts.append(text)
    frame.text(length, wide)
    return "".join(texts)


def cut(frame: Frame, value: Operand, bounds: list[Operand]) -> Operand:
    """`value[start:stop:step]` of a list or text."""
    if isinstance(value, Undefined):
        return value
    if not isinstance(value, list | str):
        raise TemplateError(f"only a list or text has slices, not {type_name(value)}")
    numbers = [_bound(frame, bound) for bound in bounds]
    if numbers[2] == 0:
        raise TemplateError("the step of a slice cannot be 0", code=TemplateError.VALUE)
    places = slice(*numbers)
    count = len(range(*places.indices(len(value))))
    if isinstance(value, str):
        frame.text(count, width(value))
        return value[places]
    frame.items(count)
    return value[places]


def _bound(frame: Frame, bound: Operand) -> int | None:
    if isinstance(bound, Undefined):
        is_missing(frame, bound)
        return None
    if bound is None or bound.__class__ is int:
        return bound
    raise TemplateError(f"the bounds of a slice are whole numbers, not {type_name(bound)}")


def as_value(frame: Frame, operand: Operand) -> Value:
    """What may stand inside a list or a mapping: undefined is null there, in a `when`."""
    if isinstance(operand, Undefined):
        is_missing(frame, operand)
        return None
    return operand
