"""The tool `postgres` against the real server (rules I1, K35, K42)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noetl_core.outcomes import ErrorKind
from noetl_worker.tools import postgres_errors, sql_common
from tests.worker.tools.sql.conftest import PASSWORD, Bench


async def test_I1_the_result_of_one_statement(pg: Any) -> None:
    made = await pg("CREATE TABLE t (id int, name text)")
    assert made.result == {"rows": [], "row_count": 0, "columns": []}
    added = await pg("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    assert added.result == {"rows": [], "row_count": 2, "columns": []}
    found = await pg("SELECT * FROM t ORDER BY id")
    rows = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    assert found.result == {"rows": rows, "row_count": 2, "columns": ["id", "name"]}
    none = await pg("SELECT * FROM t WHERE false")
    assert none.result == {"rows": [], "row_count": 0, "columns": ["id", "name"]}
    changed = await pg("UPDATE t SET name = 'c' RETURNING id")
    assert changed.result["rows"] == [{"id": 1}, {"id": 2}]


async def test_K35_fetch_says_which_rows_are_kept(pg: Any) -> None:
    rows = "SELECT * FROM generate_series(1, 3) n ORDER BY n"
    one = await pg(rows, fetch="one")
    assert one.result == {"rows": [{"n": 1}], "row": {"n": 1}, "row_count": 3, "columns": ["n"]}
    none = await pg(rows, fetch="none")
    assert none.result == {"rows": [], "row_count": 3, "columns": ["n"]}
    empty = await pg(rows.replace("ORDER", "WHERE n > 5 ORDER"), fetch="one")
    assert empty.result["row"] is None


@pytest.mark.parametrize("as_list", [True, False])
async def test_I1_several_statements_are_one_transaction(pg: Any, as_list: bool) -> None:
    texts = ["CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "SELECT * FROM t"]
    good = await pg(texts if as_list else "; ".join(texts) + ";")
    assert good.result["rows"] == [{"id": 1}]
    texts = ["INSERT INTO t VALUES (2)", "INSERT INTO t VALUES (1)"]
    bad = await pg(texts if as_list else ";".join(texts))
    assert bad.error.code == "PG_23505"
    assert bad.error.message.startswith("statement 2 of 2: ")
    assert (await pg("SELECT count(*) AS n FROM t")).result["rows"] == [{"n": 1}]


async def test_K35_no_two_columns_have_one_name(pg: Any) -> None:
    outcome = await pg("SELECT 1 AS id, 2 AS id, {{ x }}, {{ x }}", {"x": 3})
    assert outcome.result["columns"] == ["id", "id_2", "?column?", "?column?_2"]
    assert outcome.result["rows"] == [{"id": 1, "id_2": 2, "?column?": 3, "?column?_2": 3}]


async def test_K35_params_come_before_templates(pg: Any) -> None:
    outcome = await pg("SELECT {{ x }} AS x, $2 AS b, $1 AS a", {"x": 3}, params=["a", "b"])
    assert outcome.result["rows"] == [{"x": 3, "b": "b", "a": "a"}]
    missing = await pg("SELECT $2", params=[1])
    assert missing.error.kind is ErrorKind.SCHEMA
    nothing = await pg("SELECT $1::int")
    assert nothing.error.kind is ErrorKind.SCHEMA
    named = await pg("SELECT :a::int AS a, '10:30'::time AS t", params={"a": "5"})
    assert named.result["rows"] == [{"a": 5, "t": "10:30:00"}]


async def test_I1_names_go_through_ident(pg: Any) -> None:
    assert (await pg('CREATE TABLE "we""ird; --" (id int)')).ok
    outcome = await pg("SELECT count(*) AS n FROM {{ t | ident }}", {"t": 'we"ird; --'})
    assert outcome.result["rows"] == [{"n": 0}]


async def test_I1_what_refuses_a_transaction_runs_alone(pg: Any, postgres_uri: str) -> None:
    assert (await pg("CREATE TABLE t (id int)")).ok
    assert (await pg("VACUUM t")).ok
    assert (await pg("CREATE INDEX CONCURRENTLY i ON t (id)")).ok
    refused = await pg(["SELECT 1", "VACUUM t"])
    assert refused.error.code == "PG_25001"


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
async def test_I1_no_text_is_more_than_data(bench: Bench, postgres_server: Any, text: str) -> None:
    bench.know("pg_main", uri=postgres_server.uri())
    command = (
        "SELECT {{ v }} AS a, '{{ v }}' AS b, '-{{ v }}''' AS c, :v AS d, "
        "jsonb_build_object('k', {{ v }}) AS e, {{ [v] }}::text[] AS f, {{ {'k': v} }} AS g"
    )
    inputs: dict[str, Any] = {"auth": "pg_main", "command": command, "params": {"v": text}}
    outcome = await bench.run("postgres", inputs, {"v": text})
    row = {"a": text, "b": text, "c": f"-{text}'", "d": text}
    assert outcome.result["rows"] == [row | {"e": {"k": text}, "f": [text], "g": {"k": text}}]


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
async def test_K35_text_that_postgres_cannot_hold(pg: Any, text: str) -> None:
    assert (await pg("CREATE TABLE t (v text, j jsonb, b bytea)")).ok
    for inputs in (
        {"command": "INSERT INTO t (v) VALUES ({{ v }})"},
        {"command": "INSERT INTO t (j) VALUES ({{ {'a': v} }})"},
        {"command": "SELECT {{ v }}::date"},
        {"table": "t", "rows": [{"v": text}]},
    ):
        outcome = await pg(scope={"v": text}, **inputs)
        assert outcome.error.kind is ErrorKind.SCHEMA, inputs
    assert (await pg("SELECT count(*) AS n FROM t")).result["rows"] == [{"n": 0}]


STATES = {
    "23505": "db_constraint",
    "23503": "db_constraint",
    "40001": "db_deadlock",
    "40P01": "db_deadlock",
    "40002": "unknown",
    "08006": "db_connection",
    "53300": "db_connection",
    "57P01": "db_connection",
    "57P03": "db_connection",
    "57014": "db_timeout",
    "57000": "unknown",
    "22012": "schema",
    "42P01": "schema",
    "42601": "schema",
    "P0001": "unknown",
    "28P01": "unknown",
    "25001": "unknown",
    "XX000": "unknown",
}


@pytest.mark.parametrize("sqlstate", STATES)
async def test_K35_errors_by_sqlstate(pg: Any, sqlstate: str) -> None:
    raised = f"DO $$ BEGIN RAISE EXCEPTION 'told' USING ERRCODE = '{sqlstate}'; END $$"
    outcome = await pg(raised)
    assert outcome.error.kind == STATES[sqlstate]
    assert outcome.error.code == f"PG_{sqlstate}"
    assert outcome.error.pg_code == sqlstate
    assert outcome.error.message == "told"
    assert outcome.helpers == {"pg": {"code": sqlstate, "sqlstate": sqlstate}}


async def test_K35_an_error_quotes_no_row(pg: Any) -> None:
    assert (await pg("CREATE TABLE t (id text PRIMARY KEY); INSERT INTO t VALUES ('canary')")).ok
    outcome = await pg("INSERT INTO t VALUES ({{ v }})", {"v": "canary"})
    assert outcome.error.kind is ErrorKind.DB_CONSTRAINT
    assert "t_pkey" in outcome.error.message
    assert "canary" not in outcome.error.message


CONNECTIONS = [
    ({"host": "127.0.0.1", "port": "1"}, "db_connection", "CONN_REFUSED"),
    ({"host": "/nowhere"}, "db_connection", "CONN_REFUSED"),
    ({"host": "no.such.host.invalid"}, "db_connection", "DNS_ERROR"),
    ({"uri": "postgresql://u:" + PASSWORD + "@127.0.0.1:1/d"}, "db_connection", "CONN_REFUSED"),
    ({"uri": "nonsense://" + PASSWORD}, "db_connection", "CONN_RESET"),
]


@pytest.mark.parametrize(("fields", "kind", "code"), CONNECTIONS)
async def test_K35_no_connection(bench: Bench, fields: Any, kind: str, code: str) -> None:
    base = {} if "uri" in fields else {"user": "u", "dbname": "d", "password": PASSWORD}
    bench.know("db", **base, **fields)
    outcome = await bench.run("postgres", {"auth": "db", "command": "SELECT 1"})
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.code) == (kind, code)
    assert PASSWORD not in str(outcome)


async def test_K35_a_server_that_does_not_answer(bench: Bench) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    bench.know("db", host="127.0.0.1", port=str(port), user="u", dbname="d")
    spec: Any = {"timeout": {"connect": 0.2}}
    outcome = await bench.run("postgres", {"auth": "db", "command": "SELECT 1"}, spec=spec)
    server.close()
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.code) == ("db_connection", "CONN_TIMEOUT")


async def test_G3_an_entry_that_is_not_there(bench: Bench) -> None:
    outcome = await bench.run("postgres", {"auth": "nope", "command": "SELECT 1"})
    assert outcome.error is not None
    assert "nope" in outcome.error.message


async def test_B3_a_missing_name_touches_no_database(bench: Bench) -> None:
    outcome = await bench.run("postgres", {"auth": "nope", "command": "SELECT {{ gone }}"})
    assert outcome.error is not None
    assert outcome.error.kind is ErrorKind.TEMPLATE


async def sessions(uri: str) -> list[Any]:
    """What the sessions of tasks do, as the server sees it."""
    connection = await asyncpg.connect(uri)
    try:
        return list(
            await connection.fetch(
                "SELECT pid, state, query FROM pg_stat_activity WHERE datname = current_database()"
                " AND application_name LIKE 'noetl%'"
            )
        )
    finally:
        await connection.close()


STOPPED: list[Any] = [
    "SELECT pg_sleep(60)",
    ["CREATE TABLE half (id int)", "SELECT pg_sleep(60)"],
    "INSERT INTO t SELECT n FROM generate_series(1, 1000000000) n",
    "LOCK TABLE t; SELECT pg_sleep(60)",
    "SELECT count(*) FROM generate_series(1, 10000000000)",
]


@pytest.mark.parametrize("command", STOPPED)
async def test_K42_a_cancelled_task_leaves_nothing(
    pg: Any, postgres_uri: str, command: Any
) -> None:
    assert (await pg("CREATE TABLE t (id int)")).ok
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await pg(command)
    assert [row["state"] for row in await sessions(postgres_uri)] == ["idle"]
    left = await pg("SELECT (SELECT count(*) FROM t) AS n, to_regclass('half') IS NULL AS none")
    assert left.result["rows"] == [{"n": 0, "none": True}]


async def test_K42_a_cancelled_bulk_insert_leaves_nothing(pg: Any, postgres_uri: str) -> None:
    assert (await pg("CREATE TABLE t (id int)")).ok
    connection = await asyncpg.connect(postgres_uri)
    async with connection.transaction():
        await connection.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await pg(table="t", rows=[{"id": n} for n in range(1000)])
    await connection.close()
    assert {row["state"] for row in await sessions(postgres_uri)} == {"idle"}
    assert (await pg("SELECT count(*) AS n FROM t")).result["rows"] == [{"n": 0}]


async def test_I1_tasks_share_a_connection_and_leave_nothing_in_it(
    pg: Any, postgres_uri: str
) -> None:
    spoiling = [
        "SET search_path = nowhere",
        "CREATE TEMP TABLE leftover (id int)",
        "SELECT pg_advisory_lock(1)",
        "BEGIN",
        "SET ROLE pg_monitor",
        "SELECT set_config('work_mem', '1MB', false)",
    ]
    for command in spoiling:
        assert (await pg(command)).ok
    state = await pg(
        "SELECT current_setting('search_path') AS path, to_regclass('leftover') IS NULL AS clean,"
        " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS locks,"
        " current_user::text AS who, current_setting('work_mem') AS memory"
    )
    row = state.result["rows"][0]
    assert row["path"] == '"$user", public'
    assert (row["clean"], row["locks"], row["who"]) == (True, 0, "postgres")
    assert row["memory"] != "1MB"
    assert len(await sessions(postgres_uri)) == 1


async def test_I1_many_tasks_at_once_share_a_few_connections(pg: Any, postgres_uri: str) -> None:
    found = await asyncio.gather(*(pg("SELECT {{ n }} AS n", {"n": n}) for n in range(50)))
    assert [one.result["rows"][0]["n"] for one in found] == list(range(50))
    assert len(await sessions(postgres_uri)) <= 10


async def test_K35_a_connection_that_the_server_ended(pg: Any, postgres_uri: str) -> None:
    assert (await pg("SELECT 1")).ok
    connection = await asyncpg.connect(postgres_uri)
    for row in await sessions(postgres_uri):
        await connection.execute(f"SELECT pg_terminate_backend({row['pid']})")
    await connection.close()
    outcome = await pg("SELECT 1")
    assert outcome.ok or outcome.error.kind is ErrorKind.DB_CONNECTION
    assert (await pg("SELECT 1")).ok
    killed = await pg("SELECT pg_terminate_backend(pg_backend_pid())")
    assert killed.error.kind is ErrorKind.DB_CONNECTION


async def test_I1_rows_fill_a_table(pg: Any) -> None:
    assert (await pg("CREATE SCHEMA s; CREATE TABLE s.t (id int, name text, at date)")).ok
    rows = [{"id": 1, "name": "a\tb\n\\N"}, {"id": 2, "at": "2024-01-01"}, {"name": None}]
    outcome = await pg(table="s.t", rows=rows)
    assert outcome.result == {"rows": [], "row_count": 3, "columns": ["id", "name", "at"]}
    found = await pg("SELECT * FROM s.t ORDER BY id NULLS LAST")
    assert found.result["rows"] == [
        {"id": 1, "name": "a\tb\n\\N", "at": None},
        {"id": 2, "name": None, "at": "2024-01-01"},
        {"id": None, "name": None, "at": None},
    ]


async def test_I1_rows_that_do_not_fit(pg: Any) -> None:
    assert (await pg("CREATE TABLE t (id int PRIMARY KEY)")).ok
    cases: list[tuple[str, list[Any], str]] = [
        ("nope", [{"id": 1}], "PG_42P01"),
        ("t; DROP TABLE t", [{"id": 1}], "PG_42P01"),
        ("t", [{"nope": 1}], "PG_42703"),
        ("t", [{"id": 1}, {"id": 1}], "PG_23505"),
        ("t", [{"id": 1}, {"id": "x"}], "PG_22P02"),
    ]
    for table, rows, code in cases:
        assert (await pg(table=table, rows=rows)).error.code == code
    assert (await pg(table="t", rows=[[1]])).error.kind is ErrorKind.SCHEMA
    assert (await pg(table="t", rows=[])).result["row_count"] == 0
    assert (await pg("SELECT * FROM t")).result["rows"] == []


async def test_I1_a_table_by_any_name(pg: Any) -> None:
    assert (await pg('CREATE TABLE Plain (id int); CREATE TABLE "Exact" (id int)')).ok
    for name in ("Plain", "plain", "public.plain", '"Exact"', "Exact"):
        assert (await pg(table=name, rows=[{"id": 1}])).ok, name


async def test_I1_rows_and_command_are_one_transaction(pg: Any) -> None:
    assert (await pg("CREATE TABLE t (id int UNIQUE); INSERT INTO t VALUES (7)")).ok
    bad = await pg("DELETE FROM t", table="t", rows=[{"id": 1}, {"id": 1}])
    assert bad.error.kind is ErrorKind.DB_CONSTRAINT
    assert (await pg("SELECT id FROM t")).result["rows"] == [{"id": 7}]
    assert (await pg("DELETE FROM t", table="t", rows=[{"id": 1}])).result["row_count"] == 1


async def test_I1_a_hundred_thousand_rows_in_and_out(pg: Any) -> None:
    assert (await pg("CREATE TABLE t (id int, doc jsonb)")).ok
    rows = [{"id": n, "doc": {"n": n}} for n in range(100_000)]
    assert (await pg(table="t", rows=rows)).result["row_count"] == 100_000
    found = await pg("SELECT * FROM t ORDER BY id")
    assert found.result["rows"] == rows


async def test_H1_a_large_row_set_is_stored(
    pg: Any, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sql_common.RowSink
    monkeypatch.setattr(
        "noetl_worker.tools.postgres.RowSink", lambda *given: sink(*given, held_bytes=10_000)
    )
    bench.redactor.add([PASSWORD])
    command = "SELECT n, '" + PASSWORD + "' AS word FROM generate_series(1, 5000) n"
    outcome = await pg(command)
    ref = outcome.result["rows"]
    assert (ref["kind"], outcome.result["row_count"]) == ("result_ref", 5000)
    stored = json.loads(bench.stored.contents[ref["key"]])
    assert stored == [{"n": n, "word": "***"} for n in range(1, 5001)]


def test_K35_unknown_classes_are_unknown() -> None:
    assert postgres_errors.kind_of("99999") is ErrorKind.UNKNOWN
