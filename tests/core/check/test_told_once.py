"""One mistake, one problem: at its own place, without echoes (rules A4, K3)."""

from __future__ import annotations

import pytest

STEP = "metadata: {name: p}\nworkflow:\n"


@pytest.mark.parametrize("tool", ["", " []", " ~"])
def test_A2_an_empty_tool_is_no_tool(expect, tool):
    text = f"{STEP}- ‸step: a\n  tool:{tool}\n"
    expect(text, "A2.empty-step", "error", "workflow[0]")


def test_A2_an_empty_tool_beside_next_only_routes(codes):
    assert codes(f"{STEP}- step: a\n  tool: []\n  next: {{arcs: []}}\n") == []


def test_A1_a_required_key_without_a_value_is_missing_where_it_stands(expect):
    text = f"{STEP}- step: a\n  tool:\n    kind: http\n    method: GET\n    ‸url:\n"
    expect(text, "A1.missing", "error", "workflow[0].tool.url")


def test_A1_a_kind_without_a_value_is_missing(expect):
    expect(
        f"{STEP}- step: a\n  tool: ‸{{kind: }}\n", "A1.missing", "error", "workflow[0].tool.kind"
    )


@pytest.mark.parametrize("join", ["any", "true", "{mode: any}"])
def test_C9_a_join_that_can_not_be_read_is_told_once(codes, join):
    found = codes(f"{STEP}- step: a\n  tool: {{kind: noop}}\n  spec: {{join: {join}}}\n")
    assert len(found) == 1


def test_A5_a_control_action_in_admission_does_not_also_deny_all(codes):
    rules = "[{when: true, then: {allow: true, do: retry}}, {else: {then: {do: fail}}}]"
    text = f"{STEP}- step: a\n  spec: {{policy: {{admit: {{rules: {rules}}}}}}}\n"
    found = codes(text + "  tool: {kind: noop}\n")
    assert sorted(found) == ["A1.missing", "A5.misplaced-control", "A5.misplaced-control"]


def test_A5_an_else_with_then_beside_it_is_one_mistake(expect):
    rules = "[{else: ‸true, then: {do: fail}}]"
    text = f"{STEP}- step: a\n  tool: {{kind: noop, spec: {{policy: {{rules: {rules}}}}}}}\n"
    place = "workflow[0].tool.spec.policy.rules[0].else"
    problem = expect(text, "A5.else-without-then", "error", place)
    assert "do: fail" in problem.hint


@pytest.mark.parametrize("word", ["choose", "while", "until"])
def test_K5_sugar_in_a_pipeline_is_no_label(codes, word):
    assert codes(f"{STEP}- step: a\n  tool:\n  - {word}: {{when: x}}\n") == [f"K5.{word}"]


def test_A3_a_task_may_have_such_a_label(codes):
    text = f"{STEP}- step: a\n  tool:\n  - while:\n      kind: noop\n"
    assert codes(text) == ["A3.labelled-task"]


@pytest.mark.parametrize("code", ["A5.reserved-name", "A5.duplicate-label"])
def test_A5_a_wrong_label_is_told_at_the_label(expect, code):
    first = "  - name: ctx\n    kind: noop\n" if code == "A5.duplicate-label" else ""
    text = f"{STEP}- step: a\n  tool:\n{first}  - ‸ctx:\n      kind: noop\n"
    if first:
        text = text.replace("ctx", "fetch")
    label = "fetch" if first else "ctx"
    index = 1 if first else 0
    expect(text, code, "error", f"workflow[0].tool[{index}].{label}")


@pytest.mark.parametrize("place", ["", "spec: "])
def test_A5_rules_outside_a_policy_are_misplaced(codes, place):
    held = "{rules: []}" if place else "rules: []"
    text = f"{STEP}- step: a\n  tool: {{kind: noop, {place}{held}}}\n"
    assert codes(text) == ["A5.misplaced-control"]


@pytest.mark.parametrize("word", ["jump", "break", "fail", "continue", "retry"])
def test_A5_a_misplaced_action_is_written_out_as_itself(expect, word):
    text = f"{STEP}- step: a\n  spec: {{policy: {{‸{word}: true}}}}\n  tool: {{kind: noop}}\n"
    problem = expect(text, "A5.misplaced-control", "error", f"workflow[0].spec.policy.{word}")
    assert f"do: {word}" in problem.hint


@pytest.mark.parametrize(("word", "instead"), [("input", "workload:"), ("output", "result:")])
def test_A5_a_later_word_at_the_root_names_the_section(expect, word, instead):
    text = f"{STEP}- step: a\n  tool: {{kind: noop}}\n‸{word}: {{x: 1}}\n"
    assert instead in expect(text, f"A5.post-v10-{word}", "error", word).hint


@pytest.mark.parametrize(
    ("key", "word", "close"),
    [
        ("executor: {spec: {policy: {failure: {mode: ‸best}}}}", "C7.failure-mode", "best_effort"),
        ("keychain: [{name: x, kind: ‸postgres}]", "G2.kind", "postgres_credential"),
        ("executor: ‸jobs", "K3.executor-kind", "job"),
    ],
)
def test_K3_a_piece_of_a_word_finds_it(expect, key, word, close):
    text = f"metadata: {{name: p}}\n{key}\nworkflow:\n- step: a\n  tool: {{kind: noop}}\n"
    path = {"C7": "executor.spec.policy.failure.mode", "G2": "keychain[0].kind", "K3": "executor"}
    assert close in expect(text, word, "error", path[word[:2]]).hint


RESERVED = ["emit", "ordering", "backpressure", "partitioning", "tracing", "quotas"]


@pytest.mark.parametrize("word", [*RESERVED, "compensation"])
@pytest.mark.parametrize("place", ["executor", "step", "loop"])
def test_K5_reserved_words_have_no_effect_in_any_policy(codes, word, place):
    policy = f"spec: {{policy: {{{word}: {{a: 1}}}}}}"
    executor = f"executor: {{{policy}}}\n" if place == "executor" else ""
    spec = f"  {policy}\n" if place == "step" else ""
    loop = f"  loop: {{in: [1], iterator: x, {policy}}}\n" if place == "loop" else ""
    text = f"metadata: {{name: p}}\n{executor}workflow:\n- step: a\n  tool: {{kind: noop}}\n"
    assert codes(text + spec + loop) == ["K5.no-effect"]


def test_B4_a_wrong_field_is_told_where_it_is_read(expect):
    value = "'{{ execution.id }} {{ ‸execution.foo }}'"
    text = f"{STEP}- step: a\n  tool: {{kind: noop, result: {value}}}\n"
    expect(text, "B4.execution-field", "warning", "workflow[0].tool.result")


def test_K2_every_octal_number_is_a_surprise(codes):
    text = "metadata: {name: p}\nworkload: {a: 010, b: 0o10, c: 0x10}\n"
    text += "workflow:\n- step: a\n  tool: {kind: noop}\n"
    assert codes(text) == ["K2.surprise", "K2.surprise"]


def test_K2_places_are_right_where_lines_end_with_a_carriage_return(expect):
    text = f"{STEP}- step: a\n  tool:\n    kind: noop\n    result: |\n      one\n      "
    marked = text + "{{ ctx.a | ‸nope }}\n"
    wanted = expect(marked, "B6.filter", "error", "workflow[0].tool.result")
    from noetl_core.check import check_text

    (checked,) = check_text(marked.replace("‸", "").replace("\n", "\r"))
    assert (checked.problems[0].line, checked.problems[0].column) == (wanted.line, wanted.column)


@pytest.mark.parametrize("name", ["''", "' '"])
def test_K1_an_empty_name_is_missing(expect, name):
    text = f"metadata: {{name: ‸{name}}}\nworkflow:\n- step: a\n  tool: {{kind: noop}}\n"
    expect(text, "A1.missing", "error", "metadata.name")


def test_E2_a_limit_has_its_range_where_a_template_may_stand_too(expect):
    loop = "{in: [1], iterator: x, spec: {mode: parallel, max_in_flight: ‸0}}"
    text = f"{STEP}- step: a\n  tool: {{kind: noop}}\n  loop: {loop}\n"
    expect(text, "A2.range", "error", "workflow[0].loop.spec.max_in_flight")


def test_A6_attempts_that_can_not_be_read_are_not_one(codes):
    rules = "[{when: true, then: {do: retry, attempts: '5'}}]"
    text = f"{STEP}- step: a\n  tool: {{kind: noop, spec: {{policy: {{rules: {rules}}}}}}}\n"
    assert codes(text) == ["A2.type"]


def test_C2_an_allow_that_can_not_be_read_does_not_deny(codes):
    rules = "[{when: true, then: {allow: 'true'}}]"
    text = f"{STEP}- step: a\n  spec: {{policy: {{admit: {{rules: {rules}}}}}}}\n"
    assert codes(text + "  tool: {kind: noop}\n") == ["A2.type"]


@pytest.mark.parametrize("path", ["a", "$.a.b[0].c", "$[0].x", "a[0][1]", "$", ".a", "x y.z"])
def test_H3_paths_of_select(codes, path):
    select = f"spec: {{result: {{select: {{a: '{path}'}}}}}}"
    assert codes(f"{STEP}- step: a\n  tool: {{kind: noop, {select}}}\n") == []


@pytest.mark.parametrize("path", ["$..b", "x[", "", "a.", "a[-1]", "a[*]", "$a"])
def test_H3_what_is_no_path(codes, path):
    select = f"spec: {{result: {{select: {{a: '{path}'}}}}}}"
    assert codes(f"{STEP}- step: a\n  tool: {{kind: noop, {select}}}\n") == ["H3.select"]
