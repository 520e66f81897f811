"""Which values a filter takes where its annotation names a type.

Text filters also take numbers and booleans (as the text they have inside a text), list filters
also take mappings (their keys). Nothing is ever guessed from the content of a text (B1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from noetl_core.templates.data import number_text
from noetl_core.templates.errors import TemplateError
from noetl_core.values import type_name

if TYPE_CHECKING:
    from noetl_core.templates.frame import Frame
    from noetl_core.templates.undefined import Operand
    from noetl_core.values import Value


def coerce_as(frame: Frame, kind: str, value: Operand, callee: str, parameter: str) -> Operand:
    """The value as the type `kind`, or an error that names the filter and the argument."""
    if value.__class__ in _EXACT[kind]:
        return value
    convert = _LENIENT.get(kind)
    converted = convert(frame, value) if convert else None
    if converted is None:
        whose = f"{parameter} of {callee}" if parameter else callee
        message = f"{whose} takes {WORDS[kind]}, not {type_name(value)}"
        raise TemplateError(message, hint=_hint(kind, value))
    return converted


def _hint(kind: str, value: Operand) -> str:
    if kind in ("int", "int | float", "int | None") and isinstance(value, str):
        return "write `| int` or `| float` before it"
    if value is None:
        return "write `| default(…, true)` before it"
    return ""


def _as_text(frame: Frame, value: Operand) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(frame, value) if isinstance(value, int | float) else None


def _as_list(frame: Frame, value: Operand) -> Value:
    if not isinstance(value, dict):
        return None
    frame.items(len(value))
    return list(value)


def _as_int(_: Frame, value: Operand) -> Value:
    return int(value) if isinstance(value, float) and value.is_integer() else None


class _Anything(frozenset[type]):
    """Every class is in it, `Undefined` too."""

    def __contains__(self, _: object) -> bool:
        return True


_NONE = type(None)
_EXACT: dict[str, frozenset[type]] = {
    "str": frozenset((str,)),
    "str | None": frozenset((str, _NONE)),
    "int": frozenset((int,)),
    "int | None": frozenset((int, _NONE)),
    "int | float": frozenset((int, float)),
    "bool": frozenset((bool,)),
    "list[Value]": frozenset((list,)),
    "list[Value] | str": frozenset((list, str)),
    "list[Value] | dict[str, Value]": frozenset((list, dict)),
    "list[Value] | dict[str, Value] | str": frozenset((list, dict, str)),
    "dict[str, Value]": frozenset((dict,)),
    "Value": _Anything(),
    "Operand": _Anything(),
}
_LENIENT: dict[str, Callable[[Frame, Operand], Value]] = {
    "str": _as_text,
    "str | None": _as_text,
    "int": _as_int,
    "int | None": _as_int,
    "list[Value]": _as_list,
    "list[Value] | str": _as_list,
}
WORDS: dict[str, str] = {
    "str": "text",
    "str | None": "text",
    "int": "a whole number",
    "int | None": "a whole number",
    "int | float": "a number",
    "bool": "true or false",
    "list[Value]": "a list",
    "list[Value] | str": "a list or text",
    "list[Value] | dict[str, Value]": "a list or a mapping",
    "list[Value] | dict[str, Value] | str": "a list, a mapping or text",
    "dict[str, Value]": "a mapping",
    "Value": "any value",
    "Operand": "any value",
}
EMPTY: dict[str, Callable[[], Value]] = {
    "str": str,
    "str | None": str,
    "int": int,
    "int | None": int,
    "int | float": int,
    "bool": bool,
    "list[Value]": list,
    "list[Value] | str": list,
    "list[Value] | dict[str, Value]": list,
    "list[Value] | dict[str, Value] | str": list,
    "dict[str, Value]": dict,
    "Value": lambda: None,
    "Operand": lambda: None,
}
"""What stands for an undefined value in a `when`: the empty value of the type that is wanted."""
