"""Worker Pods and Jobs as objects of the API: pure builders that `launch` creates from.

Every Pod meets the *restricted* Pod Security Standard whatever a playbook says. It has no token for
the API server, only one that the operator's ingest understands. Keychain Secrets are mounted
`optional`: the worker itself says which one is missing, in words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from noetl_core.model import KeychainEntry
from noetl_operator.kube.allow import Shape, Workers
from noetl_operator.kube.port import AUDIENCE, EXECUTION_ID, MANAGER, POOL, Object

NAME = "noetl-worker"
CONTAINER = "worker"
KEYCHAIN = "/etc/noetl/keychain"
TOKEN = "/var/run/noetl"
SCRATCH = "/tmp"

MANAGED = "app.kubernetes.io/managed-by"
COMPONENT = "app.kubernetes.io/component"
EXECUTION_LABEL = "noetl.io/execution"
PLAYBOOK_LABEL = "noetl.io/playbook"
STEP_LABEL = "noetl.io/step"
STEP_NAME = "noetl.io/step-name"
"""Annotation: the step, as the playbook calls it."""
LEASE = "noetl.io/lease"
"""Annotation of a Pod that serves one command: which."""

SELECTOR = f"{MANAGED}={MANAGER},{COMPONENT}=worker"
"""Finds every worker Pod and Job."""

LABEL_CHARS = 63
NAME_CHARS = 57
"""A Job's Pods get six characters more."""
GRACE_BEYOND_S = 10
"""What a worker needs to hand back its runs and end, after their time is over."""

_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_NO_LABEL = re.compile(r"[^-A-Za-z0-9_.]+")
_NO_NAME = re.compile(r"[^a-z0-9]+")
_SECRET = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_KEY = re.compile(r"[-._A-Za-z0-9]{1,253}")


@dataclass(frozen=True, slots=True)
class Owner:
    """The object that a Pod goes away with."""

    api_version: str
    kind: str
    name: str
    uid: str

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Owner:
        meta = obj["metadata"]
        return cls(obj["apiVersion"], obj["kind"], meta["name"], meta["uid"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One Pod or Job to be made."""

    name: str
    namespace: str
    pool: str
    owner: Owner
    shape: Shape
    keychain: tuple[KeychainEntry, ...] = ()
    playbook: str = ""
    execution: str | None = None
    """None: it serves every Execution of its Playbook."""
    execution_id: str | None = None
    step: str | None = None
    lease_id: str | None = None
    """Of a Pod that serves one command only."""


@dataclass(slots=True)
class _Mounts:
    volumes: list[Object] = field(default_factory=list)
    mounts: list[Object] = field(default_factory=list)

    def add(self, name: str, path: str, volume: Object, *, read_only: bool = True) -> None:
        self.volumes.append({"name": name, **volume})
        mount: Object = {"name": name, "mountPath": path}
        self.mounts.append({**mount, "readOnly": True} if read_only else mount)


def pod(order: Order, workers: Workers) -> Object:
    """A worker Pod. It is never restarted in place: what it held is given to another one."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": order.namespace, "name": order.name, **_owned(order, workers)},
        "spec": _pod_spec(order, workers),
    }


def job(order: Order, workers: Workers) -> Object:
    """A Job with one Pod that is tried once: delivering again is the engine's business, with a new
    epoch and so a new Job."""
    own = _owned(order, workers)
    template = {"labels": own["labels"], "annotations": own["annotations"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"namespace": order.namespace, "name": order.name, **own},
        "spec": {
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": workers.job_ttl_s,
            "template": {"metadata": template, "spec": _pod_spec(order, workers)},
        },
    }


def _owned(order: Order, workers: Workers) -> Object:
    owner = order.owner
    reference = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
    return {
        "labels": _labels(order, workers),
        "annotations": _annotations(order, workers),
        "ownerReferences": [reference],
    }


def _labels(order: Order, workers: Workers) -> dict[str, str]:
    found = {
        **workers.labels,
        "app.kubernetes.io/name": NAME,
        "app.kubernetes.io/part-of": "noetl",
        COMPONENT: "worker",
        MANAGED: MANAGER,
    }
    for key, value in (
        (EXECUTION_LABEL, order.execution),
        (PLAYBOOK_LABEL, order.playbook),
        (STEP_LABEL, order.step),
    ):
        if value:
            found[key] = label(value)
    return found


def _annotations(order: Order, workers: Workers) -> dict[str, str]:
    own = {
        POOL: order.pool,
        EXECUTION_ID: order.execution_id,
        STEP_NAME: order.step,
        LEASE: order.lease_id,
        "kubectl.kubernetes.io/default-container": CONTAINER,
    }
    return {**workers.annotations, **{key: value for key, value in own.items() if value}}


def _pod_spec(order: Order, workers: Workers) -> Object:
    shape, mounts = order.shape, _mounts(order, workers)
    spec: Object = {
        "restartPolicy": "Never",
        "serviceAccountName": shape.service_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": int(workers.stop_grace_s) + GRACE_BEYOND_S,
        "securityContext": _pod_security(workers),
        "containers": [_container(order, workers, mounts.mounts)],
        "volumes": mounts.volumes,
    }
    optional: Object = {
        "nodeSelector": shape.node_selector,
        "tolerations": list(shape.tolerations),
        "affinity": shape.affinity,
        "imagePullSecrets": [{"name": name} for name in workers.image_pull_secrets],
        "priorityClassName": workers.priority_class,
        "runtimeClassName": workers.runtime_class,
    }
    return spec | {key: value for key, value in optional.items() if value}


def _pod_security(workers: Workers) -> Object:
    found: Object = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if workers.user is not None:
        found |= dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"), workers.user)
    return found


def _container(order: Order, workers: Workers, mounts: list[Object]) -> Object:
    found: Object = {
        "name": CONTAINER,
        "image": order.shape.image,
        "imagePullPolicy": workers.image_pull_policy,
        "env": _environment(order, workers),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "privileged": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
    if order.shape.resources:
        found["resources"] = order.shape.resources
    return found


def _environment(order: Order, workers: Workers) -> list[Object]:
    own = {
        "NOETL_URL": workers.url,
        "NOETL_TOKEN_FILE": f"{TOKEN}/token",
        "NOETL_POOL": order.pool,
        "NOETL_CAPACITY": "1" if order.lease_id else str(workers.capacity),
        "NOETL_KEYCHAIN": KEYCHAIN,
        "NOETL_SCRATCH": f"{SCRATCH}/noetl",
        "NOETL_STOP_GRACE_S": f"{workers.stop_grace_s:g}",
    }
    if order.lease_id:
        own["NOETL_LEASE"] = order.lease_id
    found: list[Object] = [
        {"name": name, "value": value} for name, value in (workers.environment | own).items()
    ]
    # The name under which it holds leases, also where a Job picks the Pod's name.
    name = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}
    return [*found, {"name": "NOETL_WORKER", "valueFrom": name}]


def _mounts(order: Order, workers: Workers) -> _Mounts:
    found = _Mounts()
    scratch = {"emptyDir": {"sizeLimit": workers.scratch_limit}}
    found.add("scratch", SCRATCH, scratch, read_only=False)
    token = {"audience": AUDIENCE, "path": "token", "expirationSeconds": workers.token_s}
    found.add("token", TOKEN, {"projected": {"sources": [{"serviceAccountToken": token}]}})
    # Without a user of our own choice there is no group of our own choice that could read them.
    mode = 0o440 if workers.user is not None else 0o444
    for number, (name, keys) in enumerate(secrets_of(order.keychain).items()):
        secret: Object = {"name": name, "optional": True}
        if keys is not None:
            secret["items"] = [{"key": key, "path": key} for key in keys]
        volume = {"projected": {"defaultMode": mode, "sources": [{"secret": secret}]}}
        found.add(f"keychain-{number}", f"{KEYCHAIN}/{name}", volume)
    return found


def secrets_of(entries: Iterable[KeychainEntry]) -> dict[str, list[str] | None]:
    """The Secrets that a keychain names, each with the keys that are needed; None: all of them.

    What cannot be the name of a Secret or of a key is left out: the worker says so (rule G3).
    """
    found: dict[str, set[str] | None] = {}
    for entry in entries:
        if not entry.map:
            found[entry.secret_name] = None
        for place in entry.map.values():
            secret, _, key = place.rpartition("/")
            keys = found.setdefault(secret or entry.secret_name, set())
            if keys is not None:
                keys.add(key)
    return {
        name: None if keys is None else sorted(key for key in keys if _is_key(key))
        for name, keys in sorted(found.items())
        if _SECRET.fullmatch(name)
    }


def _is_key(key: str) -> bool:
    return bool(_KEY.fullmatch(key)) and not key.startswith("..") and key != "."


def label(text: str) -> str:
    """A text as the value of a label: itself where that is possible, else shortened, with a few
    characters of its digest so that different texts stay different."""
    if _LABEL.fullmatch(text):
        return text
    plain = _NO_LABEL.sub("-", text)[: LABEL_CHARS - 11].strip("-_.")
    return f"{plain}-{_short(text, 10)}" if plain else _short(text, 10)


def pool_pod_name(stem: str, pool: str, number: int) -> str:
    """The name of one of a pool's Pods; `stem` is whom it belongs to."""
    end = f"{_short(pool, 6)}-{number}"
    return f"{_stem(stem, NAME_CHARS - len(end) - 1)}-{end}"


def lease_pod_name(execution: str, step: str | None, lease_id: str, epoch: int) -> str:
    """The name of the Pod or Job that serves one command under one epoch: made twice, it is one."""
    end = f"{lease_id.replace('-', '')[:12]}-{epoch}"
    middle = _stem(step or "keychain", 16)
    return f"{_stem(execution, NAME_CHARS - len(end) - len(middle) - 2)}-{middle}-{end}"


def _stem(text: str, most: int) -> str:
    """A text as the beginning of a name: lower case letters, digits and dashes."""
    plain = _NO_NAME.sub("-", text.lower()).strip("-")
    return plain[:most].strip("-") or "x"


def _short(text: str, chars: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:chars]
