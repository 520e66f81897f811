"""What rules write to `iter` and `ctx`, and errors inside rules (rules D4, K8, K19, K20, K25)."""

from __future__ import annotations

import pytest

from noetl_core.engine.events import CtxPatched, IterPatched
from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.pipeline.requests import Emit, PatchCtx, RunTask
from noetl_core.values import Value
from tests.support.driving import Driver, failed, ok, plan_of, scope


def ruled(then: str, when: str = "true", more: str = "") -> str:
    rule = f"{{when: {when}, then: {{{then}}}}}"
    return f"""
tool:
  - {{name: a, kind: python, code: x, spec: {{policy: {{rules: [{rule}]}}}}}}
{more}
"""


def test_D4_set_iter_and_set_ctx_are_applied_before_the_action_and_are_events() -> None:
    then = "do: continue, set_iter: {page: '{{ outcome.result.page + 1 }}'}"
    then += ", set_ctx: {seen: '{{ outcome.result.page }}'}"
    more = "  - {name: b, kind: python, code: x, args: {p: '{{ iter.page }}', s: '{{ ctx.seen }}'}}"
    driver = Driver(plan_of(ruled(then, more=more)), {"a": [ok({"page": 1})], "b": [ok()]})
    driver.run()
    assert driver.runs[1].inputs["args"] == {"p": 2, "s": 1}
    assert driver.names[:5] == [
        "task.started",
        "task.done",
        "policy.task.evaluated",
        "iter.patched",
        "ctx.patched",
    ]
    patched = driver.of("ctx.patched")[0]
    assert isinstance(patched, CtxPatched)
    assert (patched.set, patched.by, patched.task) == ({"seen": 1}, "s/a", "a")
    assert driver.scope.ctx.value == {"seen": 1}


def test_D4_the_pagination_of_the_seeds_gathers_all_pages() -> None:
    body = """
tool:
  - name: fetch
    kind: http
    url: "http://x/?page={{ iter.page | default(1) }}"
    spec:
      policy:
        rules:
          - when: "{{ outcome.result.data.more }}"
            then:
              do: jump
              to: fetch
              set_iter:
                page: "{{ (iter.page | default(1)) + 1 }}"
                items: "{{ (iter.items | default([])) + outcome.result.data.items }}"
          - else:
              then:
                do: break
                set_ctx:
                  all: "{{ (iter.items | default([])) + outcome.result.data.items }}"
"""
    pages = [ok({"data": {"more": n < 3, "items": [n]}}) for n in (1, 2, 3)]
    driver = Driver(plan_of(body), {"fetch": pages})
    assert driver.run().ok
    assert [r.inputs["url"] for r in driver.runs] == [f"http://x/?page={n}" for n in (1, 2, 3)]
    assert driver.scope.ctx.value == {"all": [1, 2, 3]}


def test_K19_both_are_rendered_before_either_is_applied() -> None:
    then = "do: continue, set_iter: {n: '{{ ctx.n }}'}, set_ctx: {n: '{{ iter.n | default(0) }}'}"
    driver = Driver(plan_of(ruled(then)), {"a": [ok()]}, scope=scope(ctx={"n": 5}))
    driver.run()
    assert driver.scope.ctx.value == {"n": 0}
    assert driver.payloads("iter.patched") == [{"set": {"n": 5}}]


def test_K19_keys_of_one_mapping_do_not_see_each_other() -> None:
    then = "do: continue, set_ctx: {a: '{{ ctx.b }}', b: '{{ ctx.a }}'}"
    driver = Driver(plan_of(ruled(then)), {"a": [ok()]}, scope=scope(ctx={"a": 1, "b": 2}))
    driver.run()
    assert driver.scope.ctx.value == {"a": 2, "b": 1}


def test_K19_they_apply_on_every_match_also_the_last_of_a_retry() -> None:
    sets = "set_iter: {n: '{{ _attempt }}'}, set_ctx: {tries: '{{ _attempt }}'}"
    then = f"do: retry, attempts: 3, delay: 0, {sets}"
    driver = Driver(plan_of(ruled(then)), {"a": [failed(), failed(), failed()]})
    end = driver.run()
    assert not end.ok
    assert [p["set"] for p in driver.payloads("ctx.patched")] == [{"tries": n} for n in (1, 2, 3)]
    assert len(driver.of("iter.patched")) == 3


def test_D4_each_write_comes_before_the_sleep_of_its_retry() -> None:
    then = "do: retry, attempts: 2, set_ctx: {n: 1}"
    driver = Driver(plan_of(ruled(then)), {"a": [failed(), failed()]})
    driver.run()
    kinds = [type(r).__name__ for r in driver.requests]
    assert kinds.index("PatchCtx") < kinds.index("Sleep")


def test_D4_a_refused_write_ends_the_pipeline_over_the_policy() -> None:
    conflict = TaskError(kind=ErrorKind.CTX_CONFLICT, message="ctx.n is 1 already")
    then = "do: continue, set_ctx: {n: 2}"
    driver = Driver(plan_of(ruled(then)), {"a": [ok()]}, refuse=lambda _: conflict)
    end = driver.run()
    assert (end.error, end.task) == (conflict, "a")
    assert driver.scope.ctx.value == {}


def test_values_read_earlier_do_not_change_with_ctx() -> None:
    then = "do: continue, set_iter: {before: '{{ ctx }}'}, set_ctx: {self: '{{ ctx }}', n: 2}"
    more = "  - {name: b, kind: python, code: x, args: {b: '{{ iter.before }}'}}"
    driver = Driver(
        plan_of(ruled(then, more=more)), {"a": [ok()], "b": [ok()]}, scope=scope(ctx={"n": 1})
    )
    driver.run()
    assert driver.runs[1].inputs["args"] == {"b": {"n": 1}}
    assert driver.scope.ctx.value == {"self": {"n": 1}, "n": 2}


def test_K20_fail_on_an_ok_outcome_is_a_policy_failure_with_its_message() -> None:
    then = "do: fail, message: 'only {{ outcome.result.n }} rows'"
    end = Driver(plan_of(ruled(then)), {"a": [ok({"n": 3})]}).run()
    assert end.error is not None
    assert (end.error.kind, end.error.code) == ("policy", "POLICY_FAIL")
    assert end.error.message == "only 3 rows"
    plain = Driver(plan_of(ruled("do: fail")), {"a": [ok()]}).run()
    assert plain.error is not None
    assert plain.error.code == "POLICY_FAIL"


def test_K20_fail_on_an_error_keeps_its_kind_and_may_change_its_text() -> None:
    end = Driver(plan_of(ruled("do: fail, message: gone")), {"a": [failed("not_found")]}).run()
    assert end.error is not None
    assert (end.error.kind, end.error.message) == ("not_found", "gone")


@pytest.mark.parametrize(
    ("then", "when", "part"),
    [
        ("do: continue", "'{{ 1 + \"x\" }}'", "when"),
        ("do: continue, set_ctx: {n: '{{ ctx.no }}'}", "true", "set_ctx"),
        ("do: retry, set_iter: {n: '{{ outcome.no }}'}", "true", "set_iter"),
        ("do: fail, message: '{{ ctx.no }}'", "true", "message"),
    ],
)
def test_K8_an_error_inside_a_rule_fails_the_step_over_the_policy(
    then: str, when: str, part: str
) -> None:
    driver = Driver(plan_of(ruled(then, when)), {"a": [ok()]})
    end = driver.run()
    assert end.error is not None
    assert (end.error.kind, end.task) == ("template", "a")
    assert f"rule 0, {part}" in end.error.message
    assert driver.payloads("policy.task.evaluated") == [
        {"rule": 0, "action": "fail", "to": None, "delay": None}
    ]
    assert "ctx.patched" not in driver.names


def test_B3_an_undefined_path_in_when_is_false_and_chains() -> None:
    driver = Driver(plan_of(ruled("do: fail", "'{{ outcome.http.status == 500 }}'")), {"a": [ok()]})
    assert driver.run().ok


def test_K45_the_keychain_is_not_visible_to_rules() -> None:
    driver = Driver(
        plan_of(ruled("do: fail", "'{{ keychain is defined }}'")),
        {"a": [ok()]},
        scope=scope(keychain={"db": {"password": "x"}}),
    )
    assert driver.run().ok


def test_K25_a_large_ctx_value_is_stored_and_referred_to_and_read_back_in_full() -> None:
    big = ["x" * 100] * 1000
    then = "do: continue, set_ctx: {big: '{{ outcome.result }}', small: 1}"
    more = "  - {name: b, kind: python, code: x, args: {n: '{{ ctx.big | length }}'}}"
    driver = Driver(plan_of(ruled(then, more=more)), {"a": [ok(big)], "b": [ok()]})
    assert driver.run().ok
    ref = driver.scope.ctx.value["big"]
    assert isinstance(ref, dict)
    assert (ref["kind"], driver.scope.ctx.value["small"]) == ("result_ref", 1)
    assert driver.payloads("ctx.patched")[0]["set"] == {"big": ref, "small": 1}
    assert driver.kept[-1].ref["key"] == ref["key"]
    assert driver.runs[1].inputs["args"] == {"n": 1000}
    assert driver.fetched == []


def test_K25_policy_rules_see_the_full_result() -> None:
    plan = plan_of(ruled("do: fail", "'{{ outcome.result | length != 1000 }}'"))
    assert Driver(plan, {"a": [ok(["x" * 100] * 1000)]}).run().ok


def test_iter_keeps_large_values_while_its_event_refers_to_them() -> None:
    big: Value = "y" * 70_000
    then = "do: continue, set_iter: {all: '{{ outcome.result }}'}"
    more = "  - {name: b, kind: python, code: x, args: {n: '{{ iter.all | length }}'}}"
    driver = Driver(plan_of(ruled(then, more=more)), {"a": [ok(big)], "b": [ok()]})
    driver.run()
    patched = driver.of("iter.patched")[0]
    assert isinstance(patched, IterPatched)
    shown = patched.set["all"]
    assert isinstance(shown, dict)
    assert shown["kind"] == "result_ref"
    assert driver.runs[1].inputs["args"] == {"n": 70_000}


def test_D4_a_patch_waits_for_its_answer_and_facts_do_not() -> None:
    driver = Driver(plan_of(ruled("do: continue, set_ctx: {n: 1}")), {"a": [ok()]})
    driver.run()
    assert isinstance(driver.requests[-1], PatchCtx)
    assert all(isinstance(r, Emit) for r in driver.requests[2:-1])


def test_D4_rules_see_ctx_as_it_stands_when_the_task_has_ended() -> None:
    given = scope(ctx={"n": 1})

    def slow(_: RunTask) -> Outcome:
        given.ctx.write({"n": 2})
        return ok()

    then = "do: continue, set_iter: {n: '{{ ctx.n }}'}"
    driver = Driver(plan_of(ruled(then)), {"a": slow}, scope=given)
    driver.run()
    assert driver.payloads("iter.patched") == [{"set": {"n": 2}}]


MANY = ", ".join(f"k{n}: 1" for n in range(30))


def test_K25_many_values_in_one_write_do_not_make_each_other_large() -> None:
    then = f"do: continue, set_ctx: {{big: '{{{{ outcome.result }}}}', {MANY}}}"
    driver = Driver(plan_of(ruled(then)), {"a": [ok("x" * 60_000)]})
    driver.run()
    assert driver.scope.ctx.value["big"] == "x" * 60_000


def test_K25_K33_values_that_do_not_fit_into_one_event_are_refused() -> None:
    writes = ", ".join(f"k{n}: '{{{{ outcome.result }}}}'" for n in range(20))
    driver = Driver(
        plan_of(ruled(f"do: continue, set_ctx: {{{writes}}}")), {"a": [ok("x" * 60_000)]}
    )
    end = driver.run()
    assert end.error is not None
    assert end.error.kind is ErrorKind.LIMIT
    assert end.error.message.startswith("set_ctx would put")
    assert driver.scope.ctx.value == {}


def test_K33_what_does_not_fit_of_iter_is_shown_as_references() -> None:
    writes = ", ".join(f"k{n}: '{{{{ outcome.result }}}}'" for n in range(20))
    more = "  - {name: b, kind: python, code: x, args: {n: '{{ iter.k7 | length }}'}}"
    driver = Driver(
        plan_of(ruled(f"do: continue, set_iter: {{{writes}}}", more=more)),
        {"a": [ok("x" * 60_000)], "b": [ok()]},
    )
    assert driver.run().error is None
    assert driver.runs[1].inputs["args"] == {"n": 60_000}
