"""How the API server refuses a word that is not part of v10, with the words of `legacy`.

A structural schema drops unknown keys in silence, so a refused word is declared, and forbidden by a
CEL rule. Kubernetes gives CEL no type for a value that may be anything; `dyn` still sees whether it
is there. Below a value of several types (`tool`, `next`, `executor`) no CEL rule may stand: there
an `enum` whose only member is the message refuses every value, and the API server prints it.
"""

from __future__ import annotations

from collections.abc import Mapping

from noetl_core import legacy
from noetl_core.shape import Schema
from noetl_core.values import Value

ANYTHING: Schema = {"x-kubernetes-preserve-unknown-fields": True}
"""A value of any type; `null` is the same as nothing."""
DATA: Schema = {"nullable": True, **ANYTHING}
"""A value of any type, `null` included."""

REFUSED = "Not part of v10."
"""What `kubectl explain` says of a refused word; whoever writes one gets the whole message."""

PLACES = frozenset(legacy.WORDS)
"""The places of the language that have refused words."""

_CEL_KEYWORDS = frozenset({"as", "break", "const", "continue", "else", "false", "for", "function"})
_CEL_KEYWORDS |= {"if", "import", "in", "let", "loop", "namespace", "null", "package", "return"}
_CEL_KEYWORDS |= {"true", "var", "void", "while"}


def words_of(place: str) -> dict[str, str]:
    """The refused words at a place, each with its message."""
    words = {name: word.message for name, word in legacy.WORDS.get(place, {}).items()}
    if place == "rule":
        moved = {name: f"`{name}` belongs under `then`" for name in sorted(legacy.RULE_WORDS)}
        words |= moved
    return words


def cel_name(key: str) -> str:
    """A key as CEL writes it."""
    return f"__{key}__" if key in _CEL_KEYWORDS else key


def rule(cel: str, message: str, field: str = "") -> Schema:
    """A CEL rule; with a field it is that field which is forbidden."""
    made: Schema = {"rule": cel, "message": message}
    return made | {"fieldPath": f".{field}", "reason": "FieldValueForbidden"} if field else made


def refuse_by_rule(node: Schema, words: Mapping[str, str]) -> Schema:
    """An object's schema with the words declared, and a CEL rule against each."""
    properties = _properties(node)
    rules: list[Value] = []
    for word, message in sorted(words.items()):
        if word not in properties:
            properties[word] = {"description": REFUSED, **ANYTHING}
            rules.append(rule(f"!has(dyn(self).{cel_name(word)})", message, word))
    return add_rules(node | {"properties": properties}, rules)


def refuse_by_enum(node: Schema, words: Mapping[str, str]) -> Schema:
    """The same where CEL can't reach."""
    properties = _properties(node)
    for word, message in sorted(words.items()):
        if word not in properties:
            properties[word] = {"description": REFUSED, "enum": [only(message)], **DATA}
    return node | {"properties": properties}


def only(message: str) -> str:
    """A message as the one supported value that the API server will print."""
    return f"(none) {message}"


def add_rules(node: Schema, rules: list[Value]) -> Schema:
    before = node.get("x-kubernetes-validations", [])
    assert isinstance(before, list)
    every = [*before, *rules]
    return node | {"x-kubernetes-validations": every} if every else node


def _properties(node: Schema) -> dict[str, Value]:
    properties = node.get("properties", {})
    assert isinstance(properties, dict)
    return dict(properties)
