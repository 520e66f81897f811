"""Any text and any data: a value or an error of templates, in bounded time (rule B7)."""

import json
import time

from hypothesis import given
from hypothesis import strategies as st

from noetl_core.templates import (
    TemplateError,
    TemplateProblems,
    compile_template,
    compile_when,
    registry,
    render,
)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(10**400), max_value=10**400),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.text(st.characters(), max_size=5),
    st.sampled_from(["", "false", "2024-02-29", "%d %s", "[1", '{"a":1}', "\ud800", "a.b", "é😀"]),
)
KEYS = st.sampled_from(["a", "b", "items", "__class__", "a b", "0", ""])
DATA = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=15,
)
LITERALS = st.sampled_from(
    [
        "0",
        "1",
        "-1",
        "2.5",
        "''",
        "'a'",
        "'seconds'",
        "'sum'",
        "'odd'",
        "'%Y'",
        "'.*'",
        "'(a'",
        "none",
        "true",
        "false",
        "[]",
        "[1,'a']",
        "{}",
        "{'a':1}",
        "x",
        "y",
        "x.a",
        "x.b[0]",
        "y.items",
        "x['__class__']",
        "nope",
        "nope.a",
        "10000000000",
        "1e300",
    ]
)
FILTERS = st.sampled_from(sorted(registry.filters.callees))
TESTS = st.sampled_from(sorted(name for name in registry.tests.callees if name.isidentifier()))
OPERATORS = st.sampled_from(
    ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "and", "or"]
)


def _compound(inner):
    arguments = st.lists(inner, max_size=3).map(", ".join)
    return st.one_of(
        st.builds("({} {} {})".format, inner, OPERATORS, inner),
        st.builds("({} | {})".format, inner, FILTERS),
        st.builds("({} | {}({}))".format, inner, FILTERS, arguments),
        st.builds("({} | map('{}'))".format, inner, FILTERS),
        st.builds("({} | map('{}', {}))".format, inner, FILTERS, inner),
        st.builds("({} | select('{}', {}))".format, inner, TESTS, inner),
        st.builds("({} | selectattr('a', '{}'))".format, inner, TESTS),
        st.builds("({} is {})".format, inner, TESTS),
        st.builds("({} is {}({}))".format, inner, TESTS, arguments),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("{}[{}:{}]".format, inner, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{'a': {}, {}: 1}}".format, inner, inner),
        st.builds("(not {})".format, inner),
        st.builds("(-{})".format, inner),
        st.builds("{}.a".format, inner),
    )


EXPRESSIONS = st.recursive(LITERALS, _compound, max_leaves=8)


def _try(make):
    """The result, or nothing where it fails as templates may fail."""
    begun = time.process_time()
    found = code = None
    shown = "nothing"
    try:
        found = make()
    except TemplateError as error:
        code, shown = error.code, str(error)
    except TemplateProblems as error:
        code, shown = error.problems[0].code, str(error)
    assert time.process_time() - begun < 1.0
    assert shown
    assert code != TemplateError.INTERNAL, shown
    return found


def _is_json(value):
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(type(key) is str for key in value) and all(map(_is_json, value.values()))
    return value is None or type(value) in (bool, int, float, str)


@given(EXPRESSIONS, DATA, DATA)
def test_B7_any_expression_on_any_data(expression, x, y):
    scope = {"x": x, "y": y}
    before = json.dumps(scope)
    found = _try(lambda: compile_template(f"{{{{ {expression} }}}}").value(scope))
    assert _is_json(found)
    text = _try(lambda: compile_template(f"{{{{ {expression} }}}}!").value(scope))
    assert text is None or isinstance(text, str)
    truth = _try(lambda: compile_when(f"{{{{ {expression} }}}}").truth(scope))
    assert truth in (True, False, None)
    assert json.dumps(scope) == before, "data is never changed"


@given(EXPRESSIONS, DATA)
def test_B7_the_same_template_gives_the_same_result(expression, x):
    make = lambda: compile_template(f"{{{{ {expression} }}}}").value({"x": x, "y": 1})  # noqa: E731
    assert _try(make) == _try(make)


@given(st.text(st.characters(), max_size=60), DATA)
def test_B7_any_text_is_a_template_or_has_problems(text, x):
    _try(lambda: compile_template(text).value({"x": x}))
    _try(lambda: compile_when(text).truth({"x": x}))


PIECES = st.sampled_from(
    [
        "{{",
        "}}",
        "{{-",
        "-}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "|",
        ".",
        ",",
        ":",
        "'",
        '"',
        "\\",
        "x",
        "a",
        "1",
        "1.5",
        "+",
        "-",
        "*",
        "**",
        "~",
        "is",
        "not",
        "in",
        "and",
        "or",
        "if",
        "else",
        "map",
        "upper",
        "default",
        "==",
        "<",
        "=",
        ";",
        "!",
        "&",
        "@",
        "\n",
        "\t",
    ]
)


@given(st.lists(PIECES, max_size=25), st.booleans())
def test_B7_any_row_of_signs_is_a_template_or_has_problems(pieces, spaced):
    text = (" " if spaced else "").join(pieces)
    _try(lambda: compile_template(text).value({"x": [1]}))
    _try(lambda: compile_template("{{ " + text + " }}").value({"x": [1]}))


@given(DATA)
def test_B1_data_comes_through_untouched(x):
    assert compile_template("{{ x }}").value({"x": x}) == x
    assert render({"k": ["{{ x }}"]}, {"x": x}) == {"k": [x]}


@given(DATA)
def test_B1_json_round_trips(x):
    found = _try(lambda: compile_template("{{ x | tojson | fromjson }}").value({"x": x}))
    assert found is None or found == x


@given(st.text(max_size=40))
def test_encodings_round_trip(text):
    for there, back in (("b64encode", "b64decode"), ("urlencode", "urldecode")):
        source = f"{{{{ x | {there} | {back} }}}}"
        assert compile_template(source).value({"x": text}) == text


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1))
def test_I1_a_name_in_quotes_never_ends_early(name):
    found = _try(lambda: compile_template("{{ [x] | ident }}").value({"x": name}))
    if found is not None:
        assert found.startswith('"')
        assert found.endswith('"')
        assert found[1:-1].replace('""', "") == name.replace('"', "")


@given(st.datetimes())
def test_dates_round_trip(moment):
    text = moment.isoformat()
    source = "{{ (x | to_datetime) == (x | date_format('%F %T.%f') | to_datetime('%F %T.%f')) }}"
    assert compile_template(source).value({"x": text}) is True
