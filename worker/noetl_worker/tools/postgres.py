"""`postgres`: SQL on a Postgres server (rules I1, K35).

One statement runs by itself; several run in one transaction, `rows` for a `table` included. The
result is the last one's. Values are bound, never spliced; what they become is in `postgres_plan`.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from pydantic import BaseModel, Field, model_validator

from noetl_core.outcomes import Outcome
from noetl_core.sql import BoundSql
from noetl_core.values import Value
from noetl_worker.tools import postgres_copy, postgres_errors, postgres_values
from noetl_worker.tools.base import ToolContext
from noetl_worker.tools.postgres_connect import Session, credential_of, session_of
from noetl_worker.tools.postgres_plan import Plan, plan_of
from noetl_worker.tools.sql_common import (
    CHUNK_ROWS,
    Fetch,
    RowSink,
    SqlArgs,
    SqlFailed,
    affected,
    bind_all,
)

_WORD = re.compile(r"(?:\s+|--[^\n]*\n|/\*.*?\*/)*([A-Za-z]+|\()", re.DOTALL)
_BY_CURSOR = frozenset(["select", "with", "values", "table", "insert", "update", "delete", "merge"])
"""Statements whose rows can be asked for piece by piece, which takes a transaction."""
_DEFINING = frozenset(["create", "alter", "drop", "do", "call", "import", "truncate", "set"])
"""Statements after which other statements may mean something else."""


class PostgresArgs(SqlArgs):
    auth: str = Field(min_length=1)
    table: str | None = Field(None, min_length=1)
    rows: list[Any] | None = None

    @model_validator(mode="after")
    def _something_to_do(self) -> PostgresArgs:
        if (self.rows is None) != (self.table is None):
            raise ValueError("`table` and `rows` go together")
        if self.command is None and self.rows is None:
            raise ValueError("`command` is missing")
        return self


class PostgresTool:
    """Runs statements, answers `{rows, row_count, columns}`."""

    kind: ClassVar[str] = "postgres"
    Args: ClassVar[type[BaseModel]] = PostgresArgs

    async def run(self, args: PostgresArgs, ctx: ToolContext) -> Outcome:
        import asyncpg

        try:
            statements = bind_all(args, ctx, "postgres")
            credential = credential_of(ctx, args.auth, self.kind)
            async with session_of(credential, ctx) as session:
                return Outcome(result=await _Work(session, args, ctx, statements).done())
        except SqlFailed as failure:
            return postgres_errors.outcome(failure.error)
        except asyncpg.PostgresError as error:
            return postgres_errors.outcome(postgres_errors.of_server(error))
        except UnicodeEncodeError:
            told = postgres_errors.schema("a text is not valid Unicode", "PG_22021")
            return postgres_errors.outcome(told)
        except (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as error:
            return postgres_errors.outcome(postgres_errors.of_connecting(error))


class _Work:
    """One task on one session."""

    def __init__(
        self, session: Session, args: PostgresArgs, ctx: ToolContext, statements: list[BoundSql]
    ) -> None:
        self._session, self._args, self._ctx = session, args, ctx
        self._statements = statements
        self._fetch: Fetch = args.fetch or "all"
        self._convert = postgres_values.converter(exact=ctx.spec.get("numeric") == "text")
        self._trusted = True
        """Every plan so far was made for this task."""
        self._committed = False

    async def done(self) -> dict[str, Value]:
        """The result of the last statement; once more where only an old plan was wrong."""
        import asyncpg

        try:
            return await self._all()
        except (asyncpg.PostgresError, SqlFailed) as error:
            stale = isinstance(error, asyncpg.InvalidCachedStatementError) or (
                not self._trusted and _sqlstate(error)[:2] in ("42", "22", "0A")
            )
            if not stale or self._committed:
                raise
        self._forget()
        return await self._all()

    def _forget(self) -> None:
        self._session.plans.clear()
        self._session.catalog.clear()

    async def _all(self) -> dict[str, Value]:
        defines = any(_word(one) in _DEFINING for one in self._statements)
        try:
            if len(self._statements) == 1 and self._args.rows is None:
                return await self._alone(self._statements[0])
            return await self._together()
        finally:
            if defines:
                self._forget()

    async def _alone(self, bound: BoundSql) -> dict[str, Value]:
        """Without a transaction of ours: some statements (VACUUM) refuse one."""
        plan = await self._plan(bound)
        if plan.columns and _word(bound) in _BY_CURSOR:
            async with self._session.in_transaction():
                return await self._rows(plan, bound)
        return await self._fetched(plan, bound)

    async def _together(self) -> dict[str, Value]:
        result = affected(0, self._fetch)
        async with self._session.in_transaction():
            last = len(self._statements) - 1
            for index, bound in enumerate(self._statements):
                result = await self._one(index, bound, is_last=index == last)
                self._committed = self._committed or _word(bound) in ("commit", "end")
            if self._args.rows is not None and self._args.table is not None:
                rows = self._args.rows
                count = await postgres_copy.insert(self._session, self._args.table, rows)
                result = affected(count, self._fetch, postgres_copy.columns_of(rows))
        return result

    async def _one(self, index: int, bound: BoundSql, *, is_last: bool) -> dict[str, Value]:
        import asyncpg

        try:
            plan = await self._plan(bound)
            if not is_last:
                await plan.statement.fetch(*plan.encoded(bound.values))
                return {}
            in_transaction = self._session.connection.is_in_transaction()
            if plan.columns and in_transaction and _word(bound) in _BY_CURSOR:
                return await self._rows(plan, bound)
            return await self._fetched(plan, bound)
        except asyncpg.InvalidCachedStatementError:
            raise
        except asyncpg.PostgresError as error:
            where = f"statement {index + 1} of {len(self._statements)}: "
            told = postgres_errors.of_server(error, where if len(self._statements) > 1 else "")
            raise SqlFailed(told) from None

    async def _plan(self, bound: BoundSql) -> Plan:
        plan = await plan_of(self._session, bound)
        self._trusted = self._trusted and plan.fresh
        return plan

    async def _rows(self, plan: Plan, bound: BoundSql) -> dict[str, Value]:
        """Rows in pieces: a large set is never in memory as a whole."""
        sink = RowSink(plan.columns, self._fetch, self._ctx)
        try:
            cursor = await plan.statement.cursor(*plan.encoded(bound.values))
            while chunk := await cursor.fetch(CHUNK_ROWS):
                sink.add([self._converted(plan, row) for row in chunk])
                if len(chunk) < CHUNK_ROWS:
                    break
            return await sink.result()
        finally:
            sink.close()

    async def _fetched(self, plan: Plan, bound: BoundSql) -> dict[str, Value]:
        rows = await plan.statement.fetch(*plan.encoded(bound.values))
        if not plan.columns:
            return affected(_count(plan.statement.get_statusmsg()), self._fetch)
        sink = RowSink(plan.columns, self._fetch, self._ctx)
        try:
            sink.add([self._converted(plan, row) for row in rows])
            return await sink.result()
        finally:
            sink.close()

    def _converted(self, plan: Plan, row: Any) -> list[Value]:
        convert = self._convert
        found = [convert(value) for value in row.values()]
        for index in plan.chars:
            found[index] = postgres_values.char_text(row[index])
        return found


def _word(bound: BoundSql) -> str:
    found = _WORD.match(bound.text)
    word = found[1].lower() if found else ""
    return "select" if word == "(" else word


def _count(status: str | None) -> int:
    """Rows that a statement touched, by its tag: `UPDATE 3`, `INSERT 0 5`, `CREATE TABLE`."""
    last = (status or "").rpartition(" ")[2]
    return int(last) if last.isdigit() else 0


def _sqlstate(error: Exception) -> str:
    if isinstance(error, SqlFailed):
        return error.error.pg_code or ""
    return str(getattr(error, "sqlstate", "") or "")
