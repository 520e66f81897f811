"""A whole cluster: Pods, Services, DNS, tokens, admission, and parts that stop."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import pytest

from e2e.cluster import Cluster, KubectlError, images

DOCKERFILE = """\
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
COPY serve.py /app/serve.py
USER 10001:10001
ENTRYPOINT ["python", "/app/serve.py"]
"""

SERVE = """\
import http.server, os
print("serving as", os.getuid(), flush=True)
http.server.test(http.server.SimpleHTTPRequestHandler, port=8000)
"""

TAG = "noetl.local/e2e-serve:1"


@pytest.fixture(scope="module")
def image(own_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    context = tmp_path_factory.mktemp("context")
    (context / "serve.py").write_text(SERVE)
    dockerfile = context / "Dockerfile"
    dockerfile.write_text(DOCKERFILE)
    images.load(own_cluster, images.build(dockerfile, context, TAG))
    return TAG


@pytest.fixture(scope="module")
def server(own_cluster: Cluster, image: str) -> str:
    """A Pod that meets the restricted standard, in a namespace that enforces it."""
    own_cluster.apply([_namespace("strict"), _pod(image), _service()])
    own_cluster.kubectl("wait", "-n", "strict", "--for=condition=Ready", "pod/web", "--timeout=60s")
    return "web"


def test_a_restricted_pod_runs_and_its_log_can_be_read(own_cluster: Cluster, server: str) -> None:
    assert "serving as 10001" in own_cluster.kubectl("logs", "-n", "strict", server).stdout


def test_the_restricted_standard_is_enforced(own_cluster: Cluster, image: str, server: str) -> None:
    plain = {"name": "c", "image": image, "imagePullPolicy": "Never"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plain", "namespace": "strict"},
        "spec": {"containers": [plain]},
    }
    with pytest.raises(KubectlError, match='violates PodSecurity "restricted'):
        own_cluster.apply(pod)


def test_a_service_is_found_by_name_and_answers(own_cluster: Cluster, server: str) -> None:
    fetch = "import urllib.request as u; print(u.urlopen('http://web.strict.svc').status)"
    assert _exec(own_cluster, fetch) == "200"


def test_a_projected_token_has_its_audience(own_cluster: Cluster, server: str) -> None:
    decode = (
        "import base64; t = open('/var/run/token/token').read().split('.')[1];"
        "print(base64.urlsafe_b64decode(t + '===').decode())"
    )
    assert json.loads(_exec(own_cluster, decode))["aud"] == ["noetl"]


def test_the_default_route_ends_at_a_bridge_without_ports(own_cluster: Cluster) -> None:
    """Read off the links, not tried: nothing is ever sent to an address that is not ours."""
    routes = _ip(own_cluster, "route", "show", "default")
    ports = _ip(own_cluster, "link", "show", "master", "node0")
    assert [route["dev"] for route in routes] == ["node0"]
    assert [port for port in ports if port] == []


def test_this_process_can_step_inside(own_cluster: Cluster) -> None:
    with own_cluster.inside():
        connection = socket.create_connection(("10.200.0.1", 6443), timeout=5)
    connection.close()


def test_pods_outlive_an_api_server_that_is_killed(own_cluster: Cluster, server: str) -> None:
    own_cluster.stop("apiserver")
    assert own_cluster.kubectl("get", "--raw", "/readyz", check=False).returncode
    own_cluster.start("apiserver")
    phase = own_cluster.kubectl(
        "get", "pod", "-n", "strict", server, "-o", "jsonpath={.status.phase}"
    )
    assert phase.stdout == "Running"


def test_a_command_runs_inside_the_namespace(own_cluster: Cluster) -> None:
    addresses = subprocess.check_output([*own_cluster.netns, "ip", "-br", "addr"], text=True)
    assert "10.200.0.1/24" in addresses


def test_an_image_is_built_once(own_cluster: Cluster, image: str, tmp_path: Path) -> None:
    (tmp_path / "serve.py").write_text(SERVE)
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    before = images.build(tmp_path / "Dockerfile", tmp_path, TAG).archive.stat().st_mtime_ns
    again = images.build(tmp_path / "Dockerfile", tmp_path, TAG).archive.stat().st_mtime_ns
    assert before == again


def _ip(cluster: Cluster, *args: str) -> list[dict[str, str]]:
    """What `ip` says inside the cluster's namespace."""
    text = subprocess.check_output([*cluster.netns, "ip", "-j", *args], text=True)
    found: list[dict[str, str]] = json.loads(text or "[]")
    return found


def _exec(cluster: Cluster, script: str) -> str:
    done = cluster.kubectl("exec", "-n", "strict", "web", "--", "python", "-c", script)
    return done.stdout.strip()


def _namespace(name: str) -> dict[str, object]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _pod(image: str) -> dict[str, object]:
    container = {
        "name": "web",
        "image": image,
        "imagePullPolicy": "Never",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "readinessProbe": {"httpGet": {"path": "/", "port": 8000}, "periodSeconds": 1},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/token"}],
    }
    token = {"serviceAccountToken": {"audience": "noetl", "path": "token"}}
    spec = {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "token", "projected": {"sources": [token]}}],
    }
    metadata = {"name": "web", "namespace": "strict", "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _service() -> dict[str, object]:
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]}
    metadata = {"name": "web", "namespace": "strict"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
