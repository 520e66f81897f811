"""`duckdb`: SQL on DuckDB, in memory or on a file of the step-run, with Postgres attached (rules
I2, K35, K44).

Statements run in a process of their own (`duckdb_hosts`) that sees the step-run's folder and the
attached databases, and nothing else. Being cancelled kills it, and ends what it had asked of
Postgres.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from pydantic import BaseModel, Field, field_validator

from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.sql import BoundSql
from noetl_core.values import Value
from noetl_worker.keychain import Credential
from noetl_worker.tools import duckdb_attach, duckdb_errors, duckdb_values
from noetl_worker.tools.base import ToolContext
from noetl_worker.tools.duckdb_hosts import Host, HostEnded, Hosts
from noetl_worker.tools.postgres_connect import credential_of, session_of
from noetl_worker.tools.sql_common import (
    RowSink,
    SqlArgs,
    SqlFailed,
    affected,
    bind_all,
    column_names,
    connect_timeout,
    json_text,
)

SETTINGS = {"memory_limit": "1GB", "threads": "2", "max_temp_directory_size": "10GB"}
"""What one task may use; what does not fit into memory goes to the step-run's folder."""
END_S = 3.0
"""How long ending what a killed task left on Postgres may take."""


class DuckdbArgs(SqlArgs):
    command: str | list[str]
    database: str | None = Field(None, min_length=1)
    attach: list[str] = Field(default_factory=list)

    @field_validator("attach", mode="before")
    @classmethod
    def _one_or_many(cls, given: Any) -> Any:
        if given is None:
            return []
        return [given] if isinstance(given, str) else given


class DuckdbTool:
    """Runs statements, answers `{rows, row_count, columns}`."""

    kind: ClassVar[str] = "duckdb"
    Args: ClassVar[type[BaseModel]] = DuckdbArgs

    async def run(self, args: DuckdbArgs, ctx: ToolContext) -> Outcome:
        credentials: list[Credential] = []
        try:
            statements = bind_all(args, ctx, "duckdb")
            if not statements:
                return Outcome(result=affected(0, args.fetch or "all"))
            names = dict.fromkeys(args.attach)
            credentials += [credential_of(ctx, name, self.kind) for name in names]
            return Outcome(result=await _Work(args, ctx, statements, credentials).done())
        except SqlFailed as failure:
            return Outcome(error=duckdb_errors.masked(failure.error, credentials))


class _Work:
    """One task."""

    def __init__(
        self,
        args: DuckdbArgs,
        ctx: ToolContext,
        statements: list[BoundSql],
        credentials: list[Credential],
    ) -> None:
        self._args, self._ctx = args, ctx
        self._statements, self._credentials = statements, credentials
        self._application = f"noetl-duckdb-{uuid4().hex}"

    async def done(self) -> dict[str, Value]:
        request = self._request()
        try:
            async with (
                self._ctx.pools.use("duckdb", _make_hosts, Hosts.close) as hosts,
                hosts.host() as host,
            ):
                await host.ask(request)
                answer = await self._answer(host)
        except HostEnded:
            message = "DuckDB ended unexpectedly: it crashed, or was killed for its use of memory"
            raise SqlFailed(_error(ErrorKind.LIMIT, message, "DUCKDB_ENDED")) from None
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._end_on_postgres()))
            raise
        if isinstance(answer, TaskError):
            raise SqlFailed(answer)
        return answer

    def _request(self) -> dict[str, Any]:
        connect_s = connect_timeout(self._ctx.spec.get("timeout"))
        folder = self._ctx.scratch.resolve()
        return {
            "folder": str(folder),
            "database": _database(folder, self._args.database),
            "settings": SETTINGS,
            "fetch": self._args.fetch or "all",
            "numeric": self._ctx.spec.get("numeric"),
            "attach": [
                duckdb_attach.attachment(one, self._application, connect_s)
                for one in self._credentials
            ],
            "statements": [_statement(one) for one in self._statements],
        }

    async def _answer(self, host: Host) -> dict[str, Value] | TaskError:
        """What the host found; it may be used again. An exception says that it may not."""
        fetch = self._args.fetch or "all"
        sink = RowSink([], fetch, self._ctx)
        try:
            while True:
                match await host.answer():
                    case {"columns": names}:
                        sink.columns = column_names(names)
                    case {"rows": rows}:
                        sink.add(rows)
                    case {"end": {"affected": count}}:
                        return affected(count, fetch)
                    case {"end": {"count": count}}:
                        sink.count = count
                        return await sink.result()
                    case {"error": error}:
                        return duckdb_errors.classified(error["kind"], error["message"])
        finally:
            sink.close()

    async def _end_on_postgres(self) -> None:
        """A killed host does not tell the server, which would go on with its statement."""
        end = (
            "SELECT pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity"
            " WHERE application_name = $1"
        )
        for credential in self._credentials:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(END_S), session_of(credential, self._ctx) as session:
                    await session.connection.fetch(end, self._application)


async def _make_hosts() -> Hosts:
    return Hosts()


def _error(kind: ErrorKind, message: str, code: str | None = None) -> TaskError:
    return TaskError(kind=kind, message=message, code=code, source="duckdb")


def _database(folder: Path, name: str | None) -> str:
    """The database's file, which is nowhere but in the step-run's folder (rule K44)."""
    if name is None or name == ":memory:":
        return ":memory:"
    path = (folder / name).resolve() if "\0" not in name else folder
    if ":" in name or path == folder or not path.is_relative_to(folder):
        message = f"`database` must be a file in the folder of the step-run, not {name!r}"
        raise SqlFailed(_error(ErrorKind.SCHEMA, message, "DUCKDB_PATH"))
    return str(path)


def _statement(bound: BoundSql) -> dict[str, Value]:
    """The statement with its values as DuckDB takes them; what it could not hold goes as JSON."""
    values: list[Value] = []
    as_json: set[int] = set()
    for index, value in enumerate(bound.values):
        if isinstance(value, list | dict) and not duckdb_values.is_native(value):
            as_json.add(index + 1)
            values.append(_json(value))
        else:
            values.append(value)
    text = "".join(
        part if isinstance(part, str) else f"(${part}::JSON)" if part in as_json else f"${part}"
        for part in bound.parts
    )
    return {"text": text, "values": values}


def _json(value: Value) -> str:
    try:
        return json_text(value)
    except ValueError:
        message = "a value is not JSON: it holds NaN or Infinity"
        raise SqlFailed(_error(ErrorKind.SCHEMA, message)) from None
