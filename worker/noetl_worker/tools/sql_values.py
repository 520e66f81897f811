"""Numbers of databases as JSON (rule K35).

Imports nothing heavy: the process that runs DuckDB uses it too.
"""

from __future__ import annotations

import contextlib
import struct
from decimal import Decimal

from noetl_core.values import Value, is_storable_integer


def json_number(value: Decimal, *, exact: bool) -> Value:
    """A `numeric` as a JSON number, or as text that loses nothing (`spec.numeric: text`)."""
    if not value.is_finite():
        return "NaN" if value.is_nan() else f"{'-' if value < 0 else ''}Infinity"
    if exact:
        return format(value, "f")
    exponent = value.as_tuple().exponent
    number = float(value)
    is_whole = isinstance(exponent, int) and exponent >= 0
    # A whole number that a float cannot hold stays whole, as far as 64 bits go.
    if is_whole or (abs(number) >= 2**53 and value == value.to_integral_value()):
        return json_integer(int(value)) if abs(number) < 1e20 else _beyond(value, number)
    return number


def json_integer(value: int) -> Value:
    """A whole number; one of more than 64 bits is the nearest float."""
    return value if is_storable_integer(value) else _beyond(Decimal(value), float(value))


def _beyond(value: Decimal, number: float) -> Value:
    return number if abs(number) != float("inf") else format(value, "f")


def json_float(value: float) -> Value:
    """A float, or the name of what JSON has no number for."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def short_float(value: float) -> float:
    """A float of four bytes with no more digits than it has."""
    packed = struct.pack("!f", value)
    for digits in range(1, 10):
        short = float(f"{value:.{digits}g}")
        with contextlib.suppress(OverflowError):
            if struct.pack("!f", short) == packed:
                return short
    return value
