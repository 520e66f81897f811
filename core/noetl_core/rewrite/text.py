"""Pieces of playbooks as text: old names replaced, data written as the YAML of a hint."""

from __future__ import annotations

import re

import yaml

from noetl_core.problems import shortened
from noetl_core.values import Value

_LONGEST = 4000
"""Characters of a written-out replacement; what is longer is cut, and says so."""
_MOST_NODES = 300
"""Values of a written-out replacement."""

_NAMES = (
    (re.compile(r"\b_err\b"), "outcome.error"),
    (re.compile(r"\bvars\."), "ctx."),
    (re.compile(r"\bresults\.(?=\w)"), ""),
    (re.compile(r"'step\.exit'|'step\.completed'|'call\.done'"), "'step.done'"),
    (re.compile(r"'call\.error'|'step\.error'"), "'step.failed'"),
)


def canonical_text(text: str) -> str:
    """A template with the old names replaced."""
    for pattern, name in _NAMES:
        text = pattern.sub(name, text)
    return text


def canonical(value: Value) -> Value:
    """Data with the old names in its templates replaced."""
    match value:
        case str():
            return canonical_text(value) if "{{" in value else value
        case list():
            return [canonical(item) for item in value]
        case dict():
            return {key: canonical(item) for key, item in value.items()}
        case _:
            return value


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # either one
    """Writes templates in double quotes, as authors do."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = '"' if "{{" in text and '"' not in text else None
    style = "|" if "\n" in text else style
    made = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    assert isinstance(made, yaml.ScalarNode)
    return made


_Dumper.add_representer(str, _text)


def written(value: Value) -> str:
    """A piece of YAML, indented by two."""
    text = yaml.dump(
        _pruned(value, [_MOST_NODES]),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=100,
    )
    if len(text) > _LONGEST:
        text = text[:_LONGEST].rsplit("\n", 1)[0] + "\n…"
    return "\n".join("  " + line if line else line for line in text.splitlines())


def _pruned(value: Value, left: list[int]) -> Value:
    """The beginning of a value: what an author has to see of it."""
    left[0] -= 1
    match value:
        case str():
            return shortened(value, 1000)
        case list() if left[0] > 0:
            kept = value[: left[0]]
            return [_pruned(item, left) for item in kept if left[0] > 0]
        case dict() if left[0] > 0:
            entries = list(value.items())[: left[0]]
            return {shortened(k): _pruned(item, left) for k, item in entries if left[0] > 0}
        case list() | dict():
            return "…"
        case _:
            return value


def say(lead: str, value: Value) -> str:
    return f"{lead}:\n{written(value)}"


def as_mapping(value: Value) -> dict[str, Value]:
    return value if isinstance(value, dict) else {}


def as_list(value: Value) -> list[Value]:
    return value if isinstance(value, list) else []


def bare_condition(text: Value) -> str:
    """The expression inside `{{ }}`, or the text itself."""
    plain = str(text).strip()
    inner = re.fullmatch(r"\{\{-?(.*?)-?\}\}", plain, re.DOTALL)
    return canonical_text((inner.group(1) if inner else plain).strip())


def braced(expression: str) -> str:
    return "{{ " + expression + " }}"


def as_guard(value: Value) -> Value:
    return value if isinstance(value, bool) else braced(bare_condition(value))


def policy_of(then: dict[str, Value]) -> dict[str, Value]:
    return {"spec": {"policy": {"rules": [{"else": {"then": then}}]}}}


def from_prev(value: Value) -> Value:
    """`_prev` at the end of a step is `outcome.result` in the last task's policy."""
    if isinstance(value, str) and "{{" in value:
        return re.sub(r"\b_prev\b", "outcome.result", canonical_text(value))
    if isinstance(value, dict):
        return {key: from_prev(item) for key, item in value.items()}
    return canonical(value)
