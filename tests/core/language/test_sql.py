"""Rules I1, K35: SQL is compiled once, data is bound and never becomes part of a statement."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl_core.sql import BoundSql, SqlError, compile_sql
from noetl_core.templates import LIMITS, TemplateError, TemplateProblems

SCOPE = {"x": 1, "s": "a'b", "t": "my.tab", "_prev": {"ids": [1, 2]}}


def bound(text, params=None, dialect="postgres", scope=SCOPE) -> list[BoundSql]:
    return [statement.bind(params, scope) for statement in compile_sql(text, dialect).statements]


def only(text, params=None, dialect="postgres") -> tuple[str, tuple[object, ...]]:
    (statement,) = bound(text, params, dialect)
    return statement.text, statement.values


def problem_codes(text: str, dialect="postgres") -> list[str]:
    with pytest.raises(TemplateProblems) as raised:
        compile_sql(text, dialect)
    return [problem.code for problem in raised.value.problems]


def test_I1_a_template_outside_quotes_is_a_parameter() -> None:
    assert only("SELECT {{ x }}, {{ _prev }}") == ("SELECT $1, $2", (1, {"ids": [1, 2]}))


def test_I1_a_literal_with_a_template_is_one_text_parameter() -> None:
    (made,) = bound("SELECT 'it''s {{ s }}, {{ x }} ', {{ x }}, '{{ _prev.ids | tojson }}'::jsonb")
    assert made.text == "SELECT $1, $2, $3::jsonb"
    assert made.values == ("it's a'b, 1 ", 1, "[1, 2]")
    assert made.literals == {0, 2}


@pytest.mark.parametrize(
    "literal",
    ["'{{ no | default('q') }}'", "'{{ no | default(''q'') }}'", "'{{ no | default(\"q\") }}'"],
)
def test_I1_quotes_inside_the_braces_may_be_single_or_doubled(literal: str) -> None:
    assert only(f"SELECT {literal}, 'z'") == ("SELECT $1, 'z'", ("q",))


def test_I1_literals_without_templates_stay_as_written() -> None:
    text = "SELECT 'it''s', E'\\'', $$a;b$$, $t$ ; $t$, U&'x', \"a;b\", '{\"a\": {\"b\": 1}}'"
    assert only(text) == (text, ())


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("SELECT interval '{{ x }} days'", "SELECT CAST($1 AS interval)"),
        ("SELECT DATE '{{ s }}'", "SELECT CAST($1 AS DATE)"),
        ("SELECT '{{ s }}'::date", "SELECT $1::date"),
    ],
)
def test_I1_typed_literals(text: str, sql: str) -> None:
    assert only(text)[0] == sql


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("SELECT * FROM {{ t | ident }}", 'SELECT * FROM "my"."tab"'),
        ('SELECT "col_{{ s }}"', 'SELECT "col_a\'b"'),
        ('SELECT "{{ t | ident }}"', 'SELECT "my"."tab"'),
        ('SELECT "x""{{ t }}"', 'SELECT "x""my.tab"'),
    ],
)
def test_I1_identifiers_are_quoted(text: str, sql: str) -> None:
    assert only(text) == (sql, ())


@pytest.mark.parametrize(
    "text", ["SELECT tab_{{ x }}", "SELECT {{ x }}px", "SELECT U&{{ t | ident }}"]
)
def test_I1_a_template_is_no_part_of_a_word(text: str) -> None:
    assert problem_codes(text) == ["I1.part-of-word"]


@pytest.mark.parametrize(
    "quoted",
    ["$${{ x }}$$", "$f$ {{ x }} $f$", "E'{{ x }}'", "e'\\' {{ x }}'", "U&'{{ x }}'", "X'{{ x }}'"],
)
@pytest.mark.parametrize("dialect", ["postgres", "duckdb"])
def test_K35_a_template_inside_other_quotes_is_an_error(quoted: str, dialect: str) -> None:
    assert problem_codes(f"SELECT {quoted}", dialect) == ["K35.template-in-quote"]


def test_K35_such_an_error_has_its_place_in_the_file(of_step, problem) -> None:
    loaded = of_step(
        "tool:\n  kind: postgres\n  auth: pg\n  command: |\n    SELECT 1;\n    SELECT $${{ x }}$$"
    )
    found = problem(loaded, "K35.template-in-quote")
    assert (found.path, found.line, found.column) == ("workflow[0].tool.command", 9, 16)


def test_K35_comments_are_not_templates() -> None:
    text = "SELECT 1 -- {{ no\n /* {{ /* nested {% */ {{ */ + {{ x }}"
    assert only(text) == (text.replace("{{ x }}", "$1"), (1,))


def test_K35_an_open_literal_with_a_template_is_an_error() -> None:
    assert problem_codes("SELECT 'a {{ x }}") == ["I1.open-quote"]


def test_B6_statements_are_refused_in_sql_too() -> None:
    assert problem_codes("SELECT {% if x %} 1") == ["B6.statement"]
    assert problem_codes("SELECT '{% if x %}'") == ["B6.statement"]


def test_K35_statements_are_split_outside_quotes_and_comments() -> None:
    text = "SELECT ';'; /* ; */ SELECT $$;$$ ; -- ;\n ; SELECT \";\", (1; 2)"
    assert [made.text.strip() for made in bound(text)] == [
        "SELECT ';'",
        "/* ; */ SELECT $$;$$",
        'SELECT ";", (1; 2)',
    ]


def test_K35_a_function_body_is_one_statement() -> None:
    text = (
        "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC"
        " SELECT 1; SELECT CASE WHEN true THEN 2 END; END; SELECT 3"
    )
    assert len(bound(text)) == 2


def test_K35_nothing_but_comments_is_no_statement() -> None:
    assert bound("-- a\n; /* b */ ;;") == []
    assert bound("") == []


def test_K35_a_list_binds_positions_and_templates_come_after() -> None:
    assert only("SELECT $2, {{ x }}, $1, $2", ["p", "q"]) == (
        "SELECT $2, $3, $1, $2",
        ("p", "q", 1),
    )


def test_K35_each_statement_binds_only_what_it_uses() -> None:
    first, second = bound("SELECT $1; SELECT $2, '{{ s }}'", ["p", "q"])
    assert (first.text, first.values) == ("SELECT $1", ("p",))
    assert (second.text.strip(), second.values) == ("SELECT $1, $2", ("q", "a'b"))


def test_K35_a_mapping_binds_names_and_templates_come_after() -> None:
    text = "SELECT :b::text, :a, :b, a[1:2], a[lo:hi], a[:a], {{ x }}, ':a', x := 3"
    sql, values = only(text, {"a": 1, "b": 2})
    assert sql == "SELECT $1::text, $2, $1, a[1:2], a[lo:hi], a[$2], $3, ':a', x := 3"
    assert values == (2, 1, 1)


def test_K35_question_marks_are_parameters_in_duckdb_only() -> None:
    first, second = bound("SELECT ?, ?; SELECT ?, {{ x }}", [1, 2, 3], "duckdb")
    assert (first.text, first.values) == ("SELECT $1, $2", (1, 2))
    assert (second.text.strip(), second.values) == ("SELECT $1, $2", (3, 1))
    assert only("SELECT a ? 'b'") == ("SELECT a ? 'b'", ())


def test_K35_question_marks_count_on_through_a_list_of_texts() -> None:
    assert [made.values for made in bound(["SELECT ?", "SELECT ?"], [1, 2], "duckdb")] == [
        (1,),
        (2,),
    ]


def test_K35_struct_literals_of_duckdb_have_no_parameters() -> None:
    text = "SELECT {'a':b, 'c': d, e:f}"
    assert only(text, {"b": 1, "f": 2}, "duckdb") == (text, ())


@pytest.mark.parametrize(
    ("text", "params"),
    [("SELECT $3", [1]), ("SELECT $0", [1]), ("SELECT :a", {"b": 1}), ("SELECT $1, {{ x }}", None)],
)
def test_K35_parameters_that_do_not_fit_are_an_error(text: str, params: object) -> None:
    with pytest.raises(SqlError):
        bound(text, params)


def test_K35_a_missing_value_is_a_template_error() -> None:
    with pytest.raises(TemplateError):
        bound("SELECT {{ ctx.gone }}")


def test_B7_sql_is_bounded() -> None:
    assert problem_codes("x" * (LIMITS.template_chars + 1)) == ["B7.size"]


_HOSTILE = st.text(alphabet="'\"\\;-/*$ae{}%:?() \n\t", max_size=30)
_PIECES = st.lists(
    st.sampled_from(
        [
            "SELECT ",
            "{{ d }}",
            "'{{ d }}'",
            "'a''{{ d }} b'",
            '"{{ d }}"',
            " {{ d | ident }} ",
            "; ",
            "-- {{ d }}\n",
            "/* {{ d }} */",
            ", ",
            "::text",
            " $$x$$ ",
            " E'\\'' ",
            " a[1:2] ",
            "'q'",
        ]
    ),
    max_size=8,
)


@given(_PIECES, _HOSTILE.filter(lambda t: t and len(t) < 60))
def test_I1_no_data_changes_a_statement(pieces: list[str], data: str) -> None:
    try:
        compiled = compile_sql("".join(pieces), "postgres")
    except TemplateProblems:
        return
    for statement in compiled.statements:
        try:
            made = statement.bind(None, {"d": data})
            plain = statement.bind(None, {"d": "d"})
        except TemplateError:
            return
        assert _without_names(made.text) == _without_names(plain.text)
        assert len(made.values) == len(plain.values)


def _without_names(sql: str) -> str:
    """SQL with each quoted identifier, or chain of them, as one sign."""
    return re.sub(r'"(?:[^"]|"")+"(?:\."(?:[^"]|"")+")*', "<name>", sql)


@given(st.text(alphabet="'\"\\;-/*$eEuU&xX{}%#:?()[] \na1", max_size=60))
def test_I1_any_text_compiles_or_has_problems(text: str) -> None:
    for dialect in ("postgres", "duckdb"):
        try:
            compiled = compile_sql(text, dialect)
        except TemplateProblems as wrong:
            found = [problem.offset for problem in wrong.problems]
        else:
            found = []
            assert "{" in text or compiled.templates == []
        assert all(0 <= offset <= len(text) for offset in found)
