"""Mappings with known keys: the model's classes, whose fields are declared with `key(...)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar, TypeVar, cast, dataclass_transform

from noetl_core.nodes import MappingNode, Node, ScalarNode
from noetl_core.reading import Cursor
from noetl_core.shape.base import Schema, Shape, T
from noetl_core.shape.data import Data
from noetl_core.values import Value

R = TypeVar("R", bound="Record")


class Definitions:
    """The `$defs` of a JSON Schema: each record is written once and referred to."""

    def __init__(self) -> None:
        self.schemas: dict[str, Value] = {}

    def ref(self, record: type[Record]) -> Schema:
        name = record.__name__
        if name not in self.schemas:
            self.schemas[name] = {}
            self.schemas[name] = record_schema(record, self)
        return {"$ref": f"#/$defs/{name}"}


@dataclass(frozen=True, slots=True)
class Key:
    """A field of a record as the language knows it."""

    attribute: str
    name: str
    shape: Shape[Value]
    doc: str
    required: bool
    default: Value
    """What it is where it is not written; meaningless where it must be."""


_KEY = "noetl_key"
_ABSENT: object = object()


def key(
    shape: Shape[T],
    doc: str,
    *,
    name: str = "",
    default: T | None = _ABSENT,  # type: ignore[assignment]  # a mark for "no default"
    default_factory: Callable[[], T] | None = None,
) -> T:
    """Declare a field: what it holds, and the sentence that documents it everywhere.

    Without a default the key is required.
    """
    metadata = {_KEY: (shape, doc, name)}
    if default_factory is not None:
        return field(default_factory=default_factory, metadata=metadata)
    if default is _ABSENT:
        return cast(T, field(metadata=metadata))
    return cast(T, field(default=default, metadata=metadata))


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(key,))
def record(cls: type[R]) -> type[R]:
    """A frozen model class whose fields are declared with `key`."""
    made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    made.keys = {k.name: k for k in _keys(made)}
    made.required = tuple(k for k in made.keys.values() if k.required)
    return made


@dataclass(frozen=True, slots=True)
class Missing:
    """What is said where a key is missing whose absence has a rule of its own."""

    code: str
    hint: str


class Record:
    """Base of the model's classes. Its docstring documents the mapping in schemas."""

    __slots__ = ()
    keys: ClassVar[dict[str, Key]]
    required: ClassVar[tuple[Key, ...]]
    place: ClassVar[str] = ""
    """Which table of refused words applies here (see `legacy`)."""
    missing: ClassVar[Mapping[str, Missing]] = {}
    """Keys whose absence is told by another rule than A1."""


def _keys(cls: type[Record]) -> Sequence[Key]:
    found: list[Key] = []
    for f in fields(cls):  # type: ignore[arg-type]  # called on classes that `record` made
        shape, doc, name = f.metadata[_KEY]
        required = f.default is f.default_factory
        default = None if required else f.default
        if callable(f.default_factory):
            default = f.default_factory()
        found.append(Key(f.name, name or f.name.rstrip("_"), shape, doc, required, default))  # type: ignore[arg-type]  # not the mark for "none"
    return found


class Rec(Shape[R]):
    """A mapping with known keys: an instance of a model class."""

    expected = "a mapping"

    def __init__(self, cls: type[R] | Callable[[], type[R]]) -> None:
        self._cls = cls

    @property
    def cls(self) -> type[R]:
        """The class; a function stands in for one that is declared further down."""
        return self._cls if isinstance(self._cls, type) else self._cls()

    def blank(self) -> R:
        cls = self.cls
        return cls(**{k.attribute: k.shape.blank() for k in cls.required})

    def read(self, node: Node, at: Cursor) -> R:
        if isinstance(node, ScalarNode) and node.value is None:
            return self.read(MappingNode(node.line, node.column, node.start, node.end), at)
        if not isinstance(node, MappingNode):
            return self.wrong(node, at)
        cls = self.cls
        return cls(**read_keys(cls, node, at))

    def dump(self, value: R) -> Value:
        return dump_record(value)

    def schema(self, defs: Definitions) -> Schema:
        return defs.ref(self.cls)


def read_keys(
    cls: type[Record],
    node: MappingNode,
    at: Cursor,
    others: frozenset[str] = frozenset(),
    *,
    complete: bool = True,
) -> dict[str, Value]:
    """The arguments for `cls` from a mapping; unknown keys are reported, and missing ones where
    the mapping must be complete."""
    given: dict[str, Value] = {}
    known, entries = cls.keys, node.entries
    # In the order of the model, so that nothing depends on the order in which keys are written.
    present = [name for name in known if name in entries]
    for name in present:
        found, inner = known[name], entries[name].node
        if not _is_null(inner) or isinstance(found.shape, Data):
            given[found.attribute] = found.shape.read(inner, at.child(name, inner))
    for found in cls.required:
        if found.attribute not in given:
            if complete:
                entry = entries.get(found.name)
                _missing(cls, found, entry.key_node if entry else node, at)
            given[found.attribute] = found.shape.blank()
    if len(present) < len(entries):
        for name, entry in entries.items():
            if name not in known and name not in others:
                at.unknown_key(entry, cls.place, [*known, *others], node)
    return given


def _missing(cls: type[Record], found: Key, node: Node, at: Cursor) -> None:
    special = cls.missing.get(found.name)
    if special is None:
        at.missing(found.name, found.doc, node)
    else:
        at.missing(found.name, special.hint, node, special.code)


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value is None


def dump_record(value: Record) -> dict[str, Value]:
    """A model instance as canonical data: defaults are left out."""
    dumped: dict[str, Value] = {}
    for k in value.keys.values():
        held = getattr(value, k.attribute)
        if held is k.default or (held == k.default and type(held) is type(k.default)):
            continue
        dumped[k.name] = k.shape.dump(held)
    return dumped


def record_schema(cls: type[Record], defs: Definitions) -> Schema:
    """The JSON Schema of a model class."""
    properties: dict[str, Value] = {}
    for k in cls.keys.values():
        properties[k.name] = {"description": k.doc, **k.shape.schema(defs)}
    schema: Schema = {"type": "object", "description": (cls.__doc__ or "").strip()}
    schema |= {"properties": properties, "additionalProperties": False}
    required: list[Value] = [k.name for k in cls.keys.values() if k.required]
    return schema | {"required": required} if required else schema
