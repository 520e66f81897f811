"""A file → playbooks with their problems: the way in for every author's text (rules A1, K1, K2).

`load` never raises for what a file holds: a wrong file gives problems, each with its place. The
checks that need the whole playbook are in `check`; callers want `check.check_text`.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from noetl_core.model import Metadata, Playbook
from noetl_core.nodes import nodes_of
from noetl_core.problems import Path, Problem, ProblemList, Severity, nearest
from noetl_core.reading import Cursor, Reading
from noetl_core.shape import KUBERNETES_NAME, Key, Rec, dump_record, read_keys
from noetl_core.source import (
    EMPTY_HINT,
    Document,
    MappingNode,
    Node,
    ScalarNode,
    kind_of,
    parse,
    plain_value,
)
from noetl_core.tools import BUILT_IN, ToolKind
from noetl_core.values import Value

API_VERSION = "noetl.io/v1"
KIND = "Playbook"
NAME_ANNOTATION = "noetl.io/name"
"""Keeps a document's name that is no Kubernetes name when it is converted to a resource."""

_OBJECT_META = frozenset(
    (
        "name",
        "namespace",
        "labels",
        "annotations",
        "generateName",
        "uid",
        "resourceVersion",
        "generation",
        "selfLink",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "finalizers",
        "managedFields",
        "ownerReferences",
    )
)
_SPEC_METADATA = ("path", "version", "description")


class Form(StrEnum):
    """How a playbook is written: as a document of its own, or as a Kubernetes object."""

    DOCUMENT = "document"
    RESOURCE = "resource"


@dataclass(frozen=True, slots=True)
class Loaded:
    """One document of a file as far as it could be read."""

    playbook: Playbook | None
    """None when there is an error; `partial` may then still serve further checks."""
    partial: Playbook | None
    form: Form
    reading: Reading
    root: Node | None

    @property
    def problems(self) -> list[Problem]:
        return self.reading.problems

    @property
    def has_errors(self) -> bool:
        return any(p.severity is Severity.ERROR for p in self.reading.problems)


def load(data: bytes | str, kinds: Mapping[str, ToolKind] = BUILT_IN) -> list[Loaded]:
    """Every document of a file, read and normalised."""
    with collector_paused():
        return [_load_document(document, kinds) for document in parse(data)]


def load_data(value: Value, kinds: Mapping[str, ToolKind] = BUILT_IN) -> Loaded:
    """A playbook that comes as data: from the log, or from the Kubernetes API."""
    return _load_document(Document(nodes_of(value), (), ""), kinds)


@contextmanager
def collector_paused() -> Iterator[None]:
    """No search for garbage while a large tree is built: all of it stays, and looking through it
    again and again is half of the time that loading takes."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_freeze_count() == 0:
                # Together these make what is alive old: it is not searched as young right now.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _load_document(document: Document, kinds: Mapping[str, ToolKind]) -> Loaded:
    reading = Reading(document.text, kinds, ProblemList(document.problems))
    root = document.root
    if root is None:
        return Loaded(None, None, Form.DOCUMENT, reading, None)
    if not isinstance(root, MappingNode):
        top = Cursor(reading, (), ())
        top.error("A1.yaml", f"a playbook is a mapping, not {kind_of(root)}", root, EMPTY_HINT)
        return Loaded(None, None, Form.DOCUMENT, reading, root)
    form = form_of(root)
    if form is Form.RESOURCE:
        for problem in document.letters:
            reading.found.add(problem)
        playbook = _read_resource(root, reading)
    else:
        playbook = _read_plain(root, reading)
    reading.problems.sort(key=lambda problem: (problem.line, problem.column))
    made = Loaded(playbook, playbook, form, reading, root)
    return replace(made, playbook=None) if made.has_errors else made


def form_of(root: MappingNode) -> Form:
    """Rule K1: a file is in resource form when it has `spec.workflow`."""
    spec = root.get("spec")
    inside = isinstance(spec, MappingNode) and "workflow" in spec.entries
    like_object = "spec" in root.entries and "apiVersion" in root.entries
    is_resource = inside or (like_object and "workflow" not in root.entries)
    return Form.RESOURCE if is_resource else Form.DOCUMENT


def _read_plain(root: MappingNode, reading: Reading) -> Playbook:
    top = Cursor(reading, (), ())
    kind = root.get("kind")
    if kind is not None and plain_value(kind) != KIND:
        _wrong_kind(top, kind)
    ignored = {"apiVersion", "kind"}
    own = {key: entry for key, entry in root.entries.items() if key not in ignored}
    return Rec(Playbook).read(replace(root, entries=own), top)


def _wrong_kind(top: Cursor, node: Node) -> None:
    written = plain_value(node)
    hint = "an Execution is applied to a cluster; what is checked here are playbooks"
    message = f"this is a `{written}`, not a `{KIND}`"
    top.child("kind", node).error(
        "K1.kind", message, node, hint if written == "Execution" else None
    )


def _read_resource(root: MappingNode, reading: Reading) -> Playbook:
    top = Cursor(reading, (), ())
    _check_header(root, top)
    metadata = _object_metadata(root, top)
    spec = root.get("spec")
    if not isinstance(spec, MappingNode):
        node = spec or root
        top.child("spec", node).error("A2.type", f"expected a mapping, got {kind_of(node)}", node)
        return Rec(Playbook).blank()
    here = top.at((), ("spec",), spec)
    metadata = _spec_metadata(spec, here, metadata)
    sections = {key: entry for key, entry in spec.entries.items() if key != "metadata"}
    return _read_sections(replace(spec, entries=sections), here, metadata)


def _read_sections(spec: MappingNode, at: Cursor, metadata: Metadata) -> Playbook:
    """The sections of a resource; its metadata was read already."""
    class_keys = read_keys(_Sections, spec, at)
    return Playbook(metadata=metadata, **class_keys)  # type: ignore[arg-type]  # read by their shapes


class _Sections(Playbook):
    """The keys of `spec` in resource form."""

    __slots__ = ()
    keys: ClassVar[dict[str, Key]] = {n: k for n, k in Playbook.keys.items() if n != "metadata"}
    required: ClassVar[tuple[Key, ...]] = tuple(k for k in keys.values() if k.required)


def _check_header(root: MappingNode, top: Cursor) -> None:
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        node = root.get(key)
        if node is None:
            top.missing(key, f"{key}: {wanted}", root)
        elif plain_value(node) != wanted:
            if key == "kind":
                _wrong_kind(top, node)
                continue
            message = f"expected `{wanted}`, got `{plain_value(node)}`"
            top.child(key, node).error("K1.api-version", message, node)
    known = ["apiVersion", "kind", "metadata", "spec", "status"]
    for entry in root.entries.values():
        if entry.key not in known:
            place = "root" if nearest(entry.key, known) is None else ""
            hint_known = known if entry.key not in Playbook.keys else []
            if entry.key in Playbook.keys:
                message = f"`{entry.key}` stands under `spec` in a Kubernetes object"
                top.error_at_key("A4.unknown-key", message, entry, f"move it to spec.{entry.key}")
            else:
                top.unknown_key(entry, place, hint_known, root)


def _object_metadata(root: MappingNode, top: Cursor) -> Metadata:
    node = root.get("metadata")
    if not isinstance(node, MappingNode):
        top.missing("metadata", "metadata: {name: …}", root)
        return Metadata(name="")
    at = top.child("metadata", node)
    for entry in node.entries.values():
        if entry.key in _SPEC_METADATA:
            message = f"`{entry.key}` stands under `spec.metadata` in a Kubernetes object"
            at.error_at_key(
                "A4.unknown-key", message, entry, f"move it to spec.metadata.{entry.key}"
            )
        elif entry.key not in _OBJECT_META:
            at.unknown_key(entry, "metadata", ["name", "namespace", "labels", "annotations"], node)
    kept = {k: e for k, e in node.entries.items() if k in Metadata.keys and k in _OBJECT_META}
    metadata = Rec(Metadata).read(replace(node, entries=kept), at)
    _check_object_name(node, at, metadata.name)
    original = metadata.annotations.get(NAME_ANNOTATION)
    if original is None:
        return metadata
    others = {k: v for k, v in metadata.annotations.items() if k != NAME_ANNOTATION}
    return replace(metadata, name=original, annotations=others)


def _check_object_name(node: MappingNode, at: Cursor, name: str) -> None:
    place = node.get("name")
    if place is None or not name:
        return
    if len(name) > 253 or not KUBERNETES_NAME.fullmatch(name):
        message = f"`{name[:80]}` is not a Kubernetes name: small letters, digits, `-` and `.`"
        hint = f"for example `{object_name(name)}`"
        at.child("name", place).error("K1.resource-name", message, place, hint)


def object_name(name: str) -> str:
    """The Kubernetes name nearest to a playbook's name."""
    small = "".join(c if (c.isascii() and c.isalnum()) or c == "." else "-" for c in name.lower())
    parts = [part.strip("-") for part in small.split(".")]
    return ".".join(part for part in parts if part)[:253].strip("-.") or "playbook"


def _spec_metadata(spec: MappingNode, at: Cursor, metadata: Metadata) -> Metadata:
    node = spec.get("metadata")
    if node is None or (isinstance(node, ScalarNode) and node.value is None):
        return metadata
    here = at.child("metadata", node)
    if not isinstance(node, MappingNode):
        here.error("A2.type", f"expected a mapping, got {kind_of(node)}", node)
        return metadata
    given: dict[str, str] = {}
    for name, entry in node.entries.items():
        if name in _SPEC_METADATA:
            shape = Metadata.keys[name].shape
            given[name] = str(shape.read(entry.node, here.child(name, entry.node)))
        else:
            here.unknown_key(entry, "metadata", list(_SPEC_METADATA), node)
    return replace(metadata, **given)  # type: ignore[arg-type]  # the three are text


def dump(playbook: Playbook) -> dict[str, Value]:
    """A playbook as canonical data in document form: `load` of it gives an equal playbook."""
    return dump_record(playbook)


def dump_resource(playbook: Playbook) -> dict[str, Value]:
    """A playbook as a Kubernetes object."""
    document = dump(playbook)
    old = document.pop("metadata")
    assert isinstance(old, dict)
    inner: dict[str, Value] = {k: old.pop(k) for k in _SPEC_METADATA if k in old}
    name = object_name(playbook.metadata.name)
    if name != playbook.metadata.name:
        annotations = old.get("annotations")
        kept = annotations if isinstance(annotations, dict) else {}
        old["annotations"] = {NAME_ANNOTATION: playbook.metadata.name, **kept}
    spec: dict[str, Value] = {"metadata": inner} if inner else {}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {**old, "name": name},
        "spec": {**spec, **document},
    }


def digest(playbook: Playbook) -> str:
    """What runs, as one name: the same for every formatting, key order and form; metadata aside."""
    body: Value = {key: value for key, value in dump(playbook).items() if key != "metadata"}
    text = _json(body)
    if ".0" in text:
        text = _json(_plain_numbers(body))
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _json(value: Value) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _plain_numbers(value: Value) -> Value:
    """`5.0` and `5` are one number in JSON, and the Kubernetes API gives back `5`."""
    match value:
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case list():
            return [_plain_numbers(item) for item in value]
        case dict():
            return {key: _plain_numbers(item) for key, item in value.items()}
        case _:
            return value


__all__ = ["Form", "Loaded", "Path", "digest", "dump", "dump_resource", "load", "object_name"]
