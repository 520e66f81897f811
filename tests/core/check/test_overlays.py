"""Tasks of the workbook and their callers: together they make a whole task (rules I5, K38)."""

from __future__ import annotations

import pytest

CALL = """\
metadata: {{name: p}}
keychain:
- {{name: pg, kind: postgres_credential}}
- {{name: token, kind: bearer}}
workbook:
  get: {base}
workflow:
- step: a
  tool:
  - {{name: one, kind: workbook, task: get{first}}}
  - {{name: two, kind: workbook, task: get{second}}}
"""


def call(base, first="", second=""):
    return CALL.format(base=base, first=first, second=second)


def test_K38_the_caller_may_bring_what_the_task_of_the_workbook_needs(codes):
    assert codes(call("{kind: http, method: GET}", ", url: x", ", url: y")) == []


def test_K38_a_key_that_no_caller_brings_is_missing_in_the_workbook(expect):
    expect(call("‸{kind: http}"), "A1.missing", "error", "workbook.get.url")


def test_K38_a_key_that_one_caller_does_not_bring_is_missing_there(expect):
    text = call("{kind: http}", ", url: x").replace("- {name: two", "- ‸{name: two")
    expect(text, "A1.missing", "error", "workflow[0].tool[1].url")


def test_K38_the_callers_values_are_those_of_the_called_kind(expect):
    text = call("{kind: http, url: x}", ", headers: ‸[a]")
    expect(text, "A2.type", "error", "workflow[0].tool[0].headers")


@pytest.mark.parametrize(
    ("base", "overlay"),
    [
        ("{kind: postgres, auth: pg}", "command: 'select 1 -- {{ no( }}'"),
        ("{kind: python}", "code: 'x = \"{{ no( }}\"'"),
    ],
)
def test_K35_K6_what_is_no_template_in_the_called_kind_is_none_in_the_caller(codes, base, overlay):
    assert codes(call(base, f", {overlay}", f", {overlay}")) == []


def test_I1_the_callers_sql_is_sql(expect):
    text = call("{kind: postgres, auth: pg, command: select 1}", ", command: \"E'‸{{ ctx.a }}'\"")
    expect(text, "K35.template-in-quote", "error", "workflow[0].tool[0].command")


def test_G3_the_callers_result_holds_no_secret(expect):
    text = call("{kind: noop}", ", result: '{{ ‸keychain.token.token }}'")
    expect(text, "G3.keychain", "error", "workflow[0].tool[0].result")


def test_B4_names_in_the_callers_templates_are_looked_at(expect):
    text = call("{kind: http, url: x}", ", params: {a: '{{ ‸zork }}'}")
    expect(text, "B4.bare-name", "warning", "workflow[0].tool[0].params.a")
