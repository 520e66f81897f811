"""What several filters share: attributes by path, keys to sort by, safe text encoding."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from noetl_core.templates.errors import TemplateError
from noetl_core.templates.undefined import Operand, Undefined, item, undefined_error
from noetl_core.values import type_name

if TYPE_CHECKING:
    from noetl_core.templates.frame import Frame
    from noetl_core.values import Value

Key: TypeAlias = "tuple[int, int | float | str]"

MAX_STEPS = 10
"""How many names an attribute path such as `a.b.c` may have."""


def attribute_of(path: Value) -> Callable[[Operand], Operand]:
    """A function that reads `a.b.0` from a value; undefined where it is not there."""
    if path.__class__ is int:
        keys: list[str | int] = [int(str(path))]
    elif isinstance(path, str):
        words = path.split(".", MAX_STEPS)
        keys = [int(word) if word.isdecimal() and len(word) < 10 else word for word in words]
    else:
        raise TemplateError(f"an attribute is named by text, not by {type_name(path)}")
    missing = Undefined((), what=f"the attribute {path!r} of an item")
    if len(keys) == 1:
        only = keys[0]

        def read_one(value: Operand) -> Operand:
            if value.__class__ is dict and only in value:
                return value[only]
            return _or_missing(item(value, only, ()), missing)

        return read_one

    def read(value: Operand) -> Operand:
        for key in keys:
            value = item(value, key, ())
        return _or_missing(value, missing)

    return read


def _or_missing(value: Operand, missing: Undefined) -> Operand:
    return missing if isinstance(value, Undefined) else value


def column(frame: Frame, values: list[Value], attribute: str | None) -> list[Value]:
    """The items themselves, or one attribute of each; a missing one is an error."""
    if attribute is None:
        return values
    frame.items(len(values))
    read = attribute_of(attribute)
    found: list[Value] = []
    for value in values:
        one = read(value)
        if isinstance(one, Undefined):
            raise undefined_error(one)
        found.append(one)
    return found


def sort_keys(frame: Frame, values: list[Value], *, case_sensitive: bool, what: str) -> list[Key]:
    """Keys that order numbers before texts before null; other types have no order."""
    frame.items(len(values) * 4)
    keys: list[Key] = []
    for value in values:
        if isinstance(value, bool):
            keys.append((0, int(value)))
        elif isinstance(value, int | float):
            keys.append((0, value))
        elif isinstance(value, str):
            if not case_sensitive:
                frame.like(value)
                value = value.casefold()
            keys.append((1, value))
        elif value is None:
            keys.append((2, 0))
        else:
            raise TemplateError(f"{what} cannot order {type_name(value)}; name an attribute")
    return keys


def charge_sort(frame: Frame, keys: list[Key]) -> None:
    """What a sort costs: each item is compared about log n times, texts by their length."""
    rounds = max(1, len(keys).bit_length())
    frame.work(len(keys) * rounds >> 1)
    frame.work(sum(len(key) for _, key in keys if isinstance(key, str)) * rounds >> 8)


def hashable(frame: Frame, value: Value) -> object:
    """What stands for a value where values are told apart; lists and mappings by their JSON."""
    if isinstance(value, list | dict):
        from noetl_core.templates.data import json_text

        return ("json", json_text(frame, value))
    if isinstance(value, bool):
        return ("boolean", value)
    return value


def encoded(frame: Frame, text: str) -> bytes:
    """UTF-8, charged; half of a surrogate pair is no text."""
    frame.like(text, 2)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise TemplateError("the text is not valid Unicode", code=TemplateError.VALUE) from None
