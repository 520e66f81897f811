"""The product inside a cluster: Postgres, the operator and what it may do, from real images.

Plain manifests, as few as possible; they say what the operator needs and nothing else. Tests ask
for other settings by applying the operator anew.
"""

from __future__ import annotations

import json
from typing import Any

from e2e import images
from e2e.cluster import Cluster, run
from e2e.cluster.images import load
from e2e.crds.objects import CRDS

Object = dict[str, Any]

SYSTEM = "noetl-system"
DATABASE = "postgresql://noetl:not-a-secret@postgres.noetl-system.svc:5432/noetl"
URL = "http://noetl-operator.noetl-system.svc:8080"

RESTRICTED: Object = {
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
NO_RIGHTS: Object = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}

RULES: list[Object] = [
    {"apiGroups": ["noetl.io"], "resources": ["playbooks"], "verbs": ["get", "list", "watch"]},
    {
        "apiGroups": ["noetl.io"],
        "resources": ["executions"],
        "verbs": ["get", "list", "watch", "create", "delete"],
    },
    {
        "apiGroups": ["noetl.io"],
        "resources": ["playbooks/status", "executions/status"],
        "verbs": ["get", "patch"],
    },
    {
        "apiGroups": [""],
        "resources": ["pods"],
        "verbs": ["get", "list", "watch", "create", "delete"],
    },
    {
        "apiGroups": ["batch"],
        "resources": ["jobs"],
        "verbs": ["get", "list", "watch", "create", "delete"],
    },
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    {
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["tokenreviews"],
        "verbs": ["create"],
    },
]
"""What the operator may do. Secrets are not among it."""


_builds: dict[str, str] = {}
"""Image → what it was built from: other contents under the same name are another Pod."""


def install(cluster: Cluster, workers: Object | None = None) -> None:
    """Have the product running; `workers` are settings of worker Pods other than the usual."""
    for image in (images.operator(), images.worker(), images.postgres()):
        load(cluster, image)
        _builds[image.tag] = image.archive.stem
    cluster.kubectl("apply", "--server-side", "-f", str(CRDS))
    cluster.apply([_namespace(SYSTEM), *_rights()])
    cluster.apply([*_postgres(), *_operator(workers or {})])
    wait_for(cluster, "postgres")
    wait_for(cluster, "noetl-operator")


def configure(cluster: Cluster, **workers: object) -> None:
    """The operator with other settings of worker Pods; returns when the new one is ready."""
    cluster.apply(_operator(dict(workers)))
    wait_for(cluster, "noetl-operator")


def wait_for(cluster: Cluster, deployment: str) -> None:
    words = ("rollout", "status", f"deployment/{deployment}", "-n", SYSTEM, "--timeout=2s")
    run.until(
        lambda: not cluster.kubectl(*words, check=False).returncode,
        what=f"{deployment} is ready",
        timeout=120.0,
    )


def _namespace(name: str) -> Object:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _rights() -> list[Object]:
    named = {"name": "noetl-operator"}
    account = {"kind": "ServiceAccount", "namespace": SYSTEM, **named}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **named}
    group = "rbac.authorization.k8s.io/v1"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": SYSTEM, **named}},
        {"apiVersion": group, "kind": "ClusterRole", "metadata": named, "rules": RULES},
        {
            "apiVersion": group,
            "kind": "ClusterRoleBinding",
            "metadata": named,
            "roleRef": role,
            "subjects": [account],
        },
    ]


def _postgres() -> list[Object]:
    given = {"POSTGRES_USER": "noetl", "POSTGRES_DB": "noetl", "POSTGRES_PASSWORD": "not-a-secret"}
    container = {
        "name": "postgres",
        "image": images.POSTGRES,
        "imagePullPolicy": "Never",
        "env": [{"name": name, "value": value} for name, value in given.items()],
        "args": ["postgres", "-c", "fsync=off"],
        "securityContext": NO_RIGHTS,
        "readinessProbe": {
            "exec": {"command": ["pg_isready", "-h", "127.0.0.1", "-U", "noetl"]},
            "periodSeconds": 1,
        },
        "volumeMounts": [
            {"name": "data", "mountPath": "/var/lib/postgresql/data"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    pod = {
        "automountServiceAccountToken": False,
        "securityContext": {**RESTRICTED, "fsGroup": 999},
        "containers": [container],
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}],
    }
    return [_deployment("postgres", pod), _service("postgres", 5432)]


def _operator(workers: Object) -> list[Object]:
    usual = {
        "url": URL,
        "image": images.WORKER,
        "image_pull_policy": "Never",
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
        "stop_grace_s": 5,
    }
    given = {
        "NOETL_DATABASE": DATABASE,
        "NOETL_LEASE_TTL_S": "6",
        "NOETL_SHARD_TTL_S": "3",
        "NOETL_RESYNC_S": "10",
        "NOETL_WORKERS": json.dumps({**usual, **workers}),
    }
    name = {"name": "NOETL_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    container = {
        "name": "operator",
        "image": images.OPERATOR,
        "imagePullPolicy": "Never",
        "env": [*({"name": key, "value": value} for key, value in given.items()), name],
        "securityContext": NO_RIGHTS,
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8081}, "periodSeconds": 1},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod = {
        "serviceAccountName": "noetl-operator",
        "terminationGracePeriodSeconds": 10,
        "securityContext": RESTRICTED,
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    return [_deployment("noetl-operator", pod), _service("noetl-operator", 8080)]


def _deployment(name: str, pod: Object) -> Object:
    labels = {"app": name}
    annotations = {"build": _builds[pod["containers"][0]["image"]]}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "strategy": {"type": "Recreate"},
        "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod},
    }
    metadata = {"name": name, "namespace": SYSTEM}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _service(name: str, number: int) -> Object:
    spec = {"selector": {"app": name}, "ports": [{"port": number, "targetPort": number}]}
    metadata = {"name": name, "namespace": SYSTEM}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
