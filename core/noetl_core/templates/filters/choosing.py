"""Filters that choose between values or say what a value is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetl_core.templates.data import when_truth
from noetl_core.templates.registry import filters
from noetl_core.templates.undefined import Operand, Undefined

if TYPE_CHECKING:
    from noetl_core.templates.frame import Frame
    from noetl_core.values import Value

GROUP = "Choosing"

_TYPES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "float",
    str: "string",
    list: "list",
    dict: "mapping",
}


@filters(
    GROUP,
    ("missing.any.path | default('x')", "x"),
    ("none | default('x')", None),
    ("'' | default('x', true)", "x"),
    ("0 | default(1)", 0),
    aliases=("d",),
    keeps_undefined=True,
)
def default(
    frame: Frame, value: Operand, default_value: Value = "", boolean: bool = False
) -> Operand:
    """`default_value` where the value is undefined; with `boolean` also where it is false-like.

    Null is a value: it needs `default(…, true)`. The other value is only evaluated where it is
    needed.
    """
    # Templates use the lazy form in `calls`; this is the same choice on evaluated values.
    missing = isinstance(value, Undefined) or (boolean and not value)
    return default_value if missing else value


@filters(
    GROUP,
    ("true | ternary('yes', 'no')", "yes"),
    ("0 | ternary('yes', 'no')", "no"),
    ("none | ternary('yes', 'no', 'unknown')", "unknown"),
)
def ternary(
    frame: Frame, value: Value, true_value: Value, false_value: Value, none_value: Value = None
) -> Value:
    """One of two values by the truth of the value; `none_value`, if given, where it is null."""
    if value is None and none_value is not None:
        return none_value
    return true_value if value else false_value


@filters(
    GROUP,
    ("'no' | bool", False),
    ("'True' | bool", True),
    ("1 | bool", True),
    ("[] | bool", False),
)
def bool_(frame: Frame, value: Value) -> bool:
    """The truth that the value has as a whole `when`: texts such as "false" and "no" are false."""
    if isinstance(value, str):
        frame.like(value, 3)
    return when_truth(value)


@filters(GROUP, ("1 | type", "integer"), ("{'a': 1} | type", "mapping"), ("none | type", "null"))
def type_(frame: Frame, value: Value) -> str:
    """`null`, `boolean`, `integer`, `float`, `string`, `list` or `mapping`."""
    return _TYPES[type(value)]
