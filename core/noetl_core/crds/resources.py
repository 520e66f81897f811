"""The two resources as the API server knows them: names, columns, statuses, what may change."""

from __future__ import annotations

from typing import cast

from noetl_core.crds import refusals
from noetl_core.crds.structural import Converter
from noetl_core.execution import (
    KIND,
    MOST_ACTIVE,
    MOST_PATCHES,
    MOST_PROBLEMS,
    ExecutionSpec,
    ExecutionStatus,
    PlaybookStatus,
)
from noetl_core.load import API_VERSION
from noetl_core.load import KIND as PLAYBOOK
from noetl_core.model import Playbook
from noetl_core.shape import Record, Schema
from noetl_core.values import Value

GROUP, _, VERSION = API_VERSION.partition("/")

FIXED = ("playbookRef", "playbook", "workload", "activeDeadlineSeconds", "rerunOf")
"""What of an Execution's spec never changes after its creation."""

LONGEST = {"id": 128, "reason": 1024, "by": 253, "fromStep": 63, "name": 253}
"""How long the texts of an Execution's spec may be."""
LONGEST_MESSAGE = 32_768
"""As long as Kubernetes lets the message of a condition be."""

_TIMES = ("startedAt", "finishedAt", "since", "lastTransitionTime")


def playbook_crd() -> Schema:
    """The definition of Playbook."""
    spec = Converter().record(Playbook)
    spec["description"] = f"{Playbook.__doc__} The sections of a playbook document."
    columns: list[Value] = [
        _column("Steps", "integer", ".status.steps", "How many steps it has."),
        _column("Valid", "string", _condition("Valid", "status"), "Whether it may run."),
        _age(),
        _column("Digest", "string", ".status.digest", "What runs, as one name.", wide=True),
        _column("Message", "string", _condition("Valid", "message"), "The problems.", wide=True),
    ]
    status = _bounded_status(_plain(PlaybookStatus), {"problems": MOST_PROBLEMS})
    about = "A NoETL playbook: steps, their tasks, and the arcs between them."
    return _crd(PLAYBOOK, ["pb"], _root(about, spec, status), columns)


def execution_crd() -> Schema:
    """The definition of Execution."""
    columns: list[Value] = [
        _column("Playbook", "string", ".spec.playbookRef.name", "What it runs."),
        _column("Phase", "string", ".status.phase", "Where it stands."),
        _column("Steps", "string", ".status.steps.progress", "Steps ended and begun."),
        _column("Active", "string", ".status.activeSummary", "The steps under way."),
        _age(),
        _column("Reason", "string", _condition("Succeeded", "reason"), "Why it ended.", wide=True),
        _column("Duration", "string", ".status.duration", "How long it took.", wide=True),
        _column("Message", "string", ".status.message", "The story so far.", wide=True),
    ]
    status = _bounded_status(_plain(ExecutionStatus), {"active": MOST_ACTIVE})
    about = "One run of a playbook: create it and it runs."
    return _crd(KIND, ["exec"], _root(about, _execution_spec(), status), columns)


def _crd(kind: str, short: list[Value], schema: Schema, columns: list[Value]) -> Schema:
    plural = f"{kind.lower()}s"
    names: Schema = {"kind": kind, "listKind": f"{kind}List", "plural": plural}
    names |= {"singular": kind.lower(), "shortNames": short, "categories": ["noetl"]}
    version: Schema = {"name": VERSION, "served": True, "storage": True}
    version |= {"subresources": {"status": {}}, "additionalPrinterColumns": columns}
    version |= {"schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def _root(about: str, spec: Schema, status: Schema) -> Schema:
    properties: Schema = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    properties |= {"metadata": {"type": "object"}, "spec": spec, "status": status}
    return {"type": "object", "description": about, "required": ["spec"], "properties": properties}


def _execution_spec() -> Schema:
    spec = Converter().record(ExecutionSpec)
    properties = _properties(spec)
    _bound_texts(properties)
    properties["ctxPatches"] |= {
        "maxItems": MOST_PATCHES,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["id"],
    }
    either = "name a Playbook in `playbookRef` or write one under `playbook`: one of the two"
    rules: list[Value] = [refusals.rule("has(self.playbookRef) != has(self.playbook)", either)]
    rules += [_fixed(field) for field in FIXED]
    return refusals.add_rules(spec, [*rules, _append_only()])


def _fixed(field: str) -> Schema:
    """`dyn`, because Kubernetes gives CEL no type for a mapping of anything, such as `workload`."""
    new, old = f"dyn(self).{field}", f"dyn(oldSelf).{field}"
    same = f"has({new}) == has({old}) && (!has({new}) || {new} == {old})"
    message = f"`{field}` cannot change after creation: make a new Execution"
    return refusals.rule(same, message, field)


def _append_only() -> Schema:
    kept = "self.ctxPatches.indexOf(p) == oldSelf.ctxPatches.indexOf(p)"
    grown = f"has(self.ctxPatches) && oldSelf.ctxPatches.all(p, {kept})"
    message = "`ctxPatches` only grows: keep the earlier patches as they are and add at the end"
    return refusals.rule(f"!has(oldSelf.ctxPatches) || ({grown})", message, "ctxPatches")


def _plain(cls: type[Record]) -> Schema:
    return Converter().record(cls, cel=False)


def _bounded_status(status: Schema, lists: dict[str, int]) -> Schema:
    properties = _properties(status)
    for name, most in lists.items():
        properties[name]["maxItems"] = most
    conditions = properties["conditions"]
    conditions |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    conditions["maxItems"] = 16
    message = _properties(cast(Schema, conditions["items"]))["message"]
    message["maxLength"] = LONGEST_MESSAGE
    _mark_times(status)
    return status


def _mark_times(node: Schema) -> None:
    for name, inner in _properties(node).items():
        if name in _TIMES:
            inner["format"] = "date-time"
        for below in (inner, inner.get("items")):
            if isinstance(below, dict) and "properties" in below:
                _mark_times(below)


def _bound_texts(properties: dict[str, Schema]) -> None:
    patch = cast(Schema, properties["ctxPatches"]["items"])
    for node in (patch, properties["playbookRef"], properties["rerunOf"]):
        for name, inner in _properties(node).items():
            if name in LONGEST:
                inner["maxLength"] = LONGEST[name]
    _properties(patch)["id"]["minLength"] = 1


def _properties(node: Schema) -> dict[str, Schema]:
    return cast(dict[str, Schema], node["properties"])


def _condition(kind: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'


def _age() -> Schema:
    return _column("Age", "date", ".metadata.creationTimestamp", "How old it is.")


def _column(name: str, kind: str, path: str, about: str, *, wide: bool = False) -> Schema:
    """A column of `kubectl get`; a wide one shows with `-o wide`."""
    column: Schema = {"name": name, "type": kind, "jsonPath": path, "description": about}
    return column | {"priority": 1} if wide else column
