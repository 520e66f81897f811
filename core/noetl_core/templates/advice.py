"""What to write instead of what other template languages have (B6): hints for refused words."""

from __future__ import annotations

from jinja2 import nodes

_METHODS = {
    "append": "write `{x} + [item]`",
    "count": "write `{x} | select('equalto', value) | list | length`",
    "decode": "write `{x} | b64decode`",
    "endswith": "write `{x} is endingwith('…')`",
    "find": "write `'…' in {x}`",
    "format": "write `{x} | format(value)`",
    "get": "write `{x}.{arg} | default(none)`",
    "index": "write `'…' in {x}`",
    "isdigit": "write `{x} is matching('[0-9]+')`",
    "isoformat": "write `{x} | to_datetime`",
    "items": "write `{x} | items`",
    "join": "write `items | join('…')`",
    "keys": "write `{x} | keys`",
    "lower": "write `{x} | lower`",
    "lstrip": "write `{x} | ltrim`",
    "pop": "write `{x}.{arg}`; data is never changed",
    "replace": "write `{x} | replace(old, new)`",
    "rstrip": "write `{x} | rtrim`",
    "split": "write `{x} | split(',')`",
    "startswith": "write `{x} is startingwith('…')`",
    "strftime": "write `{x} | date_format('%Y-%m-%d')`",
    "strip": "write `{x} | trim`",
    "title": "write `{x} | title`",
    "update": "write `{x} | combine(other)`",
    "upper": "write `{x} | upper`",
    "values": "write `{x} | values`",
}
_FUNCTIONS = {
    "bool": "write `value | bool`",
    "dict": "write `{'key': value}`",
    "float": "write `value | float`",
    "int": "write `value | int`",
    "joiner": "write `items | join(', ')`",
    "len": "write `value | length`",
    "list": "write `value | list`",
    "max": "write `[a, b] | max`",
    "min": "write `[a, b] | min`",
    "namespace": "keep values in ctx with set_ctx",
    "now": "templates have no clock; the worker's `outcome.meta.started_at` is a time",
    "range": "write the list in the workload, or make it in a python task",
    "round": "write `value | round`",
    "sorted": "write `value | sort`",
    "str": "write `value | string`",
    "sum": "write `value | sum`",
}
_FILTERS = {
    "attr": "write `value.name` or `value['name']`",
    "e": "templates make no HTML: write the value as it is",
    "escape": "templates make no HTML: write the value as it is",
    "filesizeformat": "compute it in a python task",
    "forceescape": "templates make no HTML: write the value as it is",
    "pprint": "write `tojson(indent=2)`",
    "random": "templates give the same value every time; choose in a python task",
    "safe": "templates make no HTML: write the value as it is",
    "shuffle": "templates give the same value every time; choose in a python task",
    "striptags": "write `regex_replace('<[^>]*>', '')`",
    "urlize": "templates make no HTML",
    "wordwrap": "wrap the text in a python task",
    "xmlattr": "templates make no HTML",
}
_TESTS = {
    "callable": "data is never callable",
    "escaped": "templates make no HTML",
    "filter": "the allowed filters are on the reference page",
    "test": "the allowed tests are on the reference page",
}


def advise_call(node: nodes.Call) -> tuple[str, str, str]:
    """The message, the hint and the words to blame for a call."""
    callee = node.node
    if isinstance(callee, nodes.Getattr):
        holder = source_of(callee.node)
        hint = _METHODS.get(callee.attr, "data has no methods; use a filter")
        hint = hint.replace("{x}", holder).replace("{arg}", _first_argument(node))
        return f"`.{callee.attr}(…)` is a call", hint, f"{holder}.{callee.attr}("
    if isinstance(callee, nodes.Name):
        hint = _FUNCTIONS.get(callee.name, "expressions have filters, not functions")
        return f"`{callee.name}(…)` is a call", hint, f"{callee.name}("
    return "calls are not part of the language", "expressions have filters, not functions", ""


def advise_filter(name: str) -> str:
    """Why a filter that others have is not here, or nothing."""
    return _FILTERS.get(name, "")


def advise_test(name: str) -> str:
    """Why a test that others have is not here, or nothing."""
    return _TESTS.get(name, "")


def _first_argument(node: nodes.Call) -> str:
    if node.args and isinstance(node.args[0], nodes.Const):
        return str(node.args[0].value)
    return "key"


def source_of(node: nodes.Node) -> str:
    """A path as written, for hints; `x` for anything more complicated."""
    words: list[str] = []
    while isinstance(node, nodes.Getattr) and len(words) < 8:
        words.append(node.attr)
        node = node.node
    if not isinstance(node, nodes.Name):
        return "x"
    return ".".join([node.name, *reversed(words)])
