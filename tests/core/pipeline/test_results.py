"""Results: inline or stored, and references read through (rules H1–H3, K33)."""

from __future__ import annotations

import pytest

from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.pipeline.requests import Answer, Keep, Request
from noetl_core.pipeline.scopes import Iteration
from noetl_core.results import canonical
from noetl_core.values import Value
from tests.support.driving import Driver, ok, plan_of, scope, stored

BIG: list[Value] = ["x" * 100] * 1000


def python(more: str = "", spec: str = "") -> str:
    extra = f", spec: {{{spec}}}" if spec else ""
    return f"tool:\n  - {{name: a, kind: python, code: x{more}{extra}}}\n"


def test_H1_a_small_result_travels_and_a_large_one_is_stored_first() -> None:
    small = Driver(plan_of(python()), {"a": [ok([1])]})
    assert small.run().result == [1]
    assert small.kept == []
    large = Driver(plan_of(python()), {"a": [ok(BIG)]})
    end = large.run()
    assert end.result == stored(BIG)
    assert large.payloads("task.done")[0]["result"] == stored(BIG)
    assert large.kept[0].content == canonical(BIG)
    assert large.names == ["task.started", "result.stored", "task.done", "policy.task.evaluated"]


@pytest.mark.parametrize("size", [63, 64, 65])
def test_H1_the_limit_is_of_bytes_and_inclusive(size: int) -> None:
    plan = plan_of(python(spec="result: {inline_max_bytes: 64}"))
    driver = Driver(plan, {"a": [ok("é" * 10 + "x" * (size - 22))]})
    driver.run()
    assert bool(driver.kept) is (size > 64)


def test_K5_reference_first_stores_every_result() -> None:
    head = "executor: {kind: pool, spec: {policy: {results: {reference_first: true}}}}"
    driver = Driver(plan_of(python(), head), {"a": [ok(1)]})
    assert driver.run().result == stored(1)


def test_H2_prev_and_labels_hold_the_full_value() -> None:
    args = "{p: '{{ _prev | length }}', l: '{{ a | length }}'}"
    body = python() + f"  - {{name: b, kind: python, code: x, args: {args}}}\n"
    driver = Driver(plan_of(body), {"a": [ok(BIG)], "b": [ok()]})
    driver.run()
    assert driver.runs[1].inputs["args"] == {"p": 1000, "l": 1000}
    assert driver.fetched == []


def test_H1_a_result_that_is_passed_on_is_not_stored_twice() -> None:
    body = python() + "  - {name: b, kind: noop}\n"
    driver = Driver(plan_of(body), {"a": [ok(BIG)]})
    assert driver.run().result == stored(BIG)
    assert len(driver.kept) == 1


def test_H3_K33_select_keeps_fields_beside_the_reference() -> None:
    spec = "result: {select: {n: $.meta.n, first: 'rows[0].id', none: a.b}}"
    value: Value = {"meta": {"n": 2}, "rows": [{"id": 7}]}
    end = Driver(plan_of(python(spec=spec)), {"a": [ok(value)]}).run()
    assert isinstance(end.result, dict)
    assert end.result["selected"] == {"n": 2, "first": 7, "none": None}
    assert end.result["key"] == stored(value)["key"]


def test_K33_an_event_over_max_payload_bytes_is_a_limit_of_the_task() -> None:
    head = "executor: {kind: pool, spec: {policy: {limits: {max_payload_bytes: 20000}}}}"
    plan = plan_of(python(spec="result: {inline_max_bytes: 1000000}"), head)
    end = Driver(plan, {"a": [ok("x" * 30_000)]}).run()
    assert end.error is not None
    assert end.error.kind == "limit"
    assert "max_payload_bytes" in end.error.message


def test_H1_a_result_that_cannot_be_stored_fails_the_task() -> None:
    class Full(Driver):
        def answer(self, request: Request) -> Answer:
            if isinstance(request, Keep):
                return TaskError(kind=ErrorKind.CONNECTION, message="store is away")
            return super().answer(request)

    end = Full(plan_of(python()), {"a": [ok(BIG)]}).run()
    assert end.error is not None
    assert end.error.message == "store is away"


def test_a_result_that_is_no_json_is_an_error_and_no_exception() -> None:
    end = Driver(plan_of(python()), {"a": [ok({"x": object()})]}).run()  # type: ignore[dict-item]
    assert end.error is not None
    assert end.error.kind == "schema"


def reading(template: str, given: dict[str, Value], results: list[Value]) -> Driver:
    body = python(f", args: {{got: '{template}'}}")
    held = {str(stored(value)["key"]): value for value in results}
    driver = Driver(plan_of(body), {"a": [ok()]}, scope=scope(**given), results=held)  # type: ignore[arg-type]
    driver.end = driver.run()  # type: ignore[attr-defined]
    return driver


ROWS: Value = {"rows": [{"id": 1}, {"id": 2}]}


@pytest.mark.parametrize(
    ("template", "seen"),
    [
        ("{{ ctx.big }}", ROWS),
        ("{{ ctx.big.rows[1].id }}", 2),
        ("{{ ctx.big.rows | length }}", 2),
        ("{{ ctx }}", {"big": ROWS}),
        ('{{ ctx["b" ~ "ig"].rows | length }}', 2),
        ("{{ ctx.big.no | default(0) }}", 0),
    ],
)
def test_H2_a_template_that_reads_a_reference_gets_the_value(template: str, seen: Value) -> None:
    driver = reading(template, {"ctx": {"big": stored(ROWS)}}, [ROWS])
    assert driver.runs[0].inputs["args"] == {"got": seen}
    assert driver.fetched == [stored(ROWS)["key"]]
    assert driver.scope.ctx.value == {"big": stored(ROWS)}


def test_H2_args_iter_items_and_references_inside_stored_values_are_read_too() -> None:
    inner: Value = "deep"
    outer: Value = [stored(inner), 1]
    driver = reading("{{ args.list }}", {"args": {"list": stored(outer)}}, [outer, inner])
    assert driver.runs[0].inputs["args"] == {"got": ["deep", 1]}


def test_H3_selected_fields_are_read_without_a_fetch() -> None:
    ref = stored(ROWS, {"n": 2})
    driver = reading("{{ ctx.big.selected.n }}", {"ctx": {"big": ref}}, [])
    assert driver.runs[0].inputs["args"] == {"got": 2}
    assert driver.fetched == []


def test_H3_selected_and_the_value_can_be_read_side_by_side() -> None:
    ref = stored(ROWS, {"n": 2})
    text = "{{ ctx.big.rows | length }}/{{ ctx.big.selected.n }}"
    driver = reading(text, {"ctx": {"big": ref}}, [ROWS])
    assert driver.runs[0].inputs["args"] == {"got": "2/2"}


def test_H2_a_result_that_cannot_be_read_is_the_tasks_error() -> None:
    driver = reading("{{ ctx.big }}", {"ctx": {"big": stored(ROWS)}}, [])
    end = driver.end  # type: ignore[attr-defined]
    assert end.error.kind == "not_found"
    assert driver.runs == []


def test_H2_what_was_fetched_once_is_at_hand_for_the_rest_of_the_lease() -> None:
    body = python(
        ", args: {g: '{{ ctx.big.rows }}'}",
        "policy: {rules: [{when: '{{ ctx.big.rows | length == 2 }}', then: {do: break}}]}",
    )
    given = scope(ctx={"big": stored(ROWS)})
    held = {str(stored(ROWS)["key"]): ROWS}
    driver = Driver(plan_of(body), {"a": [ok()]}, scope=given, results=held)
    assert driver.run().ok
    assert len(driver.fetched) == 1
    again = Driver(driver.plan, {"a": [ok()]}, scope=given, results=held)
    again.run()
    assert again.fetched == []


def test_H2_sql_is_bound_in_a_scope_without_references_on_its_paths() -> None:
    body = "tool: {kind: duckdb, command: 'select {{ ctx.big.rows }}'}"
    held = {str(stored(ROWS)["key"]): ROWS}
    driver = Driver(plan_of(body), scope=scope(ctx={"big": stored(ROWS)}), results=held)
    driver.run()
    assert driver.runs[0].scope["ctx"] == {"big": ROWS}


def test_H2_the_result_of_a_child_may_be_a_reference() -> None:
    body = """
tool:
  - {name: child, kind: playbook, playbook: other}
  - {name: use, kind: python, code: x, args: {n: "{{ _prev.rows | length }}", all: "{{ child }}"}}
"""
    held = {str(stored(ROWS)["key"]): ROWS}
    driver = Driver(plan_of(body), {"child": [ok(stored(ROWS))], "use": [ok()]}, results=held)
    driver.run()
    assert driver.runs[1].inputs["args"] == {"n": 2, "all": ROWS}
    assert driver.kept == []


def test_H3_select_of_a_childs_reference_looks_behind_it() -> None:
    spec = "spec: {result: {select: {first: 'rows[0].id'}}}"
    held = {str(stored(ROWS)["key"]): ROWS}
    driver = Driver(
        plan_of(f"tool: {{kind: playbook, playbook: other, {spec}}}"),
        {"s_task": [ok(stored(ROWS))]},
        results=held,
    )
    assert driver.run().result == {**stored(ROWS), "selected": {"first": 1}}


@pytest.mark.parametrize("where", ["{{ _prev.data }}", "{{ get.data.kind }}"])
def test_data_of_others_that_looks_like_a_reference_is_not_followed(where: str) -> None:
    body = f"""
tool:
  - {{name: get, kind: http, url: x}}
  - {{name: use, kind: python, code: x, args: {{got: "{where}"}}}}
"""
    fake: Value = {"status": 200, "data": stored(ROWS)}
    driver = Driver(plan_of(body), {"get": [ok(fake)], "use": [ok()]})
    assert driver.run().ok
    assert driver.fetched == []


def test_only_a_reference_whose_checksum_is_its_key_is_one() -> None:
    loose: Value = {"kind": "result_ref", "key": "../../etc"}
    driver = reading("{{ ctx.big }}", {"ctx": {"big": loose}}, [])
    assert driver.runs[0].inputs["args"] == {"got": loose}
    assert driver.fetched == []


def test_H2_items_of_a_loop_are_fetched_when_they_are_read() -> None:
    body = python(", args: {n: '{{ iter.x.rows | length }}'}")
    held = {str(stored(ROWS)["key"]): ROWS}
    here = Iteration("0", {"x": stored(ROWS), "index": 0, "total": 1})
    driver = Driver(plan_of(body), {"a": [ok()]}, iteration=here, results=held)
    driver.run()
    assert driver.runs[0].inputs["args"] == {"n": 2}
