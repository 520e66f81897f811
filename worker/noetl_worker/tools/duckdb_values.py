"""DuckDB's values as JSON and back (rules I2, K35). Runs in the child of `duckdb_host`.

Python's types lose something of DuckDB's times and intervals, so a query's columns that hold any
are cast to text on their way, and the text is turned into ISO 8601 here.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from noetl_core.values import is_storable_integer
from noetl_worker.tools.sql_values import json_float, json_number, short_float

Convert = Callable[[Any], Any]

_BC = re.compile(r"^(\S+) \(BC\)(.*)$")
_ZONE = re.compile(r"([+-]\d\d)(?::?(\d\d))?(?::?(\d\d))?$")
_UNITS = {"year": "Y", "month": "M", "day": "D"}
_SINGLE = re.compile(r"(-?\d+) (year|month|day)s?")
_CLOCK = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(\.\d+)?$")


def as_text(kind: Any) -> str | None:
    """The type that a column is read as instead of its own; None where its own will do."""
    name = kind.id
    if name in ("interval", "date", "time", "time_ns") or name.startswith(("timestamp", "time ")):
        return "VARCHAR"
    if name not in ("list", "array", "struct", "map"):
        return None
    children = dict(kind.children)
    if "" in children:
        # The fields of a row have no names to cast by.
        return None
    below = {
        key: as_text(child) if hasattr(child, "id") else None for key, child in children.items()
    }
    if not any(below.values()):
        return None
    written = {key: below[key] or str(child) for key, child in children.items()}
    match name:
        case "list":
            return f"{written['child']}[]"
        case "array":
            return f"{written['child']}[{children['size']}]"
        case "map":
            return f"MAP({written['key']}, {written['value']})"
        case _:
            fields = [f"{_name(key)} {value}" for key, value in written.items()]
            return f"STRUCT({', '.join(fields)})"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def converter(kind: Any, *, exact: bool) -> Convert:
    """Turns values of a column's type into JSON."""
    name = str(kind.id)
    if str(kind) == "JSON":
        return _parsed
    if name == "interval":
        return _interval
    if name in ("date", "time", "time_ns") or name.startswith(("timestamp", "time ")):
        return _moment
    if name == "list" or name == "array":
        inner = converter(dict(kind.children)["child"], exact=exact)
        return lambda value: None if value is None else [inner(item) for item in value]
    if name == "struct":
        return _struct(kind, exact=exact)
    if name == "map":
        kinds = dict(kind.children)
        keys, values = (converter(kinds[one], exact=exact) for one in ("key", "value"))
        return lambda found: _map(found, keys, values)
    if name == "float":
        return lambda value: None if value is None else json_float(short_float(value))
    return lambda value: plain(value, exact=exact)


def _struct(kind: Any, *, exact: bool) -> Convert:
    names = [name for name, _ in kind.children]
    inner = [converter(child, exact=exact) for _, child in kind.children]

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple):
            return [one(item) for one, item in zip(inner, value, strict=True)]
        return {name: one(value[name]) for name, one in zip(names, inner, strict=True)}

    return convert


def _map(found: Any, keys: Convert, values: Convert) -> Any:
    if found is None:
        return None
    return {_key(keys(key)): values(value) for key, value in found.items()}


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def plain(value: Any, *, exact: bool) -> Any:
    """A value by its Python type."""
    match value:
        case None | bool() | str():
            return value
        case int():
            fits = is_storable_integer(value)
            return value if fits else json_number(Decimal(value), exact=exact)
        case float():
            return json_float(value)
        case Decimal():
            return json_number(value, exact=exact)
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case UUID():
            return str(value)
        case date() | time() | datetime():
            return value.isoformat()
        case timedelta():
            return _interval(value)
        case list() | tuple():
            return [plain(item, exact=exact) for item in value]
        case dict():
            return {_key(plain(k, exact=exact)): plain(v, exact=exact) for k, v in value.items()}
        case _:
            return str(value)


def _parsed(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _moment(value: Any) -> Any:
    """`2024-01-01 10:00:00+00` as ISO 8601; what Python holds is that already."""
    if not isinstance(value, str):
        return None if value is None else value.isoformat()
    era = _BC.match(value)
    text = era[1] + era[2] if era else value
    day, _, clock = text.partition(" ")
    text = f"{day}T{clock}" if clock else day
    if ":" in text:
        text = _ZONE.sub(_zone, text)
    return f"{text} BC" if era else text


def _zone(found: re.Match[str]) -> str:
    seconds = f":{found[3]}" if found[3] else ""
    return f"{found[1]}:{found[2] or '00'}{seconds}"


def _interval(value: Any) -> Any:
    if isinstance(value, timedelta):
        hours, rest = divmod(value.seconds, 3600)
        clock = f"{hours}:{rest // 60:02d}:{rest % 60:02d}.{value.microseconds:06d}"
        value = f"{value.days} days {clock}" if value.days else clock
    if not isinstance(value, str):
        return value
    parts = "".join(f"{n}{_UNITS[unit]}" for n, unit in _SINGLE.findall(value))
    clock = _clock_part(value)
    return f"P{parts}{clock}" if parts or clock else "PT0S"


def _clock_part(value: str) -> str:
    found = _CLOCK.search(value)
    if found is None:
        return ""
    sign, hours, minutes, seconds = found[1], int(found[2]), int(found[3]), int(found[4])
    fraction = (found[5] or "").rstrip("0").rstrip(".")
    text = "".join(f"{sign}{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
    text += f"{sign}{seconds}{fraction}S" if seconds or fraction else ""
    return f"T{text}" if text else ""


def is_native(value: Any) -> bool:
    """Whether DuckDB's own lists and structs hold the value without changing anything in it."""
    return _shape(value) is not None


def _shape(value: Any) -> Any:
    """What two items of one list must have in common; None where there is no such thing."""
    match value:
        case None:
            return "null"
        case bool() | int() | float() | str():
            return type(value)
        case list() if value:
            shapes = [_shape(item) for item in value]
            known = [shape for shape in shapes if shape != "null"]
            same = None not in known and all(shape == known[0] for shape in known)
            return (list, known[0] if known else "null") if same else None
        case dict() if value:
            shapes_by_key = {key: _shape(item) for key, item in value.items()}
            usable = None not in shapes_by_key.values() and len({k.lower() for k in value}) == len(
                value
            )
            return (dict, tuple(shapes_by_key.items())) if usable and "" not in value else None
        case _:
            return None
