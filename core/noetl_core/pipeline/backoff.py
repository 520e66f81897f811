"""How long to wait before a task is tried again (rules D2, K21)."""

from __future__ import annotations

import math

from noetl_core.model import Backoff
from noetl_core.values import Value, type_name


class BadDelay(ValueError):
    """A `delay` that is no length of time."""


def wait(
    backoff: Backoff, delay: Value, attempt: int, max_delay: float, retry_after: float | None
) -> float:
    """Seconds between the end of run number `attempt` of a task and its next run.

    What the other side asks for wins where it is longer, but nothing is longer than `max_delay`.
    """
    seconds = _seconds(delay)
    match backoff:
        case Backoff.NONE:
            grown = seconds
        case Backoff.LINEAR:
            grown = seconds * attempt
        case Backoff.EXPONENTIAL:
            grown = _doubled(seconds, attempt - 1)
    if retry_after is not None and retry_after > grown:
        grown = retry_after
    return min(grown, max_delay)


def _seconds(delay: Value) -> float:
    if isinstance(delay, bool) or not isinstance(delay, int | float):
        raise BadDelay(f"a delay is a number of seconds, not {type_name(delay)}")
    try:
        seconds = float(delay)
    except OverflowError:
        seconds = math.inf
    if seconds < 0 or math.isnan(seconds):
        raise BadDelay(f"a delay is not negative, but this one is {seconds:g}")
    return seconds


def _doubled(seconds: float, times: int) -> float:
    try:
        return math.ldexp(seconds, times)
    except OverflowError:
        return math.inf
