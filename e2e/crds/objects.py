"""Playbooks and Executions for the tests, and how the API server is asked about them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from e2e.cluster import Kubernetes

CRDS = Path(__file__).parents[2] / "crds"
NAMESPACE = f"crd-tests-{os.getpid()}"
"""Of this run alone: on a cluster that is kept, the one before may still be going away."""

Object = dict[str, object]

TOOL: Object = {"kind": "noop"}
STEP: Object = {"step": "start", "tool": [TOOL]}


def playbook(name: str, **spec: object) -> Object:
    return resource("Playbook", name, {"workflow": [STEP]} | spec)


def with_step(name: str, **keys: object) -> Object:
    return playbook(name, workflow=[STEP | keys])


def with_task(name: str, **keys: object) -> Object:
    return with_step(name, tool=[TOOL | keys])


def execution(name: str, **spec: object) -> Object:
    named: Object = {} if "playbook" in spec else {"playbookRef": {"name": "hello"}}
    return resource("Execution", name, named | spec)


def resource(kind: str, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "noetl.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def create(api: Kubernetes, thing: Object) -> Object:
    """What the API server made of an object."""
    made = api.kubectl("create", "-f", "-", "-o", "json", input=json.dumps(thing))
    found: Object = json.loads(made.stdout)
    return found


def accepts(api: Kubernetes, thing: Object) -> None:
    """The object is taken, and every key of it is kept."""
    words = ("create", "--dry-run=server", "-f", "-", "-o", "json")
    made = json.loads(api.kubectl(*words, input=json.dumps(thing)).stdout)
    assert made["spec"] == thing["spec"]


def refusal(api: Kubernetes, *things: Object) -> str:
    """The words with which the API server refuses objects: all of them."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": things})
    done = api.kubectl("create", "--dry-run=server", "-f", "-", input=text, check=False)
    assert done.stdout == "", "some were taken"
    return done.stderr


def patch(api: Kubernetes, name: str, changed: Mapping[str, object]) -> None:
    text = json.dumps({"spec": changed})
    api.kubectl("patch", "execution", name, "-n", NAMESPACE, "--type=merge", "-p", text)


def as_resource(document: Object) -> Object:
    """A playbook as its author wrote it, under `spec`."""
    if "spec" in document:
        spec = document["spec"]
    else:
        skipped = ("apiVersion", "kind", "metadata")
        spec = {key: value for key, value in document.items() if key not in skipped}
    assert isinstance(spec, dict)
    return resource("Playbook", "example", spec)
