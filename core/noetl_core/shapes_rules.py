"""Lists of rules, of admission and of task policies: `when`/`then`, and an `else` last (rule
A5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from noetl_core import legacy, rewrite
from noetl_core.nodes import (
    Entry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    first_values,
    kind_of,
)
from noetl_core.reading import Cursor
from noetl_core.shape import Definitions, Record, Schema, Shape, dump_record
from noetl_core.shapes_forms import Lazy
from noetl_core.values import Value

if TYPE_CHECKING:
    from noetl_core.model import AdmitRule, Rule

R = TypeVar("R", bound=Record)


class Rules(Lazy[R], Shape[tuple[R, ...]]):
    """A list of `when`/`then` rules with an `else` last (rule A5)."""

    expected = "a list of rules"
    then_key = ""

    def blank(self) -> tuple[R, ...]:
        return ()

    def read(self, node: Node, at: Cursor) -> tuple[R, ...]:
        if not isinstance(node, SequenceNode):
            return self.wrong(node, at)
        rules: list[R] = []
        closed = False
        for index, item in enumerate(node.items):
            here = at.child(index, item)
            if closed:
                here.error("A5.rule-after-else", "a rule after `else` is never reached", item)
            if not isinstance(item, MappingNode):
                here.error("A2.type", f"a rule is a mapping, not {kind_of(item)}", item)
                continue
            closed = closed or "else" in item.entries
            rules.append(self._rule(item, here))
        return tuple(rules)

    def _rule(self, node: MappingNode, at: Cursor) -> R:
        entries = node.entries
        if "else" in entries:
            return self._else(node, entries["else"], at)
        if "when" not in entries and "expr" not in entries:
            hint = 'write `when: "{{ … }}"` for a condition, or `else:` for the last rule'
            at.error("A5.rule-without-when", "a rule has neither `when` nor `else`", node, hint)
        for name, entry in entries.items():
            if name not in ("when", "then"):
                self._stray(entry, node, at)
        if "then" not in entries:
            self._without_then(node, at)
        return self._made(entries.get("when"), entries.get("then"), at)

    def _else(self, node: MappingNode, entry: Entry, at: Cursor) -> R:
        inner = at.child("else", entry.node)
        body = entry.node
        has_then = isinstance(body, MappingNode) and "then" in body.entries
        for name, stray in node.entries.items():
            if name == "when":
                message = "a rule has `when` or `else`, not both"
                at.error("A5.rule-when-and-else", message, stray.key_node)
            elif name != "else" and (name != "then" or has_then):
                self._stray(stray, node, at)
        if not isinstance(body, MappingNode) or not has_then:
            hint = rewrite.else_rule(first_values(node), self.then_key)
            inner.error("A5.else-without-then", "`else` needs a `then`", entry.node, hint)
            return self._made(None, None, inner)
        for name, stray in body.entries.items():
            if name != "then":
                inner.unknown_key(stray, "rule", ["then"], body)
        return self._made(None, body.entries["then"], inner)

    def _stray(self, entry: Entry, node: MappingNode, at: Cursor) -> None:
        if entry.key in legacy.RULE_WORDS:
            hint = rewrite.flat_rule(first_values(node), self.then_key)
            message = f"`{entry.key}` belongs under `then`"
            at.error_at_key("A5.rule-shape", message, entry, hint)
        else:
            known = [key for key in ("when", "then", "else") if key not in node.entries]
            at.unknown_key(entry, "rule", known or ["when", "then"], node)

    def _without_then(self, node: MappingNode, at: Cursor) -> None:
        if any(word in node.entries for word in legacy.RULE_WORDS):
            return
        hint = "then: {do: …}" if self.then_key == "do" else "then: {allow: true}"
        at.error("A5.rule-without-then", "a rule needs a `then`", node, hint)

    def _made(self, when: Entry | None, then: Entry | None, at: Cursor) -> R:
        raise NotImplementedError


class TaskRules(Rules["Rule"]):
    """Rules of a task policy."""

    then_key = "do"
    code = "A5.policy-shape"

    def _made(self, when: Entry | None, then: Entry | None, at: Cursor) -> Rule:
        cls = self.cls
        guard = None
        if when is not None:
            guard = cls.keys["when"].shape.read(when.node, at.child("when", when.node))
        then_shape = cls.keys["then"].shape
        if then is None:
            return cls(when=cast("str | bool | None", guard), then=then_shape.blank())  # type: ignore[arg-type]
        here = at.child("then", then.node)
        return cls(when=cast("str | bool | None", guard), then=then_shape.read(then.node, here))  # type: ignore[arg-type]

    def dump(self, value: tuple[Rule, ...]) -> Value:
        return [_dump_rule(rule.when, dump_record(rule.then)) for rule in value]

    def schema(self, defs: Definitions) -> Schema:
        return _rules_schema(self.cls.keys["then"].shape.schema(defs))


class AdmitRules(Rules["AdmitRule"]):
    """Rules of admission: `then: {allow: …}`."""

    then_key = "allow"

    def _made(self, when: Entry | None, then: Entry | None, at: Cursor) -> AdmitRule:
        cls = self.cls
        guard = None
        if when is not None:
            guard = cls.keys["when"].shape.read(when.node, at.child("when", when.node))
        # What could not be read may allow: one mistake is not told twice.
        allow = self._allow(then, at) if then is not None else True
        return cls(when=cast("str | bool | None", guard), allow=allow)

    def _allow(self, then: Entry, at: Cursor) -> bool:
        here = at.child("then", then.node)
        if not isinstance(then.node, MappingNode):
            here.error("A2.type", f"expected {{allow: …}}, got {kind_of(then.node)}", then.node)
            return True
        for name, entry in then.node.entries.items():
            if name != "allow":
                here.unknown_key(entry, "admit.then", ["allow"], then.node)
        entry_allow = then.node.entries.get("allow")
        if entry_allow is None:
            here.missing("allow", "then: {allow: true} or {allow: false}", then.node)
            return True
        shape = self.cls.keys["allow"].shape
        shape.read(entry_allow.node, here.child("allow", entry_allow.node))
        return not (isinstance(entry_allow.node, ScalarNode) and entry_allow.node.value is False)

    def dump(self, value: tuple[AdmitRule, ...]) -> Value:
        return [_dump_rule(rule.when, {"allow": rule.allow}) for rule in value]

    def schema(self, defs: Definitions) -> Schema:
        allow: Schema = {"type": "boolean", "description": "Whether the token may enter."}
        then: Schema = {"type": "object", "properties": {"allow": allow}, "required": ["allow"]}
        return _rules_schema(then | {"additionalProperties": False})


def _dump_rule(when: str | bool | None, then: dict[str, Value]) -> Value:
    return {"else": {"then": then}} if when is None else {"when": when, "then": then}


def _rules_schema(then: Schema) -> Schema:
    whens: Schema = {"type": ["string", "boolean"], "description": "The condition."}
    other: Schema = {
        "type": "object",
        "description": "The last rule, when no other matched.",
        "properties": {"then": then},
        "required": ["then"],
        "additionalProperties": False,
    }
    rule: Schema = {
        "type": "object",
        "properties": {"when": whens, "then": then, "else": other},
        "additionalProperties": False,
        "oneOf": [{"required": ["when", "then"]}, {"required": ["else"]}],
    }
    return {"type": "array", "items": rule}
