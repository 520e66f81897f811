"""Values into Postgres and out of it (rule K35), each against the real server."""

from __future__ import annotations

import json
from typing import Any

import asyncpg
import pytest

OUT: list[tuple[str, Any]] = [
    ("1::smallint", 1),
    ("9223372036854775807::bigint", 9223372036854775807),
    ("0.1::real", 0.1),
    ("3.4028235e38::real", 3.4028235e38),
    ("1e-45::real", 1e-45),
    ("0.1::double precision", 0.1),
    ("'NaN'::float8", "NaN"),
    ("'-Infinity'::float8", "-Infinity"),
    ("12.50::numeric", 12.5),
    ("12345678901234567890::numeric", 12345678901234567890),
    ("12345678901234567890.00::numeric", 12345678901234567890),
    ("'NaN'::numeric", "NaN"),
    ("'-Infinity'::numeric", "-Infinity"),
    ("true", True),
    ("NULL::int", None),
    ("'it''s'::text", "it's"),
    ("'ab'::char(4)", "ab  "),
    ("'x'::\"char\"", "x"),
    ("'2024-02-29'::date", "2024-02-29"),
    ("'infinity'::date", "infinity"),
    ("'0044-03-15 BC'::date", "0044-03-15 BC"),
    ("'20000-12-31'::date", "20000-12-31"),
    ("'2024-02-29 12:34:56.789'::timestamp", "2024-02-29T12:34:56.789000"),
    ("'2024-02-29 12:34:56+02'::timestamptz", "2024-02-29T10:34:56+00:00"),
    ("'-infinity'::timestamptz", "-infinity"),
    ("'infinity'::timestamp", "infinity"),
    ("'0001-01-01 00:00:00 BC'::timestamp", "0001-01-01T00:00:00 BC"),
    ("'1969-12-31 23:59:59.999999+00'::timestamptz", "1969-12-31T23:59:59.999999+00:00"),
    ("'24:00:00'::time", "24:00:00"),
    ("'01:02:03.5'::time", "01:02:03.500000"),
    ("'01:02:03+05:30'::timetz", "01:02:03+05:30"),
    ("'1 year 2 mons 3 days 04:05:06.7'::interval", "P1Y2M3DT4H5M6.7S"),
    ("'-1 mons +3 days -00:00:00.5'::interval", "P-1M3DT-0.5S"),
    ("'0'::interval", "PT0S"),
    ("'infinity'::interval", "infinity"),
    ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("'\\x00ff10'::bytea", "AP8Q"),
    ('\'{"b": 1, "a": [1.5, null]}\'::json', {"b": 1, "a": [1.5, None]}),
    ("'\"text\"'::jsonb", "text"),
    ("'null'::jsonb", None),
    ("'1e400'::jsonb", "1" + "0" * 400),
    ("ARRAY[1, NULL, 3]", [1, None, 3]),
    ("ARRAY[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
    ("'{}'::text[]", []),
    ("ARRAY['a,b', 'NULL', '\"']", ["a,b", "NULL", '"']),
    ("ARRAY['{\"a\": 1}'::jsonb]", [{"a": 1}]),
    ("ARRAY['2024-01-01'::date]", ["2024-01-01"]),
    ("'[1,5)'::int4range", "[1,5)"),
    ("'empty'::int4range", "empty"),
    ("'[2024-01-01,)'::daterange", "[2024-01-01,)"),
    ("'{[1,3),[5,7)}'::int4multirange", ["[1,3)", "[5,7)"]),
    ("'10.0.0.1/24'::inet", "10.0.0.1/24"),
    ("'10.0.0.0/8'::cidr", "10.0.0.0/8"),
    ("'::1'::inet", "::1"),
    ("'08:00:2b:01:02:03'::macaddr", "08:00:2b:01:02:03"),
    ("B'10101010101'", "10101010101"),
    ("'(1.5,2)'::point", "(1.5,2)"),
    ("'<(0,0),2>'::circle", "<(0,0),2>"),
    ("'((0,0),(1,1),(1,0))'::polygon", "((0,0),(1,1),(1,0))"),
    ("'b'::mood", "b"),
    ("5::posint", 5),
    ("ROW(1, '2024-01-01', 'a')::pair", {"n": 1, "at": "2024-01-01T00:00:00+00:00", "m": "a"}),
    ("ARRAY['a', 'b']::mood[]", ["a", "b"]),
    ("ROW(1, 'x')", [1, "x"]),
    ("'a b'::tsvector", "'a' 'b'"),
]

TYPES = """
CREATE TYPE mood AS ENUM ('a', 'b');
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (n int, at timestamptz, m mood)
"""


async def test_K35_every_type_becomes_json(pg: Any) -> None:
    assert (await pg(TYPES)).ok
    for expression, expected in OUT:
        outcome = await pg(f"SELECT {expression} AS v")
        assert outcome.ok, (expression, outcome.error)
        found = outcome.result["rows"][0]["v"]
        assert found == expected, expression
        assert type(found) is type(expected), expression
        json.dumps(outcome.result, allow_nan=False)


@pytest.mark.parametrize("text", ["12.50", "0.1000000000000000000001", "1e30", "NaN", "-0.00"])
async def test_K35_numeric_text_is_exact(pg: Any, text: str) -> None:
    outcome = await pg(f"SELECT '{text}'::numeric AS v", spec={"numeric": "text"})
    wanted = {"1e30": "1" + "0" * 30, "-0.00": "0.00"}.get(text, text)
    assert outcome.result["rows"] == [{"v": wanted}]


IN: list[tuple[str, Any, str]] = [
    ("int", 5, "5"),
    ("int", 5.0, "5"),
    ("int", "5", "5"),
    ("bigint", 9223372036854775807, "9223372036854775807"),
    ("smallint", -3, "-3"),
    ("numeric", 0.1, "0.1"),
    ("numeric", 12345678901234567890123, "12345678901234567890123"),
    ("numeric", "0.1000000000000000000001", "0.1000000000000000000001"),
    ("real", 0.1, "0.1"),
    ("double precision", 3, "3"),
    ("double precision", "NaN", "NaN"),
    ("boolean", True, "true"),
    ("boolean", "yes", "true"),
    ("boolean", 1, "true"),
    ("text", "it's $1 {{ x }} -- ;", "it's $1 {{ x }} -- ;"),
    ("text", 5, "5"),
    ("text", True, "true"),
    ("text", 1.5, "1.5"),
    ("varchar(3)", "abc", "abc"),
    ("date", "2024-02-29", "2024-02-29"),
    ("date", "infinity", "infinity"),
    ("timestamptz", "2024-02-29T10:34:56.5+00:00", "2024-02-29 10:34:56.5+00"),
    ("timestamptz", "2024-02-29T10:34:56Z", "2024-02-29 10:34:56+00"),
    ("timestamp", "0001-01-01T00:00:00 BC", "0001-01-01 00:00:00 BC"),
    ("time", "01:02:03.5", "01:02:03.5"),
    ("interval", "P1Y2M3DT4H5M6.7S", "1 year 2 mons 3 days 04:05:06.7"),
    ("interval", "P-1M3DT-0.5S", "-1 mons +3 days -00:00:00.5"),
    ("interval", "3 days", "3 days"),
    ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("bytea", "AP8Q", "\\x00ff10"),
    ("bytea", "\\x00ff10", "\\x00ff10"),
    ("jsonb", {"a": [1, None, "x"]}, '{"a": [1, null, "x"]}'),
    ("jsonb", [1, 2], "[1, 2]"),
    ("jsonb", 5, "5"),
    ("jsonb", False, "false"),
    ("jsonb", '{"a": 1}', '{"a": 1}'),
    ("json", {"b": 1, "a": 2}, '{"b":1,"a":2}'),
    ("int[]", [1, None, 3], "{1,NULL,3}"),
    ("int[]", [[1, 2], [3, 4]], "{{1,2},{3,4}}"),
    ("int[]", "{1,2}", "{1,2}"),
    ("text[]", ["a,b", 'q"\\', "NULL", ""], '{"a,b","q\\"\\\\","NULL",""}'),
    ("text[]", [1, True], "{1,true}"),
    ("jsonb[]", [{"a": 1}, [2]], '{"{\\"a\\": 1}",[2]}'),
    ("timestamptz[]", ["2024-01-01T00:00:00Z"], '{"2024-01-01 00:00:00+00"}'),
    ("bytea[]", ["AP8Q"], '{"\\\\x00ff10"}'),
    ("int4range", "[1,5)", "[1,5)"),
    ("int4multirange", ["[1,3)", "[5,7)"], "{[1,3),[5,7)}"),
    ("inet", "10.0.0.1/24", "10.0.0.1/24"),
    ("bit(4)", "1010", "1010"),
    ("char(3)", "ab", "ab"),
    ("mood", "b", "b"),
    ("mood[]", ["a", "b"], "{a,b}"),
    ("posint", 5, "5"),
    ("pair", {"n": 1, "m": "a"}, "(1,,a)"),
    ("pair", [2, "2024-01-01T00:00:00Z", None], '(2,"2024-01-01 00:00:00+00",)'),
    ("point", "(1.5,2)", "(1.5,2)"),
]


@pytest.mark.parametrize("how", ["template", "params", "rows"])
async def test_K35_a_column_takes_natural_values(pg: Any, how: str) -> None:
    assert (await pg(TYPES)).ok
    for kind, value, expected in IN:
        assert (await pg(f"DROP TABLE IF EXISTS t; CREATE TABLE t (v {kind})")).ok
        if how == "template":
            outcome = await pg("INSERT INTO t VALUES ({{ v }})", {"v": value})
        elif how == "params":
            outcome = await pg("INSERT INTO t VALUES (:v)", params={"v": value})
        else:
            outcome = await pg(table="t", rows=[{"v": value}])
        assert outcome.ok, (kind, value, outcome.error)
        assert outcome.result["row_count"] == 1
        found = await pg("SELECT v::text AS v FROM t")
        assert found.result["rows"] == [{"v": expected}], (kind, value)


async def test_K35_null_goes_everywhere(pg: Any) -> None:
    assert (await pg(TYPES)).ok
    for kind in sorted({kind for kind, _, _ in IN}):
        assert (await pg(f"DROP TABLE IF EXISTS t; CREATE TABLE t (v {kind})")).ok
        assert (await pg("INSERT INTO t VALUES ({{ v }})", {"v": None})).ok, kind
        assert (await pg(table="t", rows=[{"v": None}])).ok, kind
        assert (await pg("SELECT v FROM t")).result["rows"] == [{"v": None}, {"v": None}]


OPEN: list[tuple[str, Any, Any]] = [
    ("SELECT {{ v }} AS v", 5, 5),
    ("SELECT {{ v }} AS v", 2.5, 2.5),
    ("SELECT {{ v }} AS v", True, True),
    ("SELECT {{ v }} AS v", "text", "text"),
    ("SELECT {{ v }} AS v", {"a": [1]}, {"a": [1]}),
    ("SELECT {{ v }} AS v", [1, "a", None], [1, "a", None]),
    ("SELECT {{ v }} AS v", None, None),
    ("SELECT {{ v }} AS v", 2**70, float(2**70)),
    ("SELECT '{{ v }}' AS v", 5, "5"),
    ("SELECT pg_typeof({{ v }})::text AS v", 5, "bigint"),
    ("SELECT pg_typeof({{ v }})::text AS v", 2.5, "double precision"),
    ("SELECT pg_typeof({{ v }})::text AS v", "x", "text"),
    ("SELECT pg_typeof({{ v }})::text AS v", False, "boolean"),
    ("SELECT pg_typeof({{ v }})::text AS v", [1], "jsonb"),
    ("SELECT pg_typeof('{{ v }}')::text AS v", 5, "text"),
    ("SELECT to_jsonb({{ v }}) AS v", 5, 5),
    ("SELECT to_jsonb({{ v }}) AS v", "x", "x"),
    ("SELECT jsonb_build_object('k', {{ v }}) AS v", 5, {"k": 5}),
    ("SELECT jsonb_build_object('k', {{ v }}) AS v", None, {"k": None}),
    ("SELECT jsonb_build_object('k', '{{ v }}') AS v", 5, {"k": "5"}),
    ("SELECT concat('a', {{ v }}) AS v", 5, "a5"),
    ("SELECT {{ v }} + 1 AS v", 5, 6),
    ("SELECT {{ v }} + 1 AS v", 2.5, 3.5),
    ("SELECT {{ v }} + 1 AS v", 3_000_000_000, 3_000_000_001),
    ("SELECT {{ v }} || '!' AS v", "x", "x!"),
    ("SELECT (date '2024-01-01' + {{ v }})::text AS v", 5, "2024-01-06"),
    ("SELECT sum(n) AS v FROM generate_series(1, 10) n WHERE n = ANY({{ v }})", [1, 2], 3),
    ("SELECT sum(n) AS v FROM generate_series(1, 10) n WHERE n > {{ v }}", 8.5, 19),
    ("SELECT count(*) AS v FROM unnest({{ v }}) AS u", ["a", "b"], 2),
    ("SELECT count(*) AS v FROM jsonb_array_elements({{ v }}) e", [1, 2, 3], 3),
    ("SELECT count(*) AS v FROM json_array_elements_text('{{ v | tojson }}') e", [1, 2], 2),
    ("SELECT interval '{{ v }} days' = '3 days' AS v", 3, True),
    ("SELECT '{{ v }}'::int + 1 AS v", "41", 42),
    ("SELECT {{ v }}::int + 1 AS v", "41", 42),
    ("SELECT n AS v FROM generate_series(1, 5) n LIMIT 1 OFFSET {{ v }}", 2, 3),
    ("WITH x AS (SELECT {{ v }} AS a) SELECT a + 1 AS v FROM x", 5, 6),
    ("SELECT to_char({{ v }}, 'FM999') AS v", 5, "5"),
    ("SELECT 'costs $1 {# no #}' || {{ v }} AS v", "!", "costs $1 {# no #}!"),
    ("SELECT count(*) AS v FROM pg_class WHERE relname = {{ v }}", 5, 0),
    ("SELECT ({{ v }})[1] AS v", [4, 5], 5),
    ("SELECT ({{ v }}::int[])[2] AS v", [4, 5], 5),
]


async def test_K35_a_parameter_without_a_type_takes_the_value_s(pg: Any) -> None:
    for command, value, expected in OPEN:
        for _ in range(2):
            outcome = await pg(command, {"v": value})
            assert outcome.ok, (command, value, outcome.error)
            found = outcome.result["rows"][0]["v"]
            assert found == expected, (command, value)
            assert type(found) is type(expected), (command, value)


async def test_K35_the_same_inside_a_transaction(pg: Any) -> None:
    for command, value, expected in OPEN:
        outcome = await pg(["SELECT 1", command], {"v": value})
        assert outcome.ok, (command, value, outcome.error)
        assert outcome.result["rows"][0]["v"] == expected, (command, value)


async def test_K35_one_parameter_may_stand_in_two_places(pg: Any) -> None:
    assert (await pg("CREATE TABLE t (a int, b text, c numeric)")).ok
    outcome = await pg("INSERT INTO t VALUES (:x, :x, :x) RETURNING *", params={"x": 5})
    assert outcome.result["rows"] == [{"a": 5, "b": "5", "c": 5}]


async def test_K35_a_plan_goes_with_the_kinds_of_its_values(pg: Any) -> None:
    for value in [1, "x", None, 2.5, [1], {"a": 1}, True, 2**63, 1, "y"]:
        outcome = await pg("SELECT {{ v }} AS v", {"v": value})
        assert outcome.result["rows"] == [{"v": value}]


async def test_K35_a_table_that_changed_is_seen(pg: Any, postgres_uri: str) -> None:
    assert (await pg("CREATE TABLE t (v int)")).ok
    for _ in range(2):
        assert (await pg("INSERT INTO t VALUES ({{ v }})", {"v": 5})).ok
        assert (await pg("SELECT * FROM t WHERE v = {{ v }}", {"v": 5})).ok
    # By somebody else, so that the plans of the tool's session are old.
    connection = await asyncpg.connect(postgres_uri)
    await connection.execute("DROP TABLE t; CREATE TABLE t (v text, w int)")
    await connection.close()
    assert (await pg("INSERT INTO t VALUES ({{ v }})", {"v": 5})).ok
    outcome = await pg("SELECT * FROM t WHERE v = {{ v }}", {"v": 5})
    assert outcome.ok, outcome.error
    assert outcome.result["rows"] == [{"v": "5", "w": None}]
