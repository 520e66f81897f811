"""What the text of a template may not hold (rules B6, K9), found when it is compiled."""

import pytest

from noetl_core.templates import TemplateProblems, compile_template, problems


@pytest.mark.parametrize(
    ("source", "code", "hint"),
    [
        ("{% if x %}a{% endif %}", "B6.statement", "a if condition else b"),
        ("{%- set x = 1 -%}", "B6.statement", ""),
        ("{% raw %}{{ x }}{% endraw %}", "B6.statement", ""),
        ("{% macro m() %}{% endmacro %}", "B6.statement", ""),
        ("{{ 'x'.upper() }}", "B6.call", "| upper"),
        ("{{ ctx.s.upper() }}", "B6.call", "write `ctx.s | upper`"),
        ("{{ ctx.m.items() }}", "B6.call", "write `ctx.m | items`"),
        ("{{ ctx.m.get('a') }}", "B6.call", "ctx.m.a | default(none)"),
        ("{{ ctx.l.append(1) }}", "B6.call", "+ [item]"),
        ("{{ range(10) }}", "B6.call", ""),
        ("{{ len(x) }}", "B6.call", "| length"),
        ("{{ now() }}", "B6.call", "no clock"),
        ("{{ caller() }}", "B6.call", ""),
        ("{{ x()()() }}", "B6.call", ""),
        ("{{ (x | upper)() }}", "B6.call", ""),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "B6.call", ""),
        ("{{ x | attr('y') }}", "B6.filter", "value.name"),
        ("{{ x | uper }}", "B6.filter", "did you mean `upper`?"),
        ("{{ x | random }}", "B6.filter", "same value every time"),
        ("{{ x | safe }}", "B6.filter", "no HTML"),
        ("{{ x | map('uper') }}", "B6.filter", "did you mean `upper`?"),
        ("{{ x | map('attr', 'y') }}", "B6.filter", ""),
        ("{{ x | map('map', 'nothing') }}", "B6.filter", ""),
        ("{{ x | map(y) }}", "B6.filter", "write it out"),
        ("{{ x | select('oddd') }}", "B6.test", "did you mean `odd`?"),
        ("{{ x | selectattr('a', y) }}", "B6.test", "write it out"),
        ("{{ x | rejectattr('a', 'callable') }}", "B6.test", ""),
        ("{{ x is nothing }}", "B6.test", ""),
        ("{{ 'a' * 3 }}", "B6.operator", ""),
        ("{{ 3 * [1] }}", "B6.operator", ""),
        ("{{ 2 ** 3 }}", "B6.operator", ""),
        ("{{ '%s' % 1 }}", "B6.operator", "format"),
        ("{{ x | replace('a') }}", "B6.filter-args", "replace(old, new"),
        ("{{ x | replace('a', 'b', 1, 2) }}", "B6.filter-args", ""),
        ("{{ x | length(1) }}", "B6.filter-args", ""),
        ("{{ x | join(sep=',') }}", "B6.filter-args", ""),
        ("{{ x | center('wide') }}", "B6.filter-args", ""),
        ("{{ x | upper(*y) }}", "B6.filter-args", "one by one"),
        ("{{ x | upper(**y) }}", "B6.filter-args", "one by one"),
        ("{{ x | map }}", "B6.filter-args", ""),
        ("{{ x | selectattr }}", "B6.filter-args", ""),
        ("{{ self }}", "B6.syntax", ""),
        ("{{ }}", "B6.syntax", ""),
        ("{{ x", "B6.syntax", "}}"),
        ("{{ x }", "B6.syntax", ""),
        ("{{ (x }}", "B6.syntax", ""),
        ("{{ 'x }}", "B6.syntax", ""),
        ("{{ x = 1 }}", "B6.syntax", ""),
        ("{{ x && y }}", "B6.syntax", "and"),
        ("{{ !x }}", "B6.syntax", "not"),
        ("{{ x ? y : z }}", "B6.syntax", "if condition else"),
        ("{{ 1 2 }}", "B6.syntax", ""),
        ("{{ not }}", "B6.syntax", ""),
        ("{# no end", "B6.syntax", "#}"),
        ("{{ '\\ud800' }}", "B6.syntax", ""),
        ("{{ 1e999 }}", "B6.syntax", ""),
    ],
)
def test_B6_refused_with_a_cure(source, code, hint):
    found = problems(source)
    assert code in [problem.code for problem in found]
    text = " ".join(str(problem) for problem in found)
    assert hint in text


def test_B6_all_problems_are_found_at_once_with_their_places():
    source = "a\n{{ x() }}\n{{ y | nope }} {% if %}\n{{ 2 ** 3 }}"
    found = problems(source)
    assert [(one.code, one.line) for one in found] == [
        ("B6.call", 2),
        ("B6.filter", 3),
        ("B6.statement", 3),
        ("B6.operator", 4),
    ]
    for one in found:
        assert one.snippet in source
        assert 0 <= one.offset <= len(source)


def test_B6_a_template_with_problems_does_not_compile():
    with pytest.raises(TemplateProblems, match=r"B6\.call"):
        compile_template("{{ f() }}")


@pytest.mark.parametrize(
    "source", ["{# {% if %} {{ f() }} #}ok", "{ %x% }", "{ { x() } }", "50 %}"]
)
def test_K9_comments_and_single_braces_are_allowed(source):
    assert problems(source) == ()
