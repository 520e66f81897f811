"""JSON Schema of the model → the structural OpenAPI schema that a CRD takes.

References are written out (a nested loop to a few levels), a closed set of keys stays closed, and a
value that may be of several types becomes one without a type that keeps what each type may hold:
every facet of JSON Schema but `type` and `enum` speaks of one type and leaves the others alone.
"""

from __future__ import annotations

from typing import cast

from noetl_core.crds import refusals
from noetl_core.crds.refusals import ANYTHING, DATA
from noetl_core.model import Playbook, Task
from noetl_core.shape import Definitions, Record, Schema, record_schema
from noetl_core.tools import BUILT_IN, WorkbookKeys
from noetl_core.values import Value

DEEPEST_LOOP = 3
"""How many nested loops are checked by the API server; deeper ones are checked by the operator."""
MOST_ITEMS = {"workflow": 10_000, "keychain": 1_000, "arcs": 10_000}
"""How long a list may be, by its key: far above what people write."""
MOST_CEL_RULES = 100
"""How many rules an admission may have: CEL's estimate of their cost must stay in its budget."""

FREE_MAP: Schema = {"type": "object", "additionalProperties": DATA}
"""A mapping of free keys to anything. `null`s stay, and CEL compares two such maps key by key."""

_NEXT = "`next` is a router object: write next: {arcs: [{step: NAME}]}"
_KEPT = ("description", "pattern", "enum", "minimum", "minItems", "required", "format", "maxLength")


class _Records(Definitions):
    """Remembers which class a reference means."""

    def __init__(self) -> None:
        super().__init__()
        self.classes: dict[str, type[Record]] = {}

    def ref(self, record: type[Record]) -> Schema:
        self.classes[record.__name__] = record
        return {"$ref": f"#/$defs/{record.__name__}"}


class Converter:
    """One conversion. `cel` tells whether rules may stand at a place, `path` where it is."""

    def __init__(self) -> None:
        self._records = _Records()

    def record(self, cls: type[Record], path: tuple[str, ...] = (), *, cel: bool = True) -> Schema:
        """The schema of a model class, its refused words included."""
        if cls.__name__ == "Loop" and path.count("loop") > DEEPEST_LOOP:
            return dict(ANYTHING)
        if cls is Playbook:
            return self._playbook(path, cel)
        node = self.convert(record_schema(cls, self._records), path, cel=cel)
        node = self._refuse(node, cls.place, cel)
        return _step_rules(node) if cls.__name__ == "Step" and cel else node

    def convert(self, schema: Schema, path: tuple[str, ...], *, cel: bool) -> Schema:
        """Any schema that the model's shapes give."""
        alternatives = _alternatives(schema)
        if alternatives:
            node = self._union(alternatives, path)
        elif "$ref" in schema:
            node = self._resolved(str(schema["$ref"]), path, cel)
        elif "type" not in schema:
            node = dict(DATA)
        else:
            node = self._typed(schema, path, cel)
        if "description" in schema:
            words = " ".join(str(schema["description"]).split())
            node = {"description": words, **_without(node, "description")}
        return _router(node) if path[-1:] == ("next",) else node

    def _resolved(self, ref: str, path: tuple[str, ...], cel: bool) -> Schema:
        name = ref.rpartition("/")[2]
        if name in ("Task", "WorkbookTask"):
            return self._task(path)
        return self.record(self._records.classes[name], path, cel=cel and path[-1:] != ("next",))

    def _typed(self, schema: Schema, path: tuple[str, ...], cel: bool) -> Schema:
        node: Schema = {"type": schema["type"]}
        node |= {facet: schema[facet] for facet in _KEPT if facet in schema}
        if "exclusiveMinimum" in schema:
            node |= {"minimum": schema["exclusiveMinimum"], "exclusiveMinimum": True}
        match schema["type"]:
            case "object":
                node |= self._object(schema, path, cel)
            case "array":
                node |= self._array(schema, path, cel)
        if path[-2:] == ("rules", "[]"):
            node = self._policy_rule(node, path, cel)
        if path[-4:-1] == ("admit", "rules", "[]") and path[-1] == "then":
            node = self._refuse(node, "admit.then", cel)
        return node

    def _object(self, schema: Schema, path: tuple[str, ...], cel: bool) -> Schema:
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            return {"additionalProperties": self.convert(others, (*path, "*"), cel=cel)}
        if others is True or "properties" not in schema:
            return _without(FREE_MAP, "type")
        properties = cast(dict[str, Schema], schema["properties"])
        made: dict[str, Value] = {
            name: self.convert(inner, (*path, name), cel=cel) for name, inner in properties.items()
        }
        return {"properties": made}

    def _array(self, schema: Schema, path: tuple[str, ...], cel: bool) -> Schema:
        items = cast(Schema, schema.get("items", {}))
        node: Schema = {"items": self.convert(items, (*path, "[]"), cel=cel)}
        most = MOST_CEL_RULES if cel and path[-1] == "rules" else MOST_ITEMS.get(path[-1])
        if most:
            node["maxItems"] = most
        return node

    def _union(self, alternatives: list[Schema], path: tuple[str, ...]) -> Schema:
        """One schema for a value of several types."""
        types = {str(a.get("type")) for a in alternatives}
        node: Schema = dict(ANYTHING)
        for alternative in alternatives:
            made = self.convert(alternative, path, cel=False)
            if "enum" in made:
                words = "|".join(str(word) for word in cast(list[Value], made["enum"]))
                made = {"pattern": f"^({words})$"}
            node |= _without(made, "type", "description")
        if types == {"integer", "string"}:
            return {"x-kubernetes-int-or-string": True, **_without(node, *ANYTHING)}
        return node

    def _playbook(self, path: tuple[str, ...], cel: bool) -> Schema:
        """The sections of a resource; name and labels are Kubernetes' own (rule A1)."""
        schema = record_schema(Playbook, self._records)
        node = self.convert(schema, path, cel=cel)
        properties = cast(dict[str, Schema], node["properties"])
        metadata = cast(dict[str, Value], properties["metadata"]["properties"])
        kept: dict[str, Value] = {k: metadata[k] for k in ("path", "version", "description")}
        described = "What identifies it beside its Kubernetes name."
        sections = cast(dict[str, Value], properties)
        sections["metadata"] = {"type": "object", "description": described, "properties": kept}
        node["required"] = ["workflow"]
        return self._refuse(node, Playbook.place, cel)

    def _task(self, path: tuple[str, ...]) -> Schema:
        """A task of any kind. Its keys are its tool's, or its one key is a label (rule A3)."""
        own = _without(record_schema(Task, self._records), "required")
        node = self.convert(own, path, cel=False)
        properties = cast(dict[str, Value], node["properties"])
        del properties["inputs"]
        words = {w: m for w, m in refusals.words_of("task").items() if w not in properties}
        for word in sorted(words):
            properties[word] = {"description": refusals.REFUSED, **DATA}
        if path[-2:] == ("tool", "[]"):
            properties |= {k: v for k, v in _tool_keys().items() if k not in properties}
        return node | ANYTHING | {"anyOf": _task_forms(words)}

    def _policy_rule(self, node: Schema, path: tuple[str, ...], cel: bool) -> Schema:
        """A rule has `when` and `then`, or is the `else` (rule A5)."""
        node = self._refuse(node, "rule", cel)
        if cel:
            either = "(has(dyn(self).when) && has(self.then)) != has(self.__else__)"
            message = "a rule has `when` and `then`, or it is the last one and has `else`"
            return refusals.add_rules(node, [refusals.rule(either, message)])
        return node | {"oneOf": [{"required": ["when", "then"]}, {"required": ["else"]}]}

    def _refuse(self, node: Schema, place: str, cel: bool) -> Schema:
        words = refusals.words_of(place)
        if not words:
            return node
        return (refusals.refuse_by_rule if cel else refusals.refuse_by_enum)(node, words)


def _alternatives(schema: Schema) -> list[Schema]:
    if "anyOf" in schema:
        return cast(list[Schema], schema["anyOf"])
    kinds = schema.get("type")
    return [{"type": kind} for kind in kinds] if isinstance(kinds, list) else []


def _without(node: Schema, *keys: str) -> Schema:
    return {key: value for key, value in node.items() if key not in keys}


def _step_rules(node: Schema) -> Schema:
    message = "a step has `tool`, `next` or both; one without `tool` only routes"
    either = "has(dyn(self).tool) || has(dyn(self).next)"
    return refusals.add_rules(node, [refusals.rule(either, message)])


def _router(node: Schema) -> Schema:
    """`next` as a list or a text is refused with the router's form (rule A5)."""
    router = ANYTHING | _without(node, "type")
    router["items"] = {"enum": [refusals.only(_NEXT)], **ANYTHING}
    router["pattern"] = f"^{_NEXT}$"
    return router


def _tool_keys() -> dict[str, Value]:
    """What the built-in tools take, for `kubectl explain`; the operator checks their types."""
    docs: dict[str, list[str]] = {}
    for kind in BUILT_IN.values():
        for key in kind.keys.keys.values() if kind.keys else ():
            docs.setdefault(key.name, []).append(f"{kind.name}: {key.doc}")
    return {name: {"description": " ".join(texts), **DATA} for name, texts in docs.items()}


def _task_forms(words: dict[str, str]) -> list[Value]:
    """A label alone, a tool kind whose keys we do not know, or a task without refused words."""
    closed: list[Value] = [k.name for k in BUILT_IN.values() if k.keys not in (None, WorkbookKeys)]
    refused: dict[str, Value] = {
        word: {"enum": [refusals.only(message)]} for word, message in sorted(words.items())
    }
    return [
        {"maxProperties": 1},
        {"required": ["kind"], "not": {"properties": {"kind": {"enum": closed}}}},
        {"properties": refused},
    ]
