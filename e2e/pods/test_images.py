"""The images themselves: small rights, nothing left of the build, quick to start."""

from __future__ import annotations

import json

import pytest

from e2e import images
from e2e.operator.stand import until
from e2e.pods.field import Field, Object

LOOK = """
import importlib.util, json, os, pathlib, sys
root = pathlib.Path("/opt/noetl/lib")
sources = [p for p in root.rglob("*.py") if "/tests/" not in str(p)]
stale = [str(p) for p in sources if not os.path.exists(importlib.util.cache_from_source(str(p)))]
def writable(folder):
    try:
        pathlib.Path(folder, "probe").write_text("x")
        return True
    except OSError:
        return False
print(json.dumps({
    "user": os.getuid(),
    "safe_path": sys.flags.safe_path,
    "stale": stale,
    "writable": [f for f in ("/", "/opt/noetl", "/etc", "/tmp") if writable(f)],
    "pip": importlib.util.find_spec("pip") is not None,
    "pip_configuration": [f for f in ("/etc/pip.conf", "/tmp/pip.conf") if os.path.exists(f)],
    "found": [importlib.util.find_spec(name) is not None for name in sys.argv[1:]],
}))
"""


@pytest.mark.parametrize(
    ("image", "modules"),
    [
        (images.OPERATOR, ["noetl_operator.app", "kopf", "kubernetes.aio", "asyncpg"]),
        (images.WORKER, ["noetl_worker.app", "duckdb", "httpx", "asyncpg"]),
    ],
)
def test_an_image_holds_what_it_needs_and_may_do_nothing_else(
    field: Field, image: str, modules: list[str]
) -> None:
    name = image.partition("/")[2].partition(":")[0]
    said = json.loads(run(field, f"look-{name}", image, ["python", "-c", LOOK, *modules]))
    assert said["user"] == 65532
    assert said["safe_path"] is True
    assert said["stale"] == []
    assert said["writable"] == ["/tmp"]
    assert said["pip"] is False
    assert said["pip_configuration"] == []
    assert said["found"] == [True] * len(modules)


def test_a_worker_without_settings_says_what_is_missing(field: Field) -> None:
    said = run(field, "bare", images.WORKER, None, phase="Failed")
    assert "NOETL_URL" in said


def run(
    field: Field, name: str, image: str, command: list[str] | None, phase: str = "Succeeded"
) -> str:
    """What a Pod of an image prints until it ends."""
    container: Object = {
        "name": "look",
        "image": image,
        "imagePullPolicy": "Never",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    if command is not None:
        container["command"] = command
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    metadata = {"name": name, "namespace": field.namespace}
    field.cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    read = ("get", "pod", name, "-o", "jsonpath={.status.phase}")
    until(f"{name} has ended", lambda: field.kubectl(*read) in ("Succeeded", "Failed"), 60.0)
    text = field.kubectl("logs", name)
    assert field.kubectl(*read) == phase, text
    return text
