"""What the tools `postgres` and `duckdb` share: statements with values, rows as JSON (rule K35).

Both tools compile the author's SQL here, answer `{rows, row_count, columns}`, and keep a large row
set out of memory: beyond a limit its rows are written to a file of the step-run and end up in the
result store, with a reference in place of the list.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict

from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.results import JSON
from noetl_core.sql import BoundSql, CompiledSql, Dialect, SqlError, compile_sql
from noetl_core.templates import TemplateError, TemplateProblems
from noetl_core.values import Value
from noetl_worker.tools.base import ToolContext

HELD_BYTES = 32 * 1024 * 1024
"""JSON of rows up to which they are kept in memory; more than that is stored."""
MAX_ROWS_BYTES = 512 * 1024 * 1024
"""The largest row set that a task may answer with."""
CHUNK_ROWS = 1_000
"""Rows that are asked of a database at a time."""
CONNECT_S = 10.0
"""Seconds to connect, where `spec.timeout` says nothing about it."""

Fetch = Literal["all", "one", "none"]


class SqlFailed(Exception):
    """A task cannot go on; `error` says why."""

    def __init__(self, error: TaskError) -> None:
        super().__init__(error.message)
        self.error = error


class SqlArgs(BaseModel):
    """The keys that both tools take."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    command: str | list[str] | None = None
    params: list[Any] | dict[str, Any] | None = None
    fetch: Fetch | None = None


def connect_timeout(spec: Value) -> float:
    """Seconds to connect; what a task may take as a whole is its driver's to see to (rule D9)."""
    seconds = spec.get("connect") if isinstance(spec, dict) else spec
    if isinstance(seconds, int | float):
        return min(float(seconds), CONNECT_S)
    return CONNECT_S


@functools.lru_cache(maxsize=512)
def _compiled(command: tuple[str, ...], dialect: Dialect) -> CompiledSql:
    return compile_sql(command, dialect)


def bind_all(args: SqlArgs, ctx: ToolContext, dialect: Dialect) -> list[BoundSql]:
    """Every statement with its values, before the first one runs; raises `SqlFailed`."""
    written = args.command or []
    command = (written,) if isinstance(written, str) else tuple(written)
    try:
        compiled = _compiled(command, dialect)
        return [one.bind(args.params, ctx.call.scope) for one in compiled.statements]
    except TemplateError as error:
        raise SqlFailed(_error(ErrorKind.TEMPLATE, str(error), dialect, error.code)) from None
    except TemplateProblems as wrong:
        raise SqlFailed(_error(ErrorKind.TEMPLATE, str(wrong), dialect)) from None
    except SqlError as error:
        raise SqlFailed(_error(ErrorKind.SCHEMA, str(error), dialect)) from None


def _error(kind: ErrorKind, message: str, source: str, code: str | None = None) -> TaskError:
    return TaskError(kind=kind, message=message, code=code, source=source)


def column_names(given: Iterable[str]) -> list[str]:
    """Names of columns with no two alike: the second `id` is `id_2`."""
    names: list[str] = []
    taken: set[str] = set()
    for name in given:
        unique, number = name, 1
        while unique in taken:
            number += 1
            unique = f"{name}_{number}"
        taken.add(unique)
        names.append(unique)
    return names


def json_text(value: Value) -> str:
    """A value as JSON text for a database; raises `ValueError` for what is no JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def json_bytes(value: Value) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        # Whole numbers beyond 64 bits.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(slots=True)
class RowSink:
    """Takes the rows of the last statement, in chunks, and makes the result of the task."""

    columns: list[str]
    fetch: Fetch
    ctx: ToolContext
    held_bytes: int = HELD_BYTES
    count: int = 0
    _rows: list[Value] = field(default_factory=list)
    _size: int = 0
    _file: IO[bytes] | None = None

    @property
    def _path(self) -> Path:
        # Tasks of one step-run share its folder, iterations of a local loop run at once.
        return self.ctx.scratch / f".rows-{id(self):x}.json"

    def add(self, rows: Sequence[Sequence[Value]]) -> None:
        """A chunk of rows, each in the order of the columns."""
        self.count += len(rows)
        if self.fetch == "none" or (self.fetch == "one" and self._rows) or not rows:
            return
        kept = rows if self.fetch == "all" else rows[:1]
        self._keep([dict(zip(self.columns, row, strict=True)) for row in kept])

    def _keep(self, rows: list[Value]) -> None:
        content = json_bytes(rows)
        self._size += len(content)
        if self._size > MAX_ROWS_BYTES:
            message = f"the rows are more than {MAX_ROWS_BYTES // 2**20} MiB of JSON: select less"
            raise SqlFailed(_error(ErrorKind.LIMIT, message, "results", "ROWS_TOO_LARGE"))
        if self._file is not None:
            self._file.write(b"," + self._masked(rows)[1:-1])
            return
        self._rows += rows
        if self._size > self.held_bytes and self.fetch == "all":
            self._file = self._path.open("wb")
            self._file.write(self._masked(self._rows)[:-1])
            self._rows = []

    def _masked(self, rows: list[Value]) -> bytes:
        """What goes into the result store by itself must hold no secret."""
        return json_bytes(self.ctx.redactor.value(rows))

    async def result(self) -> dict[str, Value]:
        """`{rows, row_count, columns}`, with `row` where one was asked for."""
        rows: Value = self._rows
        if self._file is not None:
            self._file.write(b"]")
            self._file.close()
            rows = await self.ctx.results.put_file(self._path, JSON)
        found: dict[str, Value] = {
            "rows": rows,
            "row_count": self.count,
            "columns": list(self.columns),
        }
        if self.fetch == "one":
            found["row"] = self._rows[0] if self._rows else None
        return found

    def close(self) -> None:
        """Leave nothing behind, however the task ended."""
        if self._file is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)
            self._file = None


def affected(count: int, fetch: Fetch, columns: Sequence[str] = ()) -> dict[str, Value]:
    """The result of a statement that returns no rows."""
    found: dict[str, Value] = {"rows": [], "row_count": count, "columns": list(columns)}
    return found if fetch != "one" else {**found, "row": None}
