"""A playbook's data written as YAML anew, for files whose text can't be moved (a flow root).

Values stay as the author wrote them; comments are gathered at the head.
"""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from noetl_core.convert.surgery import HEADER, MOVED
from noetl_core.load import NAME_ANNOTATION, object_name
from noetl_core.model import Metadata
from noetl_core.nodes import MappingNode, plain_value
from noetl_core.scalars import BadScalar, resolve
from noetl_core.values import Value


def resource_data(root: MappingNode, name: str) -> dict[str, Value]:
    """A document's data as a Kubernetes object, nothing normalised."""
    data = _mapping(plain_value(root))
    metadata = _mapping(data.get("metadata"))
    moved: dict[str, Value] = {key: metadata.pop(key) for key in MOVED if key in metadata}
    wanted = object_name(name)
    if wanted != name:
        metadata["name"] = wanted
        metadata["annotations"] = {**_mapping(metadata.get("annotations")), NAME_ANNOTATION: name}
    sections = {k: v for k, v in data.items() if k not in (*HEADER, "metadata")}
    spec: dict[str, Value] = {"metadata": moved, **sections} if moved else sections
    return {**HEADER, "metadata": metadata, "spec": spec}


def document_data(root: MappingNode, name: str) -> dict[str, Value]:
    """A Kubernetes object's data as a document."""
    data = _mapping(plain_value(root))
    spec = _mapping(data.get("spec"))
    given = _mapping(data.get("metadata"))
    metadata: dict[str, Value] = {k: v for k, v in given.items() if k in Metadata.keys}
    annotations = _mapping(metadata.get("annotations"))
    if annotations.pop(NAME_ANNOTATION, None) is not None:
        metadata["annotations"] = annotations
        if not annotations:
            del metadata["annotations"]
    metadata |= {"name": name, **_mapping(spec.pop("metadata", None))}
    return {"metadata": metadata, **spec}


def _mapping(value: Value) -> dict[str, Value]:
    return dict(value) if isinstance(value, dict) else {}


def written(data: dict[str, Value], comments: Sequence[str]) -> str:
    """Data as YAML that reads back equal, comments first."""
    head = "".join(f"# {comment}".rstrip() + "\n" for comment in comments)
    body = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return head + str(body)


class _Dumper(yaml.SafeDumper):
    """Writes texts so that our own reading of scalars gives them back."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text and all(line == line.rstrip() for line in text.split("\n")):
        style = "|"
    elif not _is_text(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _is_text(text: str) -> bool:
    try:
        return resolve(text) == (text, None)
    except BadScalar:
        return False


_Dumper.add_representer(str, _text)
