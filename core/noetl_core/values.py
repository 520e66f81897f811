"""The one type of data that playbooks handle: JSON.

Everything that a template reads or yields, an event carries or a task returns is a `Value`.
Values are treated as immutable everywhere: nobody writes into a value that somebody else can see.
"""

from __future__ import annotations

from typing import TypeAlias

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"


SMALLEST_INTEGER = -(2**63)
LARGEST_INTEGER = 2**64 - 1
"""Whole numbers that events can hold: 64 bits, with or without a sign."""
MAX_DEPTH = 200
"""Lists in lists, or mappings in mappings, of a value that events can hold."""


def is_storable_integer(value: int) -> bool:
    return SMALLEST_INTEGER <= value <= LARGEST_INTEGER


def type_name(value: object) -> str:
    """The name of a value's type as messages to playbook authors write it."""
    return _NAMES.get(type(value), type(value).__name__)


_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
}
