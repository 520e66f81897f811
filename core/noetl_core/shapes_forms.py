"""Settings that may be written in more than one way: executors, joins, routers, timeouts (rules
A5, K5).

Each reads every accepted form into the one the model has, and says what is wrong with the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from noetl_core import legacy, rewrite
from noetl_core.nodes import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    first_values,
    kind_of,
    plain_value,
)
from noetl_core.problems import shortened
from noetl_core.reading import Cursor
from noetl_core.scopes import Scope
from noetl_core.shape import (
    Data,
    Definitions,
    Number,
    Rec,
    Record,
    Schema,
    Shape,
    check_least,
    dump_record,
)
from noetl_core.values import Value

if TYPE_CHECKING:
    from noetl_core.model import Join, Next

R = TypeVar("R", bound=Record)


class Empty(Data):
    """Something reserved that is usually written empty (`policy: {}`); a warning only when it is
    not."""

    def read(self, node: Node, at: Cursor) -> Value:
        value = plain_value(node)
        if isinstance(node, MappingNode):
            for word, entry in node.entries.items():
                if word in legacy.CONTROL_WORDS:
                    at.unknown_key(entry, "policy", [], node)
        if value:
            at.warning("K5.no-effect", f"`{at.written[-1]}` is reserved and has no effect", node)
        return value


class RefusedHooks(Data):
    """`before`, `after`, `finally` of a task policy: accepted while empty (rule K5)."""

    def read(self, node: Node, at: Cursor) -> Value:
        value = plain_value(node)
        if value:
            hint = "write it as a task of its own in the pipeline"
            at.error("K5.hook", f"the hook `{at.written[-1]}` is not part of v10", node, hint)
        return None


class Timeout(Shape[Value]):
    """A number of seconds, or `{connect, read}` (rule D9)."""

    expected = "a number of seconds or {connect, read}"

    def blank(self) -> Value:
        return None

    def read(self, node: Node, at: Cursor) -> Value:
        if isinstance(node, MappingNode):
            for name, entry in node.entries.items():
                if name not in ("connect", "read"):
                    at.unknown_key(entry, "", ["connect", "read"], node)
                else:
                    Number(0, above=True).read(entry.node, at.child(name, entry.node))
            return plain_value(node)
        if isinstance(node, ScalarNode) and type(node.value) in (int, float):
            return check_least(cast(float, node.value), 0, True, node, at)
        return self.wrong(node, at)

    def schema(self, defs: Definitions) -> Schema:
        seconds: Schema = {"type": "number", "exclusiveMinimum": 0}
        both: Schema = {"connect": dict(seconds), "read": dict(seconds)}
        pair: Schema = {"type": "object", "properties": both, "additionalProperties": False}
        return {"anyOf": [seconds, pair]}


class PolicyShape(Rec[R]):
    """A task policy: an object with `rules`, and nothing else (rule A5)."""

    expected = "a policy: an object with `rules`"
    code = "A5.policy-shape"

    def wrong(self, node: Node, at: Cursor, hint: str | None = None) -> R:
        return super().wrong(node, at, rewrite.policy_object(first_values(node)))


class ThenShape(Rec[R]):
    """What a rule does: an object with `do` (rule A5)."""

    expected = "an object with `do`"
    code = "A5.then-without-do"

    def wrong(self, node: Node, at: Cursor, hint: str | None = None) -> R:
        word = node.value if isinstance(node, ScalarNode) else None
        shown = shortened(word) if isinstance(word, str) else "…"
        return super().wrong(node, at, f"then: {{do: {shown}}}")


class LoopIn(Data):
    """A list, or a template that yields one (rule E1)."""

    def read(self, node: Node, at: Cursor) -> Value:
        scope = Scope.INNER_LOOP if at.path.count("loop") > 1 else Scope.LOOP
        if isinstance(node, SequenceNode):
            at.templates_in(node, scope)
        elif isinstance(node, ScalarNode) and isinstance(node.value, str):
            template = at.template(node, node.value, scope)
            if template.is_constant or not template.is_native:
                hint = f'write one template: in: "{{{{ {node.value.strip()[:60]} }}}}"'
                message = "`in` takes a list or one template that yields a list, not text"
                at.error("E1.loop-in", message, node, hint if template.is_constant else None)
        else:
            message = f"`in` takes a list or a template that yields one, not {kind_of(node)}"
            at.error("E1.loop-in", message, node)
        return plain_value(node)

    def schema(self, defs: Definitions) -> Schema:
        return {"type": ["array", "string"]}


class Lazy(Generic[R]):
    """A model class that is declared further down its module."""

    def __init__(self, cls: Callable[[], type[R]]) -> None:
        self._cls = cls

    @property
    def cls(self) -> type[R]:
        return self._cls()


class ExecutorShape(Lazy[R], Shape[R]):
    """`executor: pool`, or the mapping with `kind` and `spec`."""

    expected = "a kind (`pool`, `pod`, `job`) or a mapping with `kind` and `spec`"

    def blank(self) -> R:
        return self.cls()

    def read(self, node: Node, at: Cursor) -> R:
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            kind = self.cls.keys["kind"].shape.read(node, at)
            return self.cls(kind=kind)  # type: ignore[call-arg]  # both executor classes have it
        if not isinstance(node, MappingNode):
            return self.wrong(node, at)
        return Rec(self.cls).read(node, at)

    def dump(self, value: R) -> Value:
        return dump_record(value)

    def schema(self, defs: Definitions) -> Schema:
        word = self.cls.keys["kind"].shape.schema(defs)
        return {"anyOf": [word, defs.ref(self.cls)]}


class JoinShape(Lazy["Join"], Shape["Join"]):
    """`join: all`, or `{mode: all, at_end: …}` (rule C9)."""

    expected = "`all` or {mode: all, at_end: fail|fire|drop}"

    def blank(self) -> Join:
        return self.cls()

    def read(self, node: Node, at: Cursor) -> Join:
        if isinstance(node, MappingNode):
            return Rec(self.cls).read(node, at)
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            self.cls.keys["mode"].shape.read(node, at)
            return self.cls()
        return self.wrong(node, at)

    def dump(self, value: Join) -> Value:
        return dump_record(value) or "all"

    def schema(self, defs: Definitions) -> Schema:
        return {"anyOf": [{"type": "string", "enum": ["all"]}, defs.ref(self.cls)]}


class NextShape(Lazy["Next"], Shape["Next"]):
    """A router object. The old list and string forms get the router written out (rule A5)."""

    expected = "a router with `spec` and `arcs`"

    def blank(self) -> Next:
        return self.cls()

    def read(self, node: Node, at: Cursor) -> Next:
        if isinstance(node, MappingNode):
            return Rec(self.cls).read(node, at)
        message = f"`next` is a router object with `arcs`, not {kind_of(node)}"
        at.error("A5.next-shape", message, node, rewrite.router(first_values(node)))
        return self.blank()

    def dump(self, value: Next) -> Value:
        return dump_record(value)

    def schema(self, defs: Definitions) -> Schema:
        return defs.ref(self.cls)
