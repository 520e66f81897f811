"""JSON Schemas (draft 2020-12) of playbooks and executions, for editors: made from the model.

They say which keys there are and what they hold, in both forms of a playbook. What needs the whole
playbook (an arc to a step that is not there) is `noetl check`'s.
"""

from __future__ import annotations

from noetl_core.execution import KIND as EXECUTION
from noetl_core.execution import ExecutionSpec, ExecutionStatus
from noetl_core.load import API_VERSION
from noetl_core.load import KIND as PLAYBOOK
from noetl_core.model import Metadata, Playbook
from noetl_core.shape import Definitions, Schema, record_schema
from noetl_core.values import Value

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_INNER = ("path", "version", "description")


def playbook_schema() -> Schema:
    """A playbook in either form: with `spec` it is a Kubernetes object."""
    defs = Definitions()
    document = _document(defs)
    resource = _resource(defs)
    return {
        "$schema": DRAFT,
        "title": "NoETL playbook",
        "description": (Playbook.__doc__ or "").strip(),
        "type": "object",
        "if": {"required": ["spec"]},
        "then": {"$ref": "#/$defs/resource"},
        "else": {"$ref": "#/$defs/document"},
        "$defs": {"document": document, "resource": resource, **defs.schemas},
    }


def execution_schema() -> Schema:
    """An Execution as it is applied to a cluster; an inline playbook is a Playbook's `spec`."""
    defs = Definitions()
    spec = record_schema(ExecutionSpec, defs)
    status = record_schema(ExecutionStatus, defs)
    properties = _properties(spec)
    properties["playbook"] = {
        "description": _text(properties.get("playbook"), "description"),
        **_sections(defs),
    }
    # Written out above; nothing refers to the document's form any more.
    defs.schemas.pop("Playbook", None)
    spec = {**spec, "properties": properties}
    one_of: list[Value] = [{"required": ["playbookRef"]}, {"required": ["playbook"]}]
    return {
        "$schema": DRAFT,
        "title": "NoETL execution",
        **_object(EXECUTION, {**spec, "oneOf": one_of}, status),
        "$defs": defs.schemas,
    }


def _document(defs: Definitions) -> Schema:
    schema = record_schema(Playbook, defs)
    header: dict[str, Value] = {
        "apiVersion": {"type": "string", "description": "Allowed, and ignored in this form."},
        "kind": {"const": PLAYBOOK, "description": "Allowed, and ignored in this form."},
    }
    return {**schema, "properties": {**header, **_properties(schema)}}


def _resource(defs: Definitions) -> Schema:
    return _object(PLAYBOOK, _sections(defs), {"type": "object"})


def _sections(defs: Definitions) -> Schema:
    """A Playbook's `spec`: the sections, and the part of metadata that Kubernetes does not know."""
    schema = record_schema(Playbook, defs)
    metadata = _properties(record_schema(Metadata, defs))
    inner: Schema = {
        "type": "object",
        "description": "What describes the playbook beside its name.",
        "properties": {key: metadata[key] for key in _INNER},
        "additionalProperties": False,
    }
    properties: dict[str, Value] = {**_properties(schema), "metadata": inner}
    required: list[Value] = ["workflow"]
    return {**schema, "properties": properties, "required": required}


def _object(kind: str, spec: Schema, status: Schema) -> Schema:
    """A Kubernetes object of ours."""
    name: Schema = {
        "type": "string",
        "description": "The object's name: small letters, digits, `-` and `.`.",
        "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        "maxLength": 253,
    }
    texts: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
    metadata: Schema = {
        "type": "object",
        "description": "Kubernetes' own metadata.",
        "properties": {
            "name": name,
            "generateName": {"type": "string"},
            "namespace": {"type": "string"},
            "labels": texts,
            "annotations": texts,
        },
        # An Execution may let the cluster choose the end of its name.
        **({"required": ["name"]} if kind == PLAYBOOK else {}),
    }
    return {
        "type": "object",
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": kind},
            "metadata": metadata,
            "spec": spec,
            "status": status,
        },
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": False,
    }


def _properties(schema: Value) -> dict[str, Value]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return dict(found) if isinstance(found, dict) else {}


def _text(schema: Value, key: str) -> str:
    return str(schema.get(key, "")) if isinstance(schema, dict) else ""
