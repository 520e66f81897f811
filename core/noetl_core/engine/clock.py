"""Arithmetic on the texts that stand for time: UTC, microseconds, `Z`.

Two such texts compare as the times they stand for. No clock here: `now` always comes in.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta


def later(now: str, seconds: float) -> str | None:
    """The time so many seconds after; None where that is beyond any calendar."""
    try:
        return iso(datetime.fromisoformat(now) + timedelta(seconds=seconds))
    except OverflowError:
        return None


def normal(time: str) -> str:
    """A time in the one form that compares as text."""
    return iso(datetime.fromisoformat(time))


def milliseconds(time: str) -> int:
    """Since 1970: what ids that are ordered by time begin with."""
    return int(datetime.fromisoformat(time).timestamp() * 1000)


def earliest(times: Iterable[str | None]) -> str | None:
    return min((time for time in times if time is not None), default=None)


def iso(time: datetime) -> str:
    """A moment in the one form that compares as text."""
    utc = time.astimezone(UTC)
    return utc.isoformat(timespec="microseconds")[:-6] + "Z"
