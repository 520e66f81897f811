"""Cluster DNS: CoreDNS as a Deployment, with the address that the kubelet tells every Pod."""

from __future__ import annotations

from e2e.cluster import layout

NAME = "coredns"
NAMESPACE = "kube-system"
PORT = 1053
"""Above 1024, so that it needs no right; the Service maps 53 to it."""

COREFILE = f"""\
.:{PORT} {{
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }}
    cache 5
    loadbalance
}}
"""

LABELS = {"k8s-app": "kube-dns"}


def manifests() -> list[dict[str, object]]:
    return [*_rights(), _corefile(), _deployment(), _service()]


def _object(version: str, kind: str, name: str, **fields: object) -> dict[str, object]:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def _rights() -> list[dict[str, object]]:
    rbac = "rbac.authorization.k8s.io"
    reads = [
        {
            "apiGroups": [""],
            "resources": ["endpoints", "services", "pods", "namespaces"],
            "verbs": ["list", "watch"],
        },
        {
            "apiGroups": ["discovery.k8s.io"],
            "resources": ["endpointslices"],
            "verbs": ["list", "watch"],
        },
    ]
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": NAME}
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    found = [
        _object("v1", "ServiceAccount", NAME),
        _object(f"{rbac}/v1", "ClusterRole", NAME, rules=reads),
        _object(f"{rbac}/v1", "ClusterRoleBinding", NAME, roleRef=role, subjects=[subject]),
    ]
    for cluster_wide in found[1:]:
        cluster_wide["metadata"] = {"name": NAME}
    return found


def _corefile() -> dict[str, object]:
    return _object("v1", "ConfigMap", NAME, data={"Corefile": COREFILE})


def _deployment() -> dict[str, object]:
    container = {
        "name": NAME,
        "image": layout.COREDNS_IMAGE,
        "imagePullPolicy": "Never",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
    }
    pod = {
        "serviceAccountName": NAME,
        "dnsPolicy": "Default",
        "priorityClassName": "system-cluster-critical",
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": NAME}}],
    }
    template = {"metadata": {"labels": LABELS}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template}
    return _object("apps/v1", "Deployment", NAME, spec=spec)


def _service() -> dict[str, object]:
    ports = [
        {"name": f"dns-{protocol.lower()}", "port": 53, "targetPort": PORT, "protocol": protocol}
        for protocol in ("UDP", "TCP")
    ]
    spec = {"selector": LABELS, "clusterIP": layout.DNS_IP, "ports": ports}
    return _object("v1", "Service", "kube-dns", spec=spec)
