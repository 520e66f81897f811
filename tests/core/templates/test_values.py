"""What a template yields (rules B1, B3, B4, B5, K6, K8): native values, text, what is missing."""

import pytest

from noetl_core.templates import TemplateError, compile_template, render

SCOPE = {
    "workload": {"api_url": "http://x", "n": 3, "ctx": "shadow"},
    "ctx": {
        "items": "I",
        "keys": "K",
        "none": None,
        "text": "abc",
        "odd": {"a b": 1, "get": 2},
        "list": [1, 2, 3],
        "template": "{{ ctx.text }}",
        "users": [{"name": "ann"}],
    },
    "iter": {"items": [1]},
}


def value(source):
    return compile_template(source).value(SCOPE)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ ctx.list }}", [1, 2, 3]),
        ("{{ 5 }}", 5),
        ("{{ '5' }}", "5"),
        ("{{ 5.0 }}", 5.0),
        ("{{ true }}", True),
        ("{{ none }}", None),
        ("{{ (1, 2) }}", [1, 2]),
        ("{{ {'a': {'b': 1}} }}", {"a": {"b": 1}}),
        ("{{ 'true' }}", "true"),
        ("{{ '[1]' }}", "[1]"),
    ],
)
def test_B1_a_lone_expression_keeps_its_type(source, expected):
    found = value(source)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x{{ 5 }}", "x5"),
        ("{{ 1 }}{{ 2 }}", "12"),
        ("n={{ none }} b={{ true }}", "n=null b=true"),
        ("{{ ctx.list }}!", "[1, 2, 3]!"),
        ("{{ ctx.odd }}.", '{"a b": 1, "get": 2}.'),
        ("{{ 1.0 }}/{{ 2 }}", "1.0/2"),
        ("5", "5"),
        ("true", "true"),
        ("", ""),
        ("}} {x} {", "}} {x} {"),
    ],
)
def test_B1_anything_else_is_text(source, expected):
    assert value(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        " {{ ctx.list }} ",
        "\n{{ ctx.list }}\n",
        "{{- ctx.list -}}",
        " \t{{- ctx.list -}}\r\n",
        "{{\nctx.list\n}}",
        "{# why #}{{ ctx.list }}",
        " {# a #} {{ ctx.list }} {# b #} ",
    ],
)
def test_K6_blanks_dashes_and_comments_do_not_make_text(source):
    template = compile_template(source)
    assert template.is_native
    assert template.value(SCOPE) == [1, 2, 3]


def test_K6_dashes_take_the_blanks_away_on_their_side():
    assert value("a  {{- 1 }}  b {{ 2 -}}  c") == "a1  b 2c"


def test_K6_keys_of_mappings_are_never_templates():
    rendered = render({"{{ ctx.text }}": ["{{ ctx.text }}", 1, None]}, SCOPE)
    assert rendered == {"{{ ctx.text }}": ["abc", 1, None]}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ iter.items }}", [1]),
        ("{{ ctx.items }}", "I"),
        ("{{ ctx.keys }}", "K"),
        ("{{ ctx.odd.get }}", 2),
        ("{{ ctx.odd['a b'] }}", 1),
        ("{{ ctx.list[-1] }}", 3),
        ("{{ ctx.list.0 }}", 1),
        ("{{ ctx.text[1] }}", "b"),
        ("{{ ctx.users[0].name }}", "ann"),
        ("{{ ctx['te' ~ 'xt'] }}", "abc"),
        ("{{ {'a': 1}.a }}", 1),
    ],
)
def test_B5_lookup_is_by_item(source, expected):
    assert value(source) == expected


@pytest.mark.parametrize(
    "path",
    [
        "ctx.values",
        "ctx.text.upper",
        "ctx.list.append",
        "ctx.__class__",
        "ctx.list['0']",
        "ctx['__len__']",
        "ctx.text.format",
    ],
)
def test_B5_data_has_no_attributes_of_its_own(path):
    assert value(f"{{{{ {path} | default('nothing') }}}}") == "nothing"
    with pytest.raises(TemplateError) as caught:
        value(f"{{{{ {path} }}}}")
    assert caught.value.code == "B3.undefined"


def test_B5_what_was_rendered_is_not_rendered_again():
    assert value("{{ ctx.template }}") == "{{ ctx.text }}"
    assert value("a {{ ctx.template }}") == "a {{ ctx.text }}"


def test_B4_a_bare_name_reads_the_workload():
    assert value("{{ api_url }}/v1") == "http://x/v1"


def test_B4_a_scope_wins_over_the_workload():
    assert value("{{ ctx.text }}") == "abc"


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("{{ nope }}", "nope"),
        ("{{ nope.a.b }}", "nope"),
        ("{{ ctx.nope.a }}", "ctx.nope"),
        ("{{ ctx.none.a.b }}", "ctx.none.a"),
        ("{{ ctx.list[9] }}", "ctx.list[9]"),
        ("{{ ctx.list[4 + 5] }}", "ctx.list[9]"),
        ("{{ ctx['a' ~ 'b'] }}", "ctx.ab"),
        ("{{ ctx.odd['x y'] }}", "ctx.odd['x y']"),
        ("text {{ ctx.nope }}", "ctx.nope"),
        ("{{ ctx.nope ~ 'x' }}", "ctx.nope"),
        ("{{ ctx.nope + 1 }}", "ctx.nope"),
        ("{{ [ctx.nope] }}", "ctx.nope"),
        ("{{ {'k': ctx.nope} }}", "ctx.nope"),
        ("{{ ctx.nope == 1 }}", "ctx.nope"),
        ("{{ ctx.nope or 1 }}", "ctx.nope"),
        ("{{ not ctx.nope }}", "ctx.nope"),
        ("{{ 1 if ctx.nope else 2 }}", "ctx.nope"),
        ("{{ ctx.nope | upper }}", "ctx.nope"),
        ("{{ 'a' | replace('a', ctx.nope) }}", "ctx.nope"),
        ("{{ ctx.nope | default(ctx.other) }}", "ctx.other"),
        ("{{ ctx.nope[1:] }}", "ctx.nope"),
        ("{{ ctx.nope is none }}", "ctx.nope"),
        ("{{ ctx[ctx.nope] }}", "ctx.nope"),
    ],
)
def test_B3_what_is_missing_is_an_error_that_names_its_path(source, missing):
    with pytest.raises(TemplateError) as caught:
        value(source)
    assert caught.value.code == TemplateError.UNDEFINED
    assert caught.value.missing == missing
    assert missing in str(caught.value)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ nope.a.b[0]['c'] | default('d') }}", "d"),
        ("{{ (nope.a).b | default('d') }}", "d"),
        ("{{ ctx.none.x.y | d('d') }}", "d"),
        ("{{ nope[1:2].x | default('d') }}", "d"),
        ("{{ ctx.none | default('d') }}", None),
        ("{{ ctx.none | default('d', true) }}", "d"),
        ("{{ '' | default('d', boolean=true) }}", "d"),
        ("{{ 0 | default(1) }}", 0),
        ("{{ nope | default }}", ""),
        ("{{ ctx.text | default(nope) }}", "abc"),
        ("{{ nope is defined }}", False),
        ("{{ nope.a.b is undefined }}", True),
        ("{{ ctx.none is defined }}", True),
        ("{{ ctx.none.a is not defined }}", True),
        ("{{ [] | first | default(0) }}", 0),
        ("{{ (1 if false) | default(2) }}", 2),
        ("{{ 1 if nope is defined else 2 }}", 2),
    ],
)
def test_B3_chains_reach_default_and_defined_intact(source, expected):
    assert value(source) == expected


def test_B3_a_near_miss_is_named():
    with pytest.raises(TemplateError, match=r"did you mean ctx\.users\?"):
        value("{{ ctx.user[0] }}")


def test_B3_an_error_says_where_in_a_tree_it_happened():
    with pytest.raises(TemplateError) as caught:
        render({"headers": {"x": ["a", "{{ ctx.nope }}"]}}, SCOPE)
    assert caught.value.where == ("headers", "x", 1)
    assert str(caught.value).startswith("headers.x[1]: ctx.nope is not defined")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ 7 // 2 }}", 3),
        ("{{ 7 / 2 }}", 3.5),
        ("{{ 7 % 4 }}", 3),
        ("{{ -n + 2 * 5 }}", 7),
        ("{{ 1 ~ 'a' ~ none ~ true }}", "1anulltrue"),
        ("{{ [1] + [2] }}", [1, 2]),
        ("{{ 'a' + 'b' }}", "ab"),
        ("{{ ctx.list[1:] }}", [2, 3]),
        ("{{ ctx.text[::-1] }}", "cba"),
        ("{{ 2 in ctx.list }}", True),
        ("{{ 'b' in ctx.text }}", True),
        ("{{ 'odd' in ctx }}", True),
        ("{{ 5 not in ctx.list }}", True),
        ("{{ 1 < 2 < 3 }}", True),
        ("{{ 1 < 3 < 2 }}", False),
        ("{{ 'a' < 'b' }}", True),
        ("{{ 1 == '1' }}", False),
        ("{{ [1, {'a': 2}] == [1, {'a': 2}] }}", True),
        ("{{ '' or 'x' }}", "x"),
        ("{{ 0 and 1 }}", 0),
        ("{{ not [] }}", True),
        ("{{ 'a' 'b' }}", "ab"),
        ("{{ 0x10 + 1_000 }}", 1016),
        ("{{ 'é\\u00e9\\n\\d' }}", "éé\n\\d"),
    ],
)
def test_K9_operators(source, expected):
    assert value(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "{{ 1 < 'a' }}",
        "{{ [1] < [2] }}",
        "{{ none > 1 }}",
        "{{ true < 2 }}",
        "{{ 1 + 'a' }}",
        "{{ 'a' + 1 }}",
        "{{ [1] + 1 }}",
        "{{ {} + {} }}",
        "{{ ctx.text * 3 }}",
        "{{ 3 * ctx.list }}",
        "{{ ctx.text % 3 }}",
        "{{ true + 1 }}",
        "{{ -ctx.text }}",
        "{{ 1 in 5 }}",
        "{{ 1 in ctx.text }}",
        "{{ {1: 2} }}",
        "{{ 5[1:] }}",
        "{{ ctx.list['a':] }}",
        "{{ ctx.list | upper }}",
        "{{ 5 | length }}",
        "{{ ctx.list is odd }}",
    ],
)
def test_K8_a_wrong_type_is_an_error(source):
    with pytest.raises(TemplateError) as caught:
        value(source)
    assert caught.value.code == TemplateError.TYPE


@pytest.mark.parametrize("source", ["{{ 1 / 0 }}", "{{ 1 // 0 }}", "{{ 1.5 % 0 }}"])
def test_K8_a_division_by_zero_is_an_error(source):
    with pytest.raises(TemplateError, match="by zero"):
        value(source)


@pytest.mark.parametrize(
    ("source", "expected"),
    [("{{ ctx.list }}", "[1, 2, 3]"), ("{{ none }}", "null"), ("a{{ 1 }}", "a1"), ("x", "x")],
)
def test_B1_text_of_a_template(source, expected):
    assert compile_template(source).text(SCOPE) == expected


def test_B1_paths_of_a_template_are_known():
    template = compile_template("{{ ctx.a[0]['b'] }} {{ x | default(keychain[ctx.k]) }}")
    assert set(template.paths) == {("ctx", "a", 0, "b"), ("x",), ("keychain",), ("ctx", "k")}
