"""What Postgres answers, as JSON values (rule K35).

Connections get codecs for the types that Python's own would lose something of: times beyond the
years of `datetime`, months of intervals, `infinity`, digits of `real`. All else is turned into JSON
by the type of the Python value.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

from noetl_core.values import Value
from noetl_worker.tools.sql_values import json_float, json_integer, json_number, short_float

DAY_US = 86_400_000_000
_EPOCH = date(2000, 1, 1).toordinal()
_LAST_DAY = date.max.toordinal()
_INFINITE_US, _INFINITE_DAY = 2**63 - 1, 2**31 - 1
_CYCLE = 146_097
"""Days of the 400 years after which the calendar repeats."""

Convert = Callable[[Any], Value]


class Parsed:
    """The value of a `json` column: JSON already."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


def day_text(day: int) -> str:
    """A day counted from 2000-01-01; years before the first as Postgres writes them."""
    ordinal = day + _EPOCH
    if 1 <= ordinal <= _LAST_DAY:
        return date.fromordinal(ordinal).isoformat()
    cycles, within = divmod(ordinal - 1, _CYCLE)
    found = date.fromordinal(within + 1)
    year = found.year + 400 * cycles
    return f"{year if year > 0 else 1 - year:04d}-{found.month:02d}-{found.day:02d}" + (
        " BC" if year <= 0 else ""
    )


def clock_text(microseconds: int) -> str:
    seconds, rest = divmod(microseconds, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{rest:06d}" if rest else text


def _date(found: tuple[int]) -> str:
    day = found[0]
    if abs(day) >= _INFINITE_DAY:
        return "infinity" if day > 0 else "-infinity"
    return day_text(day)


def _timestamp(found: tuple[int], zone: str = "") -> str:
    moment = found[0]
    if abs(moment) >= _INFINITE_US:
        return "infinity" if moment > 0 else "-infinity"
    day, within = divmod(moment, DAY_US)
    text, _, era = day_text(day).partition(" ")
    return f"{text}T{clock_text(within)}{zone}{' ' if era else ''}{era}"


def _timestamptz(found: tuple[int]) -> str:
    return _timestamp(found, "+00:00")


def _time(found: tuple[int]) -> str:
    return clock_text(found[0])


def _timetz(found: tuple[int, int]) -> str:
    west = found[1]
    minutes, seconds = divmod(abs(west), 60)
    zone = f"{'-' if west > 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return clock_text(found[0]) + zone + (f":{seconds:02d}" if seconds else "")


def interval_text(months: int, days: int, microseconds: int) -> str:
    """An ISO 8601 duration; each part has its own sign, as in Postgres."""
    ends = {(2**31 - 1, 2**63 - 1): "infinity", (-(2**31), -(2**63)): "-infinity"}
    if (months, microseconds) in ends:
        return ends[months, microseconds]
    sign = -1 if months < 0 else 1
    years, left = divmod(abs(months), 12)
    text = "".join(f"{sign * n}{unit}" for n, unit in ((years, "Y"), (left, "M")) if n)
    text += f"{days}D" if days else ""
    clock = _clock_part(microseconds)
    return "P" + text + clock if text or clock else "PT0S"


def _clock_part(microseconds: int) -> str:
    sign = "-" if microseconds < 0 else ""
    seconds, rest = divmod(abs(microseconds), 1_000_000)
    parts = [(seconds // 3600, "H"), (seconds // 60 % 60, "M")]
    text = "".join(f"{sign}{n}{unit}" for n, unit in parts if n)
    if seconds % 60 or rest:
        fraction = f".{rest:06d}".rstrip("0") if rest else ""
        text += f"{sign}{seconds % 60}{fraction}S"
    return f"T{text}" if text else ""


def _real(found: bytes) -> float:
    return short_float(struct.unpack("!f", found)[0])


def _number(text: str) -> Any:
    found = float(text)
    return found if abs(found) != float("inf") else text


def _integer(text: str) -> Any:
    return json_integer(int(text)) if len(text) < 400 else text


def parsed_json(text: str | bytes) -> Value:
    found: Value = json.loads(text, parse_float=_number, parse_int=_integer)
    return found


def _json(found: bytes) -> Parsed:
    return Parsed(parsed_json(found))


def _jsonb(found: bytes) -> Parsed:
    return Parsed(parsed_json(found[1:]))


CHAR = 18
"""The type `"char"`, which the driver yields as bytes and lets nobody change."""


def char_text(found: bytes | None) -> Value:
    return None if found is None else found.decode("latin-1").rstrip("\0")


def _as_it_is(value: object) -> Any:
    return value


_CODECS: dict[str, tuple[str, Callable[[Any], object], Callable[[Any], Any]]] = {
    "date": ("tuple", _date, _as_it_is),
    "timestamp": ("tuple", _timestamp, _as_it_is),
    "timestamptz": ("tuple", _timestamptz, _as_it_is),
    "time": ("tuple", _time, _as_it_is),
    "timetz": ("tuple", _timetz, _as_it_is),
    "interval": ("tuple", lambda found: interval_text(*found), _as_it_is),
    "float4": ("binary", _real, lambda value: struct.pack("!f", value)),
    "json": ("binary", _json, str.encode),
    "jsonb": ("binary", _jsonb, lambda text: b"\x01" + text.encode()),
}


async def set_codecs(connection: Any) -> None:
    for name, (form, decoder, encoder) in _CODECS.items():
        await connection.set_type_codec(
            name, schema="pg_catalog", format=form, decoder=decoder, encoder=encoder
        )


def converter(*, exact: bool) -> Convert:
    """Turns what the driver yields into JSON; `exact` is `spec.numeric: text`."""
    import asyncpg

    def convert(value: Any) -> Value:
        found = by_type.get(type(value))
        if found is not None:
            return found(value)
        if isinstance(value, tuple | asyncpg.Path | asyncpg.Polygon):
            return _geometry(value, convert)
        return str(value)

    def listed(value: Any) -> Value:
        return [convert(item) for item in value]

    by_type: dict[type, Convert] = {
        type(None): _as_it_is,
        bool: _as_it_is,
        int: _as_it_is,
        str: _as_it_is,
        float: json_float,
        Decimal: lambda value: json_number(value, exact=exact),
        bytes: lambda value: base64.b64encode(value).decode(),
        UUID: str,
        list: listed,
        tuple: listed,
        Parsed: lambda value: value.value,
        asyncpg.Record: lambda value: {name: convert(one) for name, one in value.items()},
        asyncpg.Range: lambda value: _range(value, convert),
        asyncpg.BitString: lambda value: value.as_string().replace(" ", ""),
    }
    return convert


def _range(value: Any, convert: Convert) -> str:
    if value.isempty:
        return "empty"
    ends = ["" if end is None else _end(convert(end)) for end in (value.lower, value.upper)]
    opening, closing = "[" if value.lower_inc else "(", "]" if value.upper_inc else ")"
    return f"{opening}{ends[0]},{ends[1]}{closing}"


def _end(value: Value) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if text and not any(sign in text for sign in ' ,"\\()[]'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'


def _geometry(value: Any, convert: Convert) -> Value:
    """Points and what is made of them, as Postgres writes them."""
    name = type(value).__name__
    match name:
        case "Point":
            return _point(value)
        case "Box" | "LineSegment":
            written = ",".join(map(_point, value))
            return written if name == "Box" else f"[{written}]"
        case "Path" | "Polygon":
            written = ",".join(map(_point, value.points))
            is_open = name == "Path" and not value.is_closed
            return f"[{written}]" if is_open else f"({written})"
        case "Line":
            return "{" + ",".join(map(_short, value)) + "}"
        case "Circle":
            return f"<{_point(value.center)},{_short(value.radius)}>"
        case _:
            return [convert(item) for item in value]


def _point(value: Any) -> str:
    return f"({_short(value[0])},{_short(value[1])})"


def _short(value: float) -> str:
    return repr(value).removesuffix(".0")
