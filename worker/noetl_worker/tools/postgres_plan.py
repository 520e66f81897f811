"""Which type each parameter of a statement has, and how its value is written (rules I1, K35).

The server is asked first: it fixes the type of most parameters (a column's, a function's). One that
it leaves open, or takes for text though the value is none, gets the type of the value: bigint,
double precision, boolean, jsonb. What this comes to is kept with the prepared statement, per
session and kinds of values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from noetl_core.sql import BoundSql
from noetl_core.values import Value
from noetl_worker.tools import postgres_errors
from noetl_worker.tools.postgres_connect import Session
from noetl_worker.tools.postgres_types import NoLiteral, PgType, writer
from noetl_worker.tools.postgres_values import CHAR
from noetl_worker.tools.sql_common import SqlFailed, column_names, json_text

_OPEN = frozenset({"42P18", "42P08"})
"""The server says which parameter has no type, or two."""
_RETYPE = _OPEN | {"42804", "42725", "42883", "42846", "42809"}
"""Errors that go away, maybe, when parameters say what they are."""
_NUMBER = re.compile(r"\$(\d+)")

Encoder = Callable[[Value], object]


@dataclass(frozen=True, slots=True)
class Plan:
    """A prepared statement and how its values are encoded."""

    statement: Any
    columns: list[str]
    encoders: tuple[Encoder, ...]
    chars: tuple[int, ...] = ()
    """Columns of the type `"char"`."""
    fresh: bool = False
    """Made just now: what the server says about it is not due to an old plan."""

    def encoded(self, values: tuple[Value, ...]) -> list[object]:
        """Raises `SqlFailed` for a value that cannot be what the server wants."""
        try:
            return [encode(one) for encode, one in zip(self.encoders, values, strict=True)]
        except NoLiteral as error:
            raise SqlFailed(postgres_errors.schema(str(error), "PG_22P02")) from None


def kind_of(value: Value) -> str:
    """What of a value decides how it is written."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int():
            for name, bits in (("int2", 15), ("int4", 31), ("int8", 63)):
                if -(2**bits) <= value < 2**bits:
                    return name
            return "numeric"
        case float():
            return "whole" if value.is_integer() and abs(value) < 2**53 else "float"
        case str():
            return "text"
        case list():
            return "list" + _items(value)
        case dict():
            return "map"


def _items(items: list[Value]) -> str:
    kinds = {kind_of(item) for item in items} - {"null"}
    if kinds == {"text"} or kinds == {"bool"}:
        return f":{kinds.pop()}"
    if kinds and kinds <= {"int2", "int4", "int8"}:
        return ":int"
    return ":float" if kinds and kinds <= {"int2", "int4", "int8", "whole", "float"} else ""


def _own_type(kind: str) -> str:
    """The type of a value that nothing else decides (rule K35)."""
    if kind.startswith(("list", "map")):
        return "jsonb"
    names = {"bool": "boolean", "numeric": "numeric", "float": "double precision"}
    names |= {"whole": "double precision", "int2": "bigint", "int4": "bigint", "int8": "bigint"}
    return names.get(kind, "text")


def _other_type(kind: str) -> str:
    """Where that fits nowhere: as a number in SQL would be, and lists as arrays."""
    arrays = {"list:int": "bigint[]", "list:text": "text[]", "list:bool": "boolean[]"}
    others = {"int2": "integer", "int4": "integer", "list:float": "double precision[]"}
    return (arrays | others).get(kind) or _own_type(kind)


async def plan_of(session: Session, bound: BoundSql) -> Plan:
    """The plan of a statement, made or remembered; raises what the driver raises."""
    key = (bound.text, bound.literals, *map(kind_of, bound.values))
    found: Plan | None = session.plans.get(key)
    if found is None:
        found = await _Planner(session, bound).plan()
        session.plans.put(key, found)
        return replace(found, fresh=True)
    return found


class _Planner:
    def __init__(self, session: Session, bound: BoundSql) -> None:
        self._session, self._bound = session, bound
        self._connection = session.connection
        self._kinds = [kind_of(value) for value in bound.values]

    async def plan(self) -> Plan:
        statement, casts = await self._determined()
        attributes = statement.get_attributes()
        chars = (i for i, one in enumerate(attributes) if one.type.oid == CHAR)
        types = await self._types(statement)
        statement, casts, types = await self._fitting(statement, casts, types)
        encoders = [self._direct(index, kind) for index, kind in enumerate(types)]
        if any(encoder is None for encoder in encoders):
            written = {
                index: f"text::{kind.name}"
                for index, (kind, encoder) in enumerate(zip(types, encoders, strict=True))
                if encoder is None
            }
            statement = await self._prepared({**casts, **written})
        return Plan(
            statement,
            column_names(one.name for one in attributes),
            tuple(
                encoder or self._written(index, kind)
                for index, (kind, encoder) in enumerate(zip(types, encoders, strict=True))
            ),
            tuple(chars),
        )

    async def _types(self, statement: Any) -> list[PgType]:
        parameters = statement.get_parameters()
        given = len(self._bound.values)
        if len(parameters) > given:
            message = f"the statement has ${len(parameters)}, but `params` does not give it"
            raise SqlFailed(postgres_errors.schema(message, "PG_42P02"))
        return await self._session.catalog.load(
            self._connection, [parameter.oid for parameter in parameters]
        )

    async def _determined(self) -> tuple[Any, dict[int, str]]:
        """The statement with a type for each parameter, and the casts that this took."""
        import asyncpg

        casts: dict[int, str] = {}
        try:
            while True:
                try:
                    return await self._prepared(casts), casts
                except asyncpg.PostgresError as error:
                    found = _NUMBER.search(error.args[0]) if error.sqlstate in _OPEN else None
                    index = int(found[1]) - 1 if found else -1
                    if index in casts or not 0 <= index < len(self._kinds):
                        raise
                    casts[index] = _own_type(self._kinds[index])
        except asyncpg.PostgresError as error:
            if error.sqlstate not in _RETYPE:
                raise
            everything = list(range(len(self._kinds)))
            better = await self._first_that_works(self._typed(everything), {})
            better = better or await self._first_that_works(everything, {})
            if better is None:
                raise
            return better

    def _typed(self, indices: list[int]) -> list[int]:
        """Those whose values say more about a type than a quoted literal does."""
        return [index for index in indices if self._kinds[index] not in ("null", "text")]

    async def _first_that_works(
        self, indices: list[int], casts: Mapping[int, str]
    ) -> tuple[Any, dict[int, str]] | None:
        """Prepared with casts of these parameters to the types of their values."""
        import asyncpg

        for own in (_own_type, _other_type) if indices else ():
            wanted = {**casts, **{index: own(self._kinds[index]) for index in indices}}
            try:
                return await self._prepared(wanted), wanted
            except asyncpg.PostgresError as error:
                if error.sqlstate[:2] not in ("42", "22"):
                    raise
        return None

    async def _fitting(
        self, statement: Any, casts: dict[int, str], types: list[PgType]
    ) -> tuple[Any, dict[int, str], list[PgType]]:
        """The same with the values' own types where the server's guess does not hold them."""
        misfits = [i for i, kind in enumerate(types) if i not in casts and not self._fits(i, kind)]
        groups = [misfits] if len(misfits) < 2 else [misfits, *([one] for one in misfits)]
        for group in groups if misfits else ():
            better = await self._first_that_works(group, casts)
            if better is not None:
                statement, casts = better
                if group == misfits:
                    break
        return statement, casts, await self._types(statement) if misfits else types

    def _fits(self, index: int, kind: PgType) -> bool:
        given, value = self._kinds[index], self._bound.values[index]
        if given in ("null", "text"):
            return True
        match kind.family:
            case "text":
                return False
            case "int":
                low, high = kind.range
                return (given == "whole" or given.startswith("int") or given == "numeric") and (
                    isinstance(value, int | float) and low <= value <= high
                )
            case "float" | "numeric":
                return not given.startswith(("bool", "list", "map"))
            case "array" | "multirange":
                return given.startswith("list")
            case "composite":
                return given.startswith(("list", "map"))
            case _:
                return True

    def _direct(self, index: int, kind: PgType) -> Encoder | None:
        """How the driver takes the value as it is; None where the server reads it as text."""
        given = self._kinds[index]
        match kind.family, given:
            case _, "null":
                return _as_it_is
            case (("text" | "json"), "text"):
                return _as_it_is
            case "json", _:
                return _json
            case ("bool", "bool") | ("int", "int2" | "int4" | "int8"):
                return _as_it_is if kind.family == "bool" or self._fits(index, kind) else None
            case "int", "whole":
                return _whole if self._fits(index, kind) else None
            case "float", ("int2" | "int4" | "int8" | "whole" | "float"):
                return _float if "float8" in kind.name else None
            case "numeric", ("int2" | "int4" | "int8" | "numeric" | "whole" | "float"):
                return _decimal
            case _:
                return None

    def _written(self, index: int, kind: PgType) -> Encoder:
        if index in self._bound.literals:
            return _as_it_is
        return writer(kind)

    async def _prepared(self, casts: Mapping[int, str]) -> Any:
        """Prepare the statement; inside a transaction an error must not end that."""
        text = self._text(casts)
        guarded = bool(self._kinds) and self._connection.is_in_transaction()
        if not guarded:
            return await self._connection.prepare(text)
        await self._connection.execute("SAVEPOINT noetl_plan")
        try:
            statement = await self._connection.prepare(text)
        except Exception:
            await self._connection.execute("ROLLBACK TO SAVEPOINT noetl_plan")
            raise
        await self._connection.execute("RELEASE SAVEPOINT noetl_plan")
        return statement

    def _text(self, casts: Mapping[int, str]) -> str:
        return "".join(
            part if isinstance(part, str) else _parameter(part, casts.get(part - 1))
            for part in self._bound.parts
        )


def _parameter(number: int, cast: str | None) -> str:
    return f"${number}" if cast is None else f"(${number}::{cast})"


def _as_it_is(value: Value) -> object:
    return value


def _json(value: Value) -> object:
    try:
        return json_text(value)
    except ValueError:
        raise NoLiteral("a value is not JSON: it holds NaN or Infinity") from None


def _whole(value: Value) -> object:
    return int(value) if isinstance(value, float) else value


def _float(value: Value) -> object:
    return float(value) if isinstance(value, int) else value


def _decimal(value: Value) -> object:
    return Decimal(str(value))
