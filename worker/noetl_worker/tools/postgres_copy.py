"""`rows` into a `table` at the speed of COPY (rule I1).

Rows are written as COPY's text, column by column the way a literal of the column's type is, and
the server reads them in one go.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from noetl_core.sql import quoted_identifier
from noetl_core.values import Value, type_name
from noetl_worker.tools import postgres_errors
from noetl_worker.tools.postgres_connect import Session
from noetl_worker.tools.postgres_types import NoLiteral, PgType, copy_field, literal
from noetl_worker.tools.sql_common import SqlFailed

CHUNK_BYTES = 256 * 1024
"""How much is written before it is sent."""

_TABLE = """
SELECT c.oid, n.nspname, c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = coalesce(to_regclass($1), to_regclass($2))
"""
_COLUMNS = """
SELECT attname, atttypid FROM pg_catalog.pg_attribute
WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped
"""


def columns_of(rows: list[Value]) -> list[str]:
    """Every key of the rows, in the order they are met; raises `SqlFailed`."""
    names: dict[str, None] = {}
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            message = f"`rows[{index}]` must be a mapping of columns, not {type_name(row)}"
            raise SqlFailed(postgres_errors.schema(message))
        names.update(dict.fromkeys(row))
    if rows and not names:
        raise SqlFailed(postgres_errors.schema("`rows` name no column"))
    return list(names)


async def insert(session: Session, table: str, rows: list[Value]) -> int:
    """Insert all rows, inside of the transaction that is open; answers how many."""
    names = columns_of(rows)
    if not rows:
        return 0
    connection = session.connection
    found = await _found(connection, table)
    types = await _types(session, found, table, names)
    status = await connection.copy_to_table(
        found["relname"],
        schema_name=found["nspname"],
        columns=names,
        source=_sent(_written(rows, names, types)),
        format="text",
    )
    return int(status.split()[-1])


async def _found(connection: Any, table: str) -> Any:
    """The table, by its name as SQL reads it, or exactly as it is written."""
    import asyncpg

    try:
        exact = ".".join(map(quoted_identifier, table.split(".")))
        found = await connection.fetchrow(_TABLE, table, exact)
    except Exception as error:
        if isinstance(error, asyncpg.PostgresError) and error.sqlstate[:2] not in ("42", "0A"):
            raise
        found = None
    if found is None:
        message = f"there is no table {table!r}"
        raise SqlFailed(postgres_errors.schema(message, "PG_42P01"))
    return found


async def _types(session: Session, found: Any, table: str, names: list[str]) -> list[PgType]:
    rows = await session.connection.fetch(_COLUMNS, found["oid"])
    numbers = {row["attname"]: row["atttypid"] for row in rows}
    unknown = [name for name in names if name not in numbers]
    if unknown:
        message = f"the table {table!r} has no column {unknown[0]!r}"
        raise SqlFailed(postgres_errors.schema(message, "PG_42703"))
    return await session.catalog.load(session.connection, [numbers[name] for name in names])


def _written(rows: list[Value], names: list[str], types: list[PgType]) -> Iterator[bytes]:
    held: list[str] = []
    size = 0
    for index, row in enumerate(rows):
        assert isinstance(row, dict)
        try:
            fields = [
                copy_field(literal(row.get(name), kind))
                for name, kind in zip(names, types, strict=True)
            ]
        except NoLiteral as error:
            message = f"`rows[{index}]`: {error}"
            raise SqlFailed(postgres_errors.schema(message, "PG_22P02")) from None
        line = "\t".join(fields) + "\n"
        held.append(line)
        size += len(line)
        if size > CHUNK_BYTES:
            yield _bytes(held)
            held, size = [], 0
    yield _bytes(held)


def _bytes(lines: list[str]) -> bytes:
    try:
        return "".join(lines).encode()
    except UnicodeEncodeError:
        message = "a text in `rows` is not valid Unicode"
        raise SqlFailed(postgres_errors.schema(message, "PG_22021")) from None


async def _sent(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
