"""Filters on dates and times, which are ISO 8601 texts wherever they are data.

Pure: there is no clock here. A time without an offset is UTC, and results are UTC with `Z`. The
directives of formats are our own, so that no locale and no C library has a say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import TYPE_CHECKING

from noetl_core.templates.errors import TemplateError
from noetl_core.templates.registry import filters
from noetl_core.values import type_name

if TYPE_CHECKING:
    from noetl_core.templates.frame import Frame
    from noetl_core.values import Value

GROUP = "Dates and times"

MAX_FORMAT = 200
"""Characters in the format of a date."""
MAX_TEXT = 100
"""Characters in the text of a date."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_UNITS = {
    "milliseconds": 0.001,
    "seconds": 1,
    "minutes": 60,
    "hours": 3_600,
    "days": 86_400,
    "weeks": 604_800,
}
_ISO = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)"
    r"(?:[Tt ](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d{1,9}))?)?)?\s*([Zz]|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_MAIL = re.compile(
    r"(?:[A-Za-z]{3},\s*)?(\d{1,2}) ([A-Za-z]{3}) (\d{4}) (\d\d):(\d\d)(?::(\d\d))? ?"
    r"(GMT|UTC|[+-]\d{4})",
    re.ASCII,
)


def _fail(message: str) -> TemplateError:
    return TemplateError(message, code=TemplateError.VALUE)


def read(frame: Frame, value: Value) -> datetime:
    """A moment: ISO 8601 text, a date, the form of HTTP and mail, or seconds since 1970."""
    frame.work(20)
    frame.memory(200)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TemplateError(f"a time is text or a number of seconds, not {type_name(value)}")
    try:
        if not isinstance(value, str):
            return _EPOCH + _seconds(value)
        if len(value) <= MAX_TEXT:
            text = value.strip()
            if found := _ISO.fullmatch(text):
                return _from_iso(found)
            if found := _MAIL.fullmatch(text):
                return _from_mail(found)
    except (ValueError, OverflowError):
        raise _fail(f"{_shown(value)} is not a time between the years 1 and 9999") from None
    raise TemplateError(
        f"{_shown(value)} is not a time",
        code=TemplateError.VALUE,
        hint="write 2024-05-01T12:00:00Z, or name its format: to_datetime('%d.%m.%Y')",
    )


def _shown(value: Value) -> str:
    if isinstance(value, int) and value.bit_length() > 200:
        return "the number"
    return repr(value)[:60]


def _seconds(value: int | float) -> timedelta:
    if isinstance(value, float) and not math.isfinite(value):
        raise OverflowError
    return timedelta(seconds=value)


def _from_iso(found: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = (int(found[n] or 0) for n in range(1, 7))
    micro = int((found[7] or "").ljust(6, "0")[:6])
    # The seconds of the moment after the last of a day are written 24:00 by some.
    moment = datetime(year, month, day, tzinfo=_offset(found[8]))
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second or micro)):
        raise ValueError
    moment += timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micro)
    return moment.astimezone(UTC)


def _from_mail(found: re.Match[str]) -> datetime:
    month = 1 + [name[:3] for name in _MONTHS].index(found[2].title())
    hour, minute, second = int(found[4]), int(found[5]), int(found[6] or 0)
    zone = _offset(found[7])
    moment = datetime(int(found[3]), month, int(found[1]), hour, minute, second, tzinfo=zone)
    return moment.astimezone(UTC)


def _offset(text: str | None) -> timezone:
    if text is None or text in ("Z", "z", "GMT", "UTC"):
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError
    distance = timedelta(hours=hours, minutes=minutes)
    return timezone(-distance if text[0] == "-" else distance)


def write(moment: datetime) -> str:
    """A moment as it is data: `2024-05-01T12:00:00Z`, with six places if it has any."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


@filters(
    GROUP,
    ("'2024-05-01T14:00:00+02:00' | to_datetime", "2024-05-01T12:00:00Z"),
    ("'2024-05-01' | to_datetime", "2024-05-01T00:00:00Z"),
    ("1714564800 | to_datetime", "2024-05-01T12:00:00Z"),
    ("'Wed, 01 May 2024 12:00:00 GMT' | to_datetime", "2024-05-01T12:00:00Z"),
    ("'1.5.2024 13:30' | to_datetime('%d.%m.%Y %H:%M')", "2024-05-01T13:30:00Z"),
)
def to_datetime(frame: Frame, value: Value, format: str | None = None) -> str:  # noqa: A002
    """The time in UTC as ISO 8601 text.

    Takes ISO 8601, a date, the form of HTTP and mail, seconds since 1970, or text of a `format`.
    """
    return write(_moment(frame, value, format))


def _moment(frame: Frame, value: Value, form: str | None) -> datetime:
    if form is None:
        return read(frame, value)
    if not isinstance(value, str):
        raise TemplateError(f"a time with a format is text, not {type_name(value)}")
    return _parse(frame, value, form)


@filters(
    GROUP,
    ("'2024-05-01T23:30:00-02:00' | to_date", "2024-05-02"),
    ("'05/31/2024' | to_date('%m/%d/%Y')", "2024-05-31"),
)
def to_date(frame: Frame, value: Value, format: str | None = None) -> str:  # noqa: A002
    """The date (in UTC) as ISO 8601 text."""
    return _moment(frame, value, format).date().isoformat()


@filters(
    GROUP,
    ("'2024-05-01T12:00:00Z' | to_epoch", 1714564800),
    ("'2024-05-01T12:00:00.5Z' | to_epoch", 1714564800.5),
)
def to_epoch(frame: Frame, value: Value) -> int | float:
    """Seconds since 1970-01-01 in UTC; with a point only where they are not whole."""
    return _number((read(frame, value) - _EPOCH) / timedelta(seconds=1))


def _number(value: float) -> int | float:
    return int(value) if value.is_integer() else value


@filters(
    GROUP,
    ("1714564800 | from_epoch", "2024-05-01T12:00:00Z"),
    ("1714564800500 | from_epoch('milliseconds')", "2024-05-01T12:00:00.500000Z"),
)
def from_epoch(frame: Frame, value: int | float, unit: str = "seconds") -> str:
    """The time that is so many seconds (or milliseconds …) after 1970-01-01 in UTC."""
    frame.work(20)
    return write(_shift(_EPOCH, _distance(value, unit)))


def _distance(amount: int | float, unit: str) -> timedelta:
    name = unit if unit in _UNITS else f"{unit[:20]}s"
    if name not in _UNITS:
        raise _fail(f"a unit is one of {', '.join(_UNITS)}")
    try:
        return timedelta(**{name: amount})
    except (OverflowError, ValueError):
        raise _fail("the time between is too long") from None


def _shift(moment: datetime, distance: timedelta) -> datetime:
    try:
        return moment + distance
    except OverflowError:
        raise _fail("the time is not between the years 1 and 9999") from None


@filters(
    GROUP,
    ("'2024-02-28' | date_add(2)", "2024-03-01T00:00:00Z"),
    ("'2024-05-01T12:00:00Z' | date_add(-90, 'minutes')", "2024-05-01T10:30:00Z"),
    ("'2024-01-31' | date_add(1, 'months') | to_date", "2024-02-29"),
)
def date_add(frame: Frame, value: Value, amount: int | float, unit: str = "days") -> str:
    """The time so many days later, or earlier with a minus.

    Units: milliseconds, seconds, minutes, hours, days, weeks, months, years. A month later is the
    same day, or the last one of a shorter month.
    """
    moment = read(frame, value)
    name = unit if unit.endswith("s") else f"{unit[:20]}s"
    if name not in ("months", "years"):
        return write(_shift(moment, _distance(amount, unit)))
    if not isinstance(amount, int) or abs(amount) > 200_000:
        raise _fail(f"{name} are added in whole numbers, at most 200,000")
    return write(_months_later(moment, amount if name == "months" else amount * 12))


def _months_later(moment: datetime, months: int) -> datetime:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise _fail("the time is not between the years 1 and 9999")
    last = 31 if month == 11 else (date(year, month + 2, 1) - timedelta(days=1)).day
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


@filters(
    GROUP,
    ("'2024-05-02' | date_diff('2024-05-01T12:00:00Z')", 43200),
    ("'2024-05-08' | date_diff('2024-05-01', 'days')", 7),
)
def date_diff(frame: Frame, value: Value, other: Value, unit: str = "seconds") -> int | float:
    """How much later the time is than `other`: seconds, or another unit up to weeks."""
    between = read(frame, value) - read(frame, other)
    return _number(between / _distance(1, unit))


@filters(
    GROUP,
    ("'2024-05-01T13:05:09Z' | date_format('%d.%m.%Y %H:%M')", "01.05.2024 13:05"),
    ("'2024-05-01' | date_format('%A %-d %B, week %V')", "Wednesday 1 May, week 18"),
    aliases=("strftime",),
)
def date_format(frame: Frame, value: Value, format: str = "%Y-%m-%d") -> str:  # noqa: A002
    """The time in UTC, written by a format.

    `%Y %y %m %d %H %I %M %S %f %p %j %a %A %b %B %u %w %V %G %z %Z %s %F %T %%`; a minus after
    `%` leaves out leading zeros.
    """
    moment = read(frame, value)
    _check_format(frame, format)
    return re.sub(r"%(-?)(.?)", lambda found: _written(moment, found), format, flags=re.DOTALL)


def _check_format(frame: Frame, form: str) -> None:
    if len(form) > MAX_FORMAT:
        raise _fail(f"the format of a date is longer than {MAX_FORMAT} characters")
    frame.work(2 * len(form))
    frame.memory(len(form) * 40)


def _written(moment: datetime, found: re.Match[str]) -> str:
    write_part = _WRITERS.get(found[2])
    if write_part is None:
        raise _fail(f"there is no directive `{found[0]}` in the format of a date")
    text = write_part(moment)
    return text.lstrip("0") or "0" if found[1] and text.isdecimal() else text


_WRITERS: dict[str, Callable[[datetime], str]] = {
    "Y": lambda m: f"{m.year:04}",
    "y": lambda m: f"{m.year % 100:02}",
    "m": lambda m: f"{m.month:02}",
    "d": lambda m: f"{m.day:02}",
    "H": lambda m: f"{m.hour:02}",
    "I": lambda m: f"{(m.hour + 11) % 12 + 1:02}",
    "M": lambda m: f"{m.minute:02}",
    "S": lambda m: f"{m.second:02}",
    "f": lambda m: f"{m.microsecond:06}",
    "p": lambda m: "AM" if m.hour < 12 else "PM",
    "j": lambda m: f"{m.timetuple().tm_yday:03}",
    "a": lambda m: _DAYS[m.weekday()][:3],
    "A": lambda m: _DAYS[m.weekday()],
    "b": lambda m: _MONTHS[m.month - 1][:3],
    "B": lambda m: _MONTHS[m.month - 1],
    "u": lambda m: str(m.isoweekday()),
    "w": lambda m: str(m.isoweekday() % 7),
    "V": lambda m: f"{m.isocalendar().week:02}",
    "G": lambda m: f"{m.isocalendar().year:04}",
    "z": lambda _: "+0000",
    "Z": lambda _: "UTC",
    "s": lambda m: str((m - _EPOCH) // timedelta(seconds=1)),
    "F": lambda m: f"{m.year:04}-{m.month:02}-{m.day:02}",
    "T": lambda m: f"{m.hour:02}:{m.minute:02}:{m.second:02}",
    "%": lambda _: "%",
}

_NAMES = {
    "a": [day[:3] for day in _DAYS],
    "A": [*_DAYS],
    "b": [month[:3] for month in _MONTHS],
    "B": [*_MONTHS],
    "p": ["AM", "PM"],
}
_DIGITS = {"Y": 4, "y": 2, "m": 2, "d": 2, "H": 2, "I": 2, "M": 2, "S": 2, "f": 6, "s": 12}
_ZONE = re.compile(r"Z|UTC|GMT|[+-]\d\d:?\d\d", re.ASCII)


def _parse(frame: Frame, text: str, form: str) -> datetime:
    """Read a text by a format, directive by directive; blanks match any blanks."""
    _check_format(frame, form)
    shown = repr(text[:60])
    form = form.replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S")
    fields: dict[str, str] = {}
    rest = text[: 4 * MAX_FORMAT].strip()
    for literal, letter in re.findall(r"([^%]+)|%-?(.?)", form.strip(), flags=re.DOTALL):
        part = _directive(rest, letter) if letter not in ("", "%") else None
        if part is not None:
            fields[letter] = part
            rest = rest[len(part) :]
            continue
        rest = _skip(rest, literal or "%", shown, form)
    if rest:
        raise _fail(f"{shown} does not have the format {form!r}")
    try:
        return _assemble(fields)
    except (ValueError, OverflowError):
        raise _fail(f"{shown} is not a time") from None


def _skip(rest: str, literal: str, shown: str, form: str) -> str:
    for sign in literal:
        if sign.isspace():
            rest = rest.lstrip()
        elif rest.startswith(sign):
            rest = rest[1:]
        else:
            raise _fail(f"{shown} does not have the format {form!r}")
    return rest


def _directive(rest: str, letter: str) -> str:
    """The part at the beginning of `rest` that one directive reads."""
    if letter in _DIGITS:
        found = re.match(rf"\d{{1,{_DIGITS[letter]}}}", rest, re.ASCII)
        part = found[0] if found else ""
    elif letter in _NAMES:
        names = [n for n in _NAMES[letter] if rest[: len(n)].lower() == n.lower()]
        part = rest[: len(names[0])] if names else ""
    elif letter in ("z", "Z"):
        found = _ZONE.match(rest)
        part = found[0] if found else ""
    else:
        raise _fail(f"a time cannot be read with the directive `%{letter}`")
    if not part:
        raise _fail(f"`%{letter}` finds nothing to read at {rest[:20]!r}")
    return part


def _assemble(fields: dict[str, str]) -> datetime:
    if "s" in fields:
        return _EPOCH + timedelta(seconds=int(fields["s"]))
    year = int(fields.get("Y", "1900"))
    if "y" in fields:
        short = int(fields["y"])
        year = short + (2000 if short < 69 else 1900)
    month = int(fields.get("m", "1"))
    for letter in ("b", "B"):
        if letter in fields:
            names = [name.lower() for name in _NAMES[letter]]
            month = 1 + names.index(fields[letter].lower())
    moment = datetime(
        year,
        month,
        int(fields.get("d", "1")),
        _hour(fields),
        int(fields.get("M", "0")),
        int(fields.get("S", "0")),
        int(fields.get("f", "0").ljust(6, "0")),
        tzinfo=_offset(fields.get("z") or fields.get("Z")),
    )
    return moment.astimezone(UTC)


def _hour(fields: dict[str, str]) -> int:
    if "I" not in fields:
        return int(fields.get("H", "0"))
    hour = int(fields["I"])
    if not 1 <= hour <= 12:
        raise ValueError
    return hour % 12 + (12 if fields.get("p", "").upper() == "PM" else 0)
