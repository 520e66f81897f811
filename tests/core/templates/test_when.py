"""The truth of a `when` (rules B2, B3, K7, K8)."""

import pytest

from noetl_core.templates import MISSING, TemplateError, TemplateProblems, compile_when

SCOPE = {"ctx": {"f": " False ", "none": None, "text": "abc", "list": [1], "empty": []}}


def truth(condition):
    return compile_when(condition).truth(SCOPE)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (True, True),
        (False, False),
        ("{{ true }}", True),
        ("{{ 1 }}", True),
        ("{{ 0.0 }}", False),
        ("{{ [0] }}", True),
        ("{{ ctx.empty }}", False),
        ("{{ none }}", False),
        ("{{ {} }}", False),
        ("\n {{- ctx.list -}} \n", True),
    ],
)
def test_B2_truth_of_the_native_value(condition, expected):
    assert truth(condition) is expected


@pytest.mark.parametrize(
    "text", ["false", "0", "no", "off", "none", "null", "", " FALSE\\n", "Off"]
)
def test_B2_false_texts_are_false(text):
    assert truth(f"{{{{ '{text}' }}}}") is False


@pytest.mark.parametrize("text", ["true", "yes", "on", "1", "falsehood", "00", "no no", "n"])
def test_B2_other_texts_are_true(text):
    assert truth(f"{{{{ '{text}' }}}}") is True


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("{{ ctx.f }}", False),
        ("{{ ctx.f and true }}", True),
        ("{{ not ctx.f }}", False),
        ("{{ true if 'no' else false }}", True),
        ("{{ ctx.f or 0 }}", False),
    ],
)
def test_K7_false_texts_count_only_as_the_whole_when(condition, expected):
    assert truth(condition) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("{{ nope }}", False),
        ("{{ outcome.http.status }}", False),
        ("{{ outcome.http.status == 429 }}", False),
        ("{{ outcome.http.status != 429 }}", True),
        ("{{ outcome.http.status in [429, 500] }}", False),
        ("{{ outcome.http.status not in [429] }}", True),
        ("{{ outcome.http.status >= 500 }}", False),
        ("{{ 500 <= outcome.http.status < 600 }}", False),
        ("{{ nope < 3 }}", False),
        ("{{ nope + 1 > 0 }}", False),
        ("{{ -nope < 0 }}", False),
        ("{{ not nope }}", True),
        ("{{ nope or true }}", True),
        ("{{ nope and true }}", False),
        ("{{ 1 in nope }}", False),
        ("{{ nope ~ 'x' == 'x' }}", True),
        ("{{ nope == none }}", False),
        ("{{ nope | length > 0 }}", False),
        ("{{ nope | upper == 'X' }}", False),
        ("{{ nope | default(1) }}", True),
        ("{{ nope is none }}", False),
        ("{{ nope is defined }}", False),
        ("{{ nope is empty }}", True),
        ("{{ nope is odd }}", False),
        ("{{ nope.a.b.c[0] is undefined }}", True),
        ("{{ ctx.none.a.b == 1 }}", False),
        ("{{ true if nope else false }}", False),
        ("{{ nope | selectattr('x') }}", False),
        ("{{ nope | map(attribute='x') | list }}", False),
        ("{{ 1 is eq(nope) }}", False),
        ("{{ none is eq(nope) }}", False),
    ],
)
def test_B3_undefined_is_false_like_and_chains(condition, expected):
    assert truth(condition) is expected


@pytest.mark.parametrize(
    "condition",
    ["{{ 'a' < 1 }}", "{{ ctx.none > 1 }}", "{{ 1 / 0 }}", "{{ ctx.text * 2 }}", "{{ 5 | first }}"],
)
def test_K8_an_error_is_never_silently_false(condition):
    with pytest.raises(TemplateError):
        truth(condition)


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("event.name == 'x'", "write {{ event.name == 'x' }}"),
        ("{{ a }} == 1", "{{ a == 1 }}"),
        ("{{ a }} and {{ b }}", "{{ a and b }}"),
        ("true", "write true"),
        ("", "write true or false"),
    ],
)
def test_K7_anything_but_one_expression_is_refused_with_the_braces(condition, hint):
    with pytest.raises(TemplateProblems) as caught:
        compile_when(condition)
    (problem,) = caught.value.problems
    assert problem.code == "K7.when"
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("condition", "known", "expected"),
    [
        ("{{ false and x }}", {}, False),
        ("{{ x and false }}", {}, False),
        ("{{ x or true }}", {}, True),
        ("{{ x }}", {}, None),
        ("{{ outcome.http.status == 429 }}", {("outcome", "http"): MISSING}, False),
        ("{{ outcome.http.status >= x }}", {("outcome", "http"): MISSING}, False),
        ("{{ outcome.http is defined and x }}", {("outcome", "http"): MISSING}, False),
        ("{{ outcome.status == 'ok' }}", {("outcome", "status"): "error"}, False),
        ("{{ outcome.status == 'ok' or x }}", {("outcome", "status"): "ok"}, True),
        ("{{ 1 / 0 }}", {}, None),
        (True, {}, True),
    ],
)
def test_A6_a_condition_with_gaps_is_decided_as_far_as_it_can_be(condition, known, expected):
    assert compile_when(condition).possible(known) is expected
