"""JSON values as Postgres reads them (rule K35).

Where the server fixes the type of a parameter or a column, a value is written the way a quoted
literal of that type is, and the server does the rest: so numbers, ISO times, uuids, lists for
arrays and mappings for json all arrive as what they are. `Catalog` knows the types of a server as
far as writing them needs it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from noetl_core.values import Value
from noetl_worker.tools.sql_common import json_text

_FAMILIES = {
    **dict.fromkeys(["int2", "int4", "int8", "oid"], "int"),
    **dict.fromkeys(["float4", "float8"], "float"),
    **dict.fromkeys(["text", "varchar", "bpchar", "name", "citext", "char"], "text"),
    **dict.fromkeys(["json", "jsonb"], "json"),
    "bool": "bool",
    "numeric": "numeric",
    "bytea": "bytea",
}
_RANGES = {
    "int2": (-(2**15), 2**15 - 1),
    "int4": (-(2**31), 2**31 - 1),
    "int8": (-(2**63), 2**63 - 1),
    "oid": (0, 2**32 - 1),
}


class NoLiteral(ValueError):
    """A value that cannot be written as the type; the text says why."""


@dataclass(frozen=True, slots=True)
class PgType:
    """One type of a server."""

    name: str
    """In quotes, with its schema."""
    family: str
    range: tuple[int, int] = (0, 0)
    element: PgType | None = None
    delimiter: str = ","
    fields: tuple[tuple[str, PgType], ...] = ()


_TYPES = """
SELECT t.oid, quote_ident(n.nspname) || '.' || quote_ident(t.typname) AS name, t.typname,
       t.typtype::text AS kind, t.typcategory::text AS category, t.typbasetype AS base,
       CASE WHEN t.typcategory = 'A' THEN t.typelem ELSE 0 END AS element,
       coalesce(e.typdelim::text, ',') AS delimiter,
       f.names, f.types
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(a.attname ORDER BY a.attnum), '{}') AS names,
           coalesce(array_agg(a.atttypid ORDER BY a.attnum), '{}') AS types
    FROM pg_catalog.pg_attribute a
    WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
) f
WHERE t.oid = ANY($1::oid[])
"""


class Catalog:
    """The types of one server, read as they are met."""

    def __init__(self) -> None:
        self._rows: dict[int, Any] = {}
        self._types: dict[int, PgType] = {}

    def clear(self) -> None:
        """Forget types that a statement may have changed."""
        self._rows.clear()
        self._types.clear()

    async def load(self, connection: Any, oids: Iterable[int]) -> list[PgType]:
        """The types of these numbers, in their order."""
        wanted = list(oids)
        missing = set(wanted) - self._rows.keys()
        while missing:
            found = await connection.fetch(_TYPES, sorted(missing))
            self._rows.update({row["oid"]: row for row in found})
            below = {oid for row in found for oid in (row["base"], row["element"], *row["types"])}
            missing = below - self._rows.keys() - {0}
        return [self._type(oid) for oid in wanted]

    def _type(self, oid: int) -> PgType:
        if oid not in self._types:
            self._types[oid] = self._made(self._rows[oid])
        return self._types[oid]

    def _made(self, row: Any) -> PgType:
        match row["kind"]:
            case "d":
                base = self._type(row["base"])
                return PgType(
                    row["name"], base.family, base.range, base.element, base.delimiter, base.fields
                )
            case "c":
                pairs = zip(row["names"], map(self._type, row["types"]), strict=True)
                return PgType(row["name"], "composite", fields=tuple(pairs))
            case "m":
                return PgType(row["name"], "multirange")
        if row["element"]:
            element = self._type(row["element"])
            return PgType(row["name"], "array", element=element, delimiter=row["delimiter"])
        family = _FAMILIES.get(row["typname"], "other")
        return PgType(row["name"], family, _RANGES.get(row["typname"], (0, 0)))


def literal(value: Value, kind: PgType) -> str | None:
    """The text by which the server reads the value as this type; raises `NoLiteral`."""
    match value:
        case None:
            return None
        case str():
            return "\\x" + decoded(value).hex() if kind.family == "bytea" else value
        case _ if kind.family == "json":
            return _json(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            whole = kind.family == "int" and value.is_integer()
            return str(int(value)) if whole else repr(value)
        case list() if kind.family == "array" and kind.element is not None:
            return _array(value, kind.element, kind.delimiter)
        case list() if kind.family == "multirange":
            return "{" + ",".join(map(str, value)) + "}"
        case list() | dict() if kind.family == "composite":
            return _composite(value, kind)
        case _:
            return _json(value)


def decoded(value: str) -> bytes:
    """The bytes of a base64 text, or of the `\\x…` that Postgres itself writes."""
    try:
        if value.startswith("\\x"):
            return bytes.fromhex(value[2:])
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise NoLiteral("a value for bytea is not base64") from None


def _json(value: Value) -> str:
    try:
        return json_text(value)
    except ValueError:
        raise NoLiteral("a value is not JSON: it holds NaN or Infinity") from None


def _array(items: list[Value], element: PgType, delimiter: str) -> str:
    written = [_element(item, element, delimiter) for item in items]
    return "{" + delimiter.join(written) + "}"


def _element(item: Value, element: PgType, delimiter: str) -> str:
    if isinstance(item, list) and element.family not in ("json", "composite", "multirange"):
        return _array(item, element, delimiter)
    text = literal(item, element)
    return "NULL" if text is None else _quoted(text)


def _composite(value: list[Value] | dict[str, Value], kind: PgType) -> str:
    if isinstance(value, dict):
        names = [name for name, _ in kind.fields]
        unknown = sorted(set(value) - set(names))
        if unknown:
            raise NoLiteral(f"{kind.name} has no field {unknown[0]}")
        value = [value.get(name) for name in names]
    if len(value) != len(kind.fields):
        raise NoLiteral(f"{kind.name} has {len(kind.fields)} fields, not {len(value)}")
    texts = [literal(one, of) for one, (_, of) in zip(value, kind.fields, strict=True)]
    return "(" + ",".join("" if text is None else _quoted(text) for text in texts) + ")"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_COPY = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def copy_field(text: str | None) -> str:
    """A literal as a field of COPY's text format."""
    return "\\N" if text is None else text.translate(_COPY)


Writer = Callable[[Value], str | None]


def writer(kind: PgType) -> Writer:
    return lambda value: literal(value, kind)
