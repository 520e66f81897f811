"""The rights that the operator needs, and an identity that has no others."""

from __future__ import annotations

from pathlib import Path

import yaml

from e2e.cluster import Kubernetes
from e2e.operator.stand import Object

ACCOUNT = "noetl-operator"

RULES: list[Object] = [
    {
        "apiGroups": ["noetl.io"],
        "resources": ["playbooks", "executions"],
        "verbs": ["get", "list", "watch"],
    },
    {"apiGroups": ["noetl.io"], "resources": ["executions"], "verbs": ["create", "delete"]},
    {
        "apiGroups": ["noetl.io"],
        "resources": ["playbooks/status", "executions/status"],
        "verbs": ["patch"],
    },
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "get", "patch"]},
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
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
]


def manifests(namespace: str) -> list[Object]:
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    api = "rbac.authorization.k8s.io"
    name = f"{ACCOUNT}-{namespace}"
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": namespace},
        },
        {
            "apiVersion": f"{api}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": RULES,
        },
        {
            "apiVersion": f"{api}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "subjects": [subject],
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
        },
    ]


def kubeconfig(cluster: Kubernetes, namespace: str, path: Path) -> Path:
    """A kubeconfig of the ServiceAccount."""
    made = cluster.kubectl("create", "token", ACCOUNT, "-n", namespace)
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"] = [{"name": ACCOUNT, "user": {"token": made.stdout.strip()}}]
    for context in config["contexts"]:
        context["context"]["user"] = ACCOUNT
    path.write_text(yaml.safe_dump(config))
    return path
