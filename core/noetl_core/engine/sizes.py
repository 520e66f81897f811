"""Whether a value is larger than a limit, without writing it out where that is plain (rule K33)."""

from __future__ import annotations

from noetl_core.results import canonical
from noetl_core.values import MAX_DEPTH, Value

_NUMBER = 26
"""The longest text of a float, or of a whole number of 64 bits."""


def larger_than(value: Value, limit: int) -> bool:
    """Whether its canonical JSON has more bytes than the limit. A value that is nested too deeply
    counts as too large, whatever its bytes."""
    try:
        return _at_most(value, limit, 0) < 0 and len(canonical(value)) > limit
    except RecursionError:
        return True


def _at_most(value: Value, left: int, depth: int) -> int:
    """What is left of a budget after the most bytes that a value may take; negative: too much."""
    if depth > MAX_DEPTH:
        raise RecursionError
    kind = value.__class__
    if kind is str:
        assert isinstance(value, str)
        return left - 6 * len(value) - 2
    if isinstance(value, dict):
        for key, one in value.items():
            left = _at_most(one, left - 6 * len(key) - 4, depth + 1)
            if left < 0:
                return left
        return left - 2
    if isinstance(value, list):
        for one in value:
            left = _at_most(one, left - 1, depth + 1)
            if left < 0:
                return left
        return left - 2
    if isinstance(value, int) and value.bit_length() > 64:
        return left - value.bit_length()
    return left - _NUMBER
