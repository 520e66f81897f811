"""The tool `duckdb` with the real DuckDB and a real Postgres to attach (rules I2, K35, K44)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noetl_core.outcomes import ErrorKind
from noetl_worker.tools import duckdb_attach, duckdb_errors, duckdb_values
from tests.worker.tools.sql.conftest import PASSWORD, Bench

OUT: list[tuple[str, Any]] = [
    ("1", 1),
    ("9223372036854775808::hugeint", 9223372036854775808),
    ("0.1::float", 0.1),
    ("0.1::double", 0.1),
    ("'nan'::double", "NaN"),
    ("'-infinity'::double", "-Infinity"),
    ("1.50::decimal(10,2)", 1.5),
    ("12345678901234567890::decimal(38,0)", 12345678901234567890),
    ("true", True),
    ("NULL", None),
    ("'it''s'", "it's"),
    ("date '2024-02-29'", "2024-02-29"),
    ("'infinity'::date", "infinity"),
    ("'0044-03-15 (BC)'::date", "0044-03-15 BC"),
    ("timestamp '2024-02-29 12:34:56.789'", "2024-02-29T12:34:56.789"),
    ("'2024-02-29 12:34:56+02'::timestamptz", "2024-02-29T10:34:56+00:00"),
    ("'2024-01-01 00:00:00.123456789'::timestamp_ns", "2024-01-01T00:00:00.123456789"),
    ("time '01:02:03.5'", "01:02:03.5"),
    ("'01:02:03+05:30'::timetz", "01:02:03+05:30"),
    ("interval '1 year 2 months 3 days 4 hours 5.5 seconds'", "P1Y2M3DT4H5.5S"),
    ("interval '-1 month'", "P-1M"),
    ("interval '0 days'", "PT0S"),
    ("'\\x00\\xff'::blob", "AP8="),
    ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("'{\"a\": [1, null]}'::json", {"a": [1, None]}),
    ("[1, NULL]", [1, None]),
    ("[[1], []]", [[1], []]),
    ("[date '2024-01-01']", ["2024-01-01"]),
    (
        "{'a': 1, 'b': timestamptz '2024-01-01 00:00:00+00'}",
        {"a": 1, "b": "2024-01-01T00:00:00+00:00"},
    ),
    ("map {'k': interval 3 months}", {"k": "P3M"}),
    ("map {1: 'x'}", {"1": "x"}),
    ("array_value(1, 2)", [1, 2]),
    ("row(1, 'x')", [1, "x"]),
    ("'a'::enum('a', 'b')", "a"),
    ("'101'::bit", "101"),
]


async def test_K35_every_type_becomes_json(duck: Any) -> None:
    for expression, expected in OUT:
        outcome = await duck(f"SELECT {expression} AS v")
        assert outcome.ok, (expression, outcome.error)
        found = outcome.result["rows"][0]["v"]
        assert found == expected, expression
        assert type(found) is type(expected), expression
        json.dumps(outcome.result, allow_nan=False)


async def test_K35_numeric_text_is_exact(duck: Any) -> None:
    outcome = await duck("SELECT 0.10::decimal(38, 2) AS v", spec={"numeric": "text"})
    assert outcome.result["rows"] == [{"v": "0.10"}]


async def test_K35_rows_that_a_change_returns(duck: Any) -> None:
    outcome = await duck(
        "CREATE TABLE t (moment timestamptz, i interval);"
        "INSERT INTO t VALUES ('2024-01-01 00:00:00+00', interval 1 day) RETURNING *"
    )
    assert outcome.result["rows"] == [{"moment": "2024-01-01T00:00:00+00:00", "i": "P1D"}]


VALUES: list[Any] = [
    *(5, 2.5, True, None, "text", "", 2**70),
    *([1, 2], ["a", None], [], {}, [1, "a"], [True, 1], {"a": 1, "b": [1, None]}),
    *([{"a": 1}, {"a": 2}], [{"a": 1}, {"b": 2}], {"a": {"": 1}}, {"A": 1, "a": 2}, [[], [1]]),
    *({"a": None}, [None], [{"a": [1, "x"]}], [1, 2.5]),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
async def test_K35_a_value_is_what_it_was(duck: Any, value: Any) -> None:
    outcome = await duck("SELECT {{ v }} AS a, :v AS b", {"v": value}, params={"v": value})
    assert outcome.ok, outcome.error
    assert outcome.result["rows"] == [{"a": value, "b": value}]


async def test_K35_params_as_a_list(duck: Any) -> None:
    outcome = await duck("SELECT ? AS a, ? AS b, {{ x }} AS x", {"x": 3}, params=[1, 2])
    assert outcome.result["rows"] == [{"a": 1, "b": 2, "x": 3}]
    lists = await duck(
        "SELECT n FROM range(9) t(n) WHERE n IN {{ ids }} ORDER BY n", {"ids": [2, 5]}
    )
    assert lists.result["rows"] == [{"n": 2}, {"n": 5}]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
async def test_I1_no_text_is_more_than_data(bench: Bench, text: str) -> None:
    command = "SELECT {{ v }} AS a, '{{ v }}' AS b, '-{{ v }}''' AS c, {{ [v] }} AS d, ? AS e"
    outcome = await bench.run("duckdb", {"command": command, "params": [text]}, {"v": text})
    assert outcome.ok, outcome.error
    row = {"a": text, "b": text, "c": f"-{text}'", "d": [text], "e": text}
    assert outcome.result["rows"] == [row]


async def test_K35_fetch_and_counts(duck: Any) -> None:
    one = await duck("FROM range(2500) t(n)", fetch="one")
    assert one.result == {"rows": [{"n": 0}], "row": {"n": 0}, "row_count": 2500, "columns": ["n"]}
    none = await duck("FROM range(2500) t(n)", fetch="none")
    assert none.result == {"rows": [], "row_count": 2500, "columns": ["n"]}
    made = await duck("CREATE TABLE t AS FROM range(3); DELETE FROM t WHERE range > 0")
    assert made.result == {"rows": [], "row_count": 2, "columns": []}
    alike = await duck("SELECT 1 AS id, 2 AS id")
    assert alike.result["rows"] == [{"id": 1, "id_2": 2}]


async def test_K44_a_database_is_a_file_of_the_step_run(duck: Any, bench: Bench) -> None:
    assert (await duck("CREATE TABLE t AS SELECT 1 AS a", database="kept.duckdb")).ok
    assert (bench.folder / "kept.duckdb").exists()
    assert (await duck("FROM t", database="kept.duckdb")).result["rows"] == [{"a": 1}]
    assert (await duck("FROM t")).error.kind is ErrorKind.SCHEMA


@pytest.mark.parametrize(
    "name", ["../x.db", "/tmp/x.db", "a/../../x", "s3://b/x", ".", "\0", "md:x"]
)
async def test_K44_a_database_elsewhere_is_refused(duck: Any, name: str) -> None:
    outcome = await duck("SELECT 1", database=name)
    assert (outcome.error.kind, outcome.error.code) == (ErrorKind.SCHEMA, "DUCKDB_PATH")


async def test_K44_a_link_out_of_the_folder_is_refused(duck: Any, bench: Bench) -> None:
    (bench.folder / "link").symlink_to("/tmp")
    assert (await duck("SELECT 1", database="link/x.db")).error.code == "DUCKDB_PATH"


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
async def test_I2_files_of_the_step_run(duck: Any, bench: Bench, form: str) -> None:
    assert (await duck(f"COPY (SELECT 1 AS a, 'x' AS b) TO 'out.{form}'")).ok
    assert (bench.folder / f"out.{form}").exists()
    assert (await duck(f"FROM 'out.{form}'")).result["rows"] == [{"a": 1, "b": "x"}]


OUTSIDE = [
    "FROM read_csv('/etc/passwd')",
    "FROM read_text('/proc/self/environ')",
    "COPY (SELECT 1) TO '/tmp/noetl-escape.csv'",
    "COPY (SELECT 1) TO '../escape.csv'",
    "FROM read_text('../*')",
    "ATTACH '/tmp/noetl-escape.db' AS x",
    "ATTACH 'host=127.0.0.1' AS x (TYPE postgres)",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '/tmp/x.duckdb_extension'",
    "SET enable_external_access = true",
    "SET allowed_directories = ['/']",
    "SET memory_limit = '100GB'",
    "SET lock_configuration = false",
    "RESET enable_external_access",
    "CREATE PERSISTENT SECRET s (TYPE postgres, HOST 'x')",
    "FROM request",
    "FROM read_csv('http://127.0.0.1:1/x.csv')",
]


@pytest.mark.parametrize("command", OUTSIDE)
async def test_I2_there_is_nothing_outside_of_the_folder(duck: Any, command: str) -> None:
    assert not (await duck(command)).ok


async def test_I2_harmless_settings_may_change(duck: Any) -> None:
    outcome = await duck(["SET TimeZone = 'Asia/Tokyo'", "SELECT '2024-01-01'::timestamptz AS v"])
    assert outcome.result["rows"] == [{"v": "2024-01-01T00:00:00+09:00"}]


async def test_I2_several_statements_are_one_transaction(duck: Any) -> None:
    assert (await duck("CREATE TABLE t (id int PRIMARY KEY)", database="d.db")).ok
    bad = await duck("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1), (1)", database="d.db")
    assert bad.error.kind is ErrorKind.DB_CONSTRAINT
    assert (await duck("FROM t", database="d.db")).result["rows"] == []


ERRORS = [
    ("SELEC 1", "schema", "DUCKDB_PARSER"),
    ("SELECT nope", "schema", "DUCKDB_BINDER"),
    ("FROM nope", "schema", "DUCKDB_CATALOG"),
    ("SELECT 'a'::int", "schema", "DUCKDB_CONVERSION"),
    ("SELECT 200::tinyint", "schema", "DUCKDB_CONVERSION"),
    ("SELECT $1", "schema", "DUCKDB_INVALIDINPUT"),
    ("CREATE TABLE t (a int CHECK (a > 0)); INSERT INTO t VALUES (0)", "db_constraint", None),
    ("FROM read_csv('none.csv')", "unknown", "DUCKDB_IO"),
    ("SELECT 1; SELEC 2", "schema", "DUCKDB_PARSER"),
]


@pytest.mark.parametrize(("command", "kind", "code"), ERRORS)
async def test_K35_errors_by_kind(duck: Any, command: str, kind: str, code: str | None) -> None:
    outcome = await duck(command)
    assert outcome.error.kind == kind
    assert code is None or outcome.error.code == code
    assert "\nLINE" not in outcome.error.message


async def test_K35_text_that_is_no_unicode(duck: Any) -> None:
    assert (await duck("SELECT {{ v }}", {"v": "\ud800"})).error.kind is ErrorKind.SCHEMA


async def test_I2_attached_postgres(duck: Any, bench: Bench, postgres_uri: str) -> None:
    bench.know("pg_main", uri=postgres_uri)
    made = await duck("CREATE TABLE pg_main.public.t AS SELECT 1 AS id", attach="pg_main")
    assert made.ok, made.error
    mixed = await duck(
        [
            "CREATE TABLE local AS SELECT n::int AS id FROM range(2, 5) t(n)",
            "INSERT INTO pg_main.t FROM local",
            "SELECT sum(id)::int AS total FROM pg_main.t WHERE id > {{ least }}",
        ],
        {"least": 1},
        attach=["pg_main"],
    )
    assert mixed.result["rows"] == [{"total": 9}]
    connection = await asyncpg.connect(postgres_uri)
    assert await connection.fetchval("SELECT count(*) FROM t") == 4
    await connection.execute("CREATE UNIQUE INDEX only_one ON t (id)")
    await connection.close()
    twice = await duck("INSERT INTO pg_main.t VALUES (1)", attach="pg_main")
    assert twice.error.kind is ErrorKind.DB_CONSTRAINT
    assert twice.error.message.endswith('"only_one"')


async def test_I2_a_postgres_that_cannot_be_attached(duck: Any, bench: Bench) -> None:
    bench.know("db", host="127.0.0.1", port="1", user="u", dbname="d", password=PASSWORD)
    outcome = await duck("SELECT 1", attach="db")
    assert outcome.error.kind is ErrorKind.DB_CONNECTION
    assert PASSWORD not in str(outcome)
    assert (await duck("SELECT 1", attach="nope")).error.kind is ErrorKind.NOT_FOUND


async def test_G3_no_statement_shows_the_password(
    duck: Any, bench: Bench, postgres_uri: str
) -> None:
    bench.know("pg_main", uri=postgres_uri, password=PASSWORD)
    for command in ("FROM duckdb_secrets()", "FROM duckdb_databases()", "FROM duckdb_settings()"):
        outcome = await duck(command, attach="pg_main")
        assert outcome.ok
        assert PASSWORD not in str(outcome.result)


async def test_K42_a_cancelled_task_is_stopped(duck: Any, bench: Bench, postgres_uri: str) -> None:
    bench.know("pg_main", uri=postgres_uri)
    assert (await duck("SELECT 1", attach="pg_main")).ok
    for command in (
        "SELECT count(*) FROM range(1000000000) a, range(1000000) b",
        "FROM postgres_query('pg_main', 'SELECT pg_sleep(60)')",
    ):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await duck(command, attach="pg_main")
    await bench.pools.close()
    connection = await asyncpg.connect(postgres_uri)
    left = await connection.fetch(
        "SELECT query FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND state = 'active'"
    )
    await connection.close()
    assert left == []


async def test_I2_a_host_is_used_again_and_knows_nothing(duck: Any) -> None:
    assert (await duck("CREATE TABLE t AS SELECT 1 AS a; FROM t")).ok
    assert (await duck("FROM t")).error.kind is ErrorKind.SCHEMA
    assert (await duck("SELECT 1 AS a")).result["rows"] == [{"a": 1}]


def test_K35_native_values() -> None:
    assert duckdb_values.is_native([1, None, 2])
    assert not duckdb_values.is_native([1, "a"])
    assert not duckdb_values.is_native([{"a": 1}, {"b": 1}])


def test_G2_a_uri_in_parts() -> None:
    from noetl_core.model import KeychainKind
    from noetl_worker.keychain import Credential

    uri = "postgresql://me:p%40ss%2Fword@a.example:5433,[::1]:5434/db%20x?sslmode=require"
    found = duckdb_attach.parts(Credential("x", KeychainKind.POSTGRES, {"uri": uri}))
    assert found == {
        "host": "a.example,::1",
        "port": "5433,5434",
        "user": "me",
        "password": "p@ss/word",
        "dbname": "db x",
        "sslmode": "require",
    }


def test_K35_what_postgres_says_through_duckdb() -> None:
    said = 'Failed to execute query "COPY x": ERROR:  deadlock detected\nDETAIL:  secret'
    error = duckdb_errors.classified("Error", said)
    assert (error.kind, error.message) == (ErrorKind.DB_DEADLOCK, "Postgres: deadlock detected")
