"""Every filter and test: its examples, its entry in the reference, and its edges."""

from pathlib import Path

import pytest

from noetl_cli import reference
from noetl_core.templates import TemplateError, compile_template, compile_when
from noetl_core.templates import registry as registries
from noetl_core.templates.coerce import WORDS

CALLEES = [
    pytest.param(callee, id=f"{registry.word}-{name}")
    for registry in (registries.filters, registries.tests)
    for name, callee in registry.callees.items()
    if name == callee.name
]
ROOT = Path(__file__).parents[3]


def value(source, scope=None):
    return compile_template(f"{{{{ {source} }}}}").value(scope or {})


@pytest.mark.parametrize("callee", CALLEES)
def test_examples_hold(callee):
    assert callee.examples
    for source, expected in callee.examples:
        found = value(source)
        assert found == expected, source
        assert type(found) is type(expected), source


@pytest.mark.parametrize("callee", CALLEES)
def test_every_entry_is_documented(callee):
    assert callee.doc.endswith(".")
    assert callee.takes in WORDS
    assert all(parameter.kind in WORDS for parameter in callee.parameters)


@pytest.mark.parametrize("name", reference.PAGES)
def test_reference_page_is_up_to_date(name):
    written = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
    assert written == reference.page(name), "run `make docs`"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("' 12 ' | int", 12),
        ("'3.7' | int", 3),
        ("'0x1f' | int(base=16)", 31),
        ("none | int", 0),
        ("true | int", 1),
        ("'inf' | float", 0.0),
        ("'nan' | float(1.0)", 1.0),
        ("'1e999' | int(-1)", -1),
        ("2.5 | round", 2.0),
        ("1234 | round(-2)", 1200),
        ("1250.5 | round(-2, 'ceil')", 1300.0),
        ("-7 | abs", 7),
        ("'straße' | upper", "STRASSE"),
        ("'' | split(',')", [""]),
        ("'' | split", []),
        ("'' | lines", []),
        ("5 | upper", "5"),
        ("['b', 'a', 3, 1, none] | sort", [1, 3, "a", "b", None]),
        (
            "[{'a': 1, 'b': 2}, {'a': 1, 'b': 1}] | sort(attribute='a,b') | map(attribute='b')",
            [1, 2],
        ),
        ("[1, 2, 3, 4] | select('even') | map('string') | join('+')", "2+4"),
        ("[{'a': {'b': 1}}] | map(attribute='a.b') | first", 1),
        ("[[1, 2], [3, 4]] | map(attribute=1)", [2, 4]),
        ("[[1, 2], [3, 4]] | map('map', 'string') | map('join', '-')", ["1-2", "3-4"]),
        ("[{'n': 1}, {'n': 'x'}] | selectattr('n', 'string')", [{"n": "x"}]),
        ("[{}, {'n': 1}] | selectattr('n', 'ne', 1)", [{}]),
        ("{'b': 1, 'a': 2} | list", ["b", "a"]),
        ("{'b': 1} | map('upper')", ["B"]),
        ("[[1, [2]], 3] | flatten | sum", 6),
        ("[] | batch(3)", []),
        ("[1] | slice(3)", [[1], [], []]),
        ("['x', ['x']] | unique", ["x", ["x"]]),
        ("[0, false, 0.0, '0'] | unique", [0, False, "0"]),
        ("{'a': 1} | combine({'b': 2}) | combine({'c': 3}) | keys", ["a", "b", "c"]),
        ("{'a': 1, 'b': 2} | pick(['b'])", {"b": 2}),
        ("'[1, 2.5, {\"k\": null}]' | fromjson", [1, 2.5, {"k": None}]),
        ("'\"é\"' | fromjson", "é"),
        ("'é\"\\n' | tojson", '"é\\"\\n"'),
        ("'_-8' | b64decode(  ) | default('')", None),
        ("'YQ' | b64decode", "a"),
        ("'a&b=ü' | urlencode | urldecode", "a&b=ü"),
        ("{'a b': '1/2&', 'n': none} | urlencode", "a+b=1%2F2%26&n=null"),
        ("'aXbXc' | regex_replace('x', '-', ignorecase=true)", "a-b-c"),
        ("'äöü' | regex_replace('', '.')", ".ä.ö.ü."),
        ("'äöü' | regex_findall('.')", ["ä", "ö", "ü"]),
        ("'k: v' | regex_search('(?P<key>\\w+): (?P<val>\\w+)', group='val')", "v"),
        ("'ab' | regex_replace('(?P<x>a)(b)', '\\\\g<x>\\\\2\\\\\\\\')", "ab\\"),
        ("'a.b' | regex_escape", "a\\.b"),
        ("'100%' | replace('%', ' %') | format", None),
        ("'%-5s|%5s|%.2s' | format('ab', 'cd', 'xyz')", "ab   |   cd|xy"),
        ("'%x %o %e' | format(255, 8, 12.5)", "ff 10 1.250000e+01"),
        ("'2024-05-01T12:00:00.123456789+01:30' | to_datetime", "2024-05-01T10:30:00.123456Z"),
        ("'20240501T120000Z' | to_datetime", "2024-05-01T12:00:00Z"),
        ("'2024-05-01 12:00' | to_datetime", "2024-05-01T12:00:00Z"),
        ("'2024-05-01T24:00:00Z' | to_datetime", "2024-05-02T00:00:00Z"),
        ("-1 | to_datetime", "1969-12-31T23:59:59Z"),
        ("'2024-03-31' | date_add(-1, 'month') | to_date", "2024-02-29"),
        ("'2024-02-29' | date_add(1, 'years') | to_date", "2025-02-28"),
        ("'2024-12-31' | date_add(2, 'months') | to_date", "2025-02-28"),
        ("'May 1, 2024 1:05 PM' | to_datetime('%B %d, %Y %I:%M %p')", "2024-05-01T13:05:00Z"),
        ("'01.05.24 +0200' | to_datetime('%d.%m.%y %z')", "2024-04-30T22:00:00Z"),
        ("0 | date_format('%Y-%j-%s %% %-m/%-d %I%p')", "1970-001-0 % 1/1 12AM"),
        ("0 | date_format('%a %b %u %G %z %Z %T')", "Thu Jan 4 1970 +0000 UTC 00:00:00"),
        ("'2024-05-01' | date_diff('2024-05-02', 'hours')", -24),
    ],
)
def test_edges(source, expected):
    if expected is None:
        with pytest.raises(TemplateError) as caught:
            value(source)
        assert caught.value.code == TemplateError.VALUE
    else:
        assert value(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "[{}] | sort(attribute='n')",
        "[{}] | map(attribute='n')",
        "[{}] | sum(attribute='n')",
        "[{}] | join(',', attribute='n')",
        "[] | min",
        "[] | last",
    ],
)
def test_B3_a_missing_attribute_is_undefined(source):
    with pytest.raises(TemplateError) as caught:
        value(source)
    assert caught.value.code == TemplateError.UNDEFINED


@pytest.mark.parametrize(
    "source",
    [
        "'x' | fromjson",
        "'[NaN]' | fromjson",
        "'[1' | fromjson",
        "'a' | ident | ident | ident | split('.') | map('ljust', 64) | ident",
        "'' | ident",
        "'a..b' | ident",
        "'a\\0' | ident",
        "'x' | regex_search('(')",
        "'x' | regex_search('(?=x)')",
        "'x' | regex_search('(x)\\\\1')",
        "'x' | regex_search('x', group=1)",
        "'x' | regex_replace('x', '\\\\1')",
        "'tomorrow' | to_datetime",
        "'2024-02-30' | to_datetime",
        "'2024-01-01' | date_add(1, 'eons')",
        "'2024-01-01' | date_format('%Q')",
        "'2024' | to_date('%Y-%m')",
        "[1] | batch(0)",
        "'a' | split('')",
        "'a' | ljust(3, 'xy')",
        "5 | round(method='up')",
        "'a' | truncate(1)",
        "'a' | hmac('k', 'crc')",
        "'%d%d' | format(1)",
        "'%d' | format(1, 2)",
        "'%y' | format(1)",
        "'gg' | b64decode | fromjson",
    ],
)
def test_K8_a_value_that_does_not_fit_is_an_error(source):
    with pytest.raises(TemplateError) as caught:
        value(source)
    assert caught.value.code == TemplateError.VALUE


@pytest.mark.parametrize("callee", CALLEES)
def test_B3_every_filter_and_test_takes_undefined_in_a_when(callee):
    """It gives a truth or an error of its arguments, never a complaint about what is missing."""
    sign = "|" if registries.filters.callees.get(callee.name) is callee else "is"
    needed = [one for one in callee.parameters if one.default is registries.REQUIRED]
    given = ", ".join(ARGUMENTS[one.kind] for one in needed if not one.variadic)
    if callee.name == "map":
        given = "'string'"
    template = compile_when(f"{{{{ nope.x {sign} {callee.name}({given}) }}}}")
    assert _code(template, {}) in ("", TemplateError.VALUE, TemplateError.TYPE)


ARGUMENTS = {
    "str": "'seconds'",
    "int": "1",
    "int | float": "1",
    "list[Value]": "[]",
    "dict[str, Value]": "{}",
    "Value": "1",
    "Operand": "[1]",
}


def _code(template, scope):
    try:
        template.truth(scope)
    except TemplateError as error:
        return error.code
    return ""
