"""Worker Pods and Jobs as objects of the API."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from noetl_core.load import load
from noetl_core.model import Playbook
from noetl_operator.kube import manifests
from noetl_operator.kube.allow import Workers, shape_of
from noetl_operator.kube.manifests import Order, Owner

WORKERS = Workers(url="http://noetl:8080", image="worker:1")
OWNER = Owner("noetl.io/v1", "Execution", "nightly", "uid-1")
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def playbook(text: str = "") -> Playbook:
    (loaded,) = load(
        "metadata: {name: etl}\nworkflow:\n- step: load\n  tool: {kind: noop}\n" + text
    )
    assert loaded.playbook is not None, loaded.problems
    return loaded.playbook


def order(text: str = "", **more: Any) -> Order:
    book = playbook(text)
    made = Order(
        name="nightly-abc123-0",
        namespace="team",
        pool="execution/0197f3a0",
        owner=OWNER,
        shape=shape_of(book, None, WORKERS),
        keychain=book.keychain,
        playbook="etl",
        execution="nightly",
        execution_id="0197f3a0",
    )
    return replace(made, **more)


def pod(text: str = "", workers: Workers = WORKERS, **more: Any) -> dict[str, Any]:
    return manifests.pod(order(text, **more), workers)


def container(made: dict[str, Any]) -> dict[str, Any]:
    (only,) = made["spec"]["containers"]
    found: dict[str, Any] = only
    return found


def environment(made: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container(made)["env"]}


EVERYTHING = """
executor:
  spec:
    resources: {limits: {memory: 1Gi}}
    nodeSelector: {disk: fast}
    tolerations: [{key: gpu, operator: Exists}]
    affinity: {nodeAffinity: {}}
"""


@pytest.mark.parametrize("text", ["", EVERYTHING])
@pytest.mark.parametrize("user", [65532, None])
@pytest.mark.parametrize("form", ["pod", "job"])
def test_every_pod_meets_the_restricted_standard(text: str, user: int | None, form: str) -> None:
    workers = WORKERS.model_copy(update={"user": user})
    made = getattr(manifests, form)(order(text), workers)
    spec = made["spec"] if form == "pod" else made["spec"]["template"]["spec"]
    (worker,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["securityContext"].get("runAsUser", 1) != 0
    assert spec["automountServiceAccountToken"] is False
    assert worker["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "privileged": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers"} & spec.keys()
    kinds = {key for volume in spec["volumes"] for key in volume if key != "name"}
    assert kinds <= {"emptyDir", "projected"}
    assert "ports" not in worker


def test_the_token_is_for_the_operator_alone() -> None:
    made = pod()
    (token,) = [v for v in made["spec"]["volumes"] if v["name"] == "token"]
    (source,) = token["projected"]["sources"]
    assert source["serviceAccountToken"]["audience"] == "noetl"
    assert environment(made)["NOETL_TOKEN_FILE"] == "/var/run/noetl/token"


def test_only_the_scratch_folder_can_be_written() -> None:
    writable = [m for m in container(pod())["volumeMounts"] if not m.get("readOnly")]
    assert [mount["mountPath"] for mount in writable] == ["/tmp"]


def test_a_worker_knows_whom_to_call_and_what_it_serves() -> None:
    told = environment(pod())
    assert told["NOETL_URL"] == "http://noetl:8080"
    assert told["NOETL_POOL"] == "execution/0197f3a0"
    assert told["NOETL_CAPACITY"] == "16"
    assert told["NOETL_WORKER"] == {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}
    assert "NOETL_LEASE" not in told


def test_a_pod_of_one_command_serves_that_and_nothing_else() -> None:
    made = pod(lease_id="8a0f6f0e-4f53", step="load")
    assert environment(made)["NOETL_LEASE"] == "8a0f6f0e-4f53"
    assert environment(made)["NOETL_CAPACITY"] == "1"
    assert made["metadata"]["annotations"]["noetl.io/lease"] == "8a0f6f0e-4f53"


def test_the_installation_cannot_override_what_the_worker_must_know() -> None:
    workers = WORKERS.model_copy(update={"environment": {"NOETL_POOL": "x", "HTTPS_PROXY": "y"}})
    told = environment(pod(workers=workers))
    assert (told["NOETL_POOL"], told["HTTPS_PROXY"]) == ("execution/0197f3a0", "y")


def test_a_worker_has_time_to_hand_back_what_it_holds() -> None:
    made = pod()
    assert made["spec"]["terminationGracePeriodSeconds"] > WORKERS.stop_grace_s
    assert made["spec"]["restartPolicy"] == "Never"


def test_it_goes_away_with_its_owner() -> None:
    (reference,) = pod()["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["name"], reference["uid"]) == (
        "Execution",
        "nightly",
        "uid-1",
    )
    assert reference["blockOwnerDeletion"] is False


def test_labels_find_it_and_annotations_tell_the_whole_names() -> None:
    step = "a step of many words"
    meta = pod(step=step)["metadata"]
    assert meta["labels"]["noetl.io/execution"] == "nightly"
    assert meta["labels"]["noetl.io/playbook"] == "etl"
    assert LABEL.fullmatch(meta["labels"]["noetl.io/step"])
    assert meta["annotations"]["noetl.io/step-name"] == step
    wanted = dict(pair.split("=") for pair in manifests.SELECTOR.split(","))
    assert wanted.items() <= meta["labels"].items()


def test_a_shared_pod_names_no_execution() -> None:
    labels = pod(execution=None, execution_id=None)["metadata"]["labels"]
    assert "noetl.io/execution" not in labels


def test_a_job_is_tried_once_and_removed_by_kubernetes() -> None:
    made = manifests.job(order(lease_id="8a0f6f0e"), WORKERS)
    assert made["spec"]["backoffLimit"] == 0
    assert made["spec"]["ttlSecondsAfterFinished"] == WORKERS.job_ttl_s
    inner = made["spec"]["template"]
    assert inner["metadata"]["labels"] == made["metadata"]["labels"]
    assert inner["metadata"]["annotations"]["noetl.io/pool"] == "execution/0197f3a0"
    assert inner["spec"]["restartPolicy"] == "Never"
    assert "ownerReferences" not in inner["metadata"]


KEYCHAIN = """
keychain:
- {name: warehouse_db, kind: postgres_credential}
- {name: api, kind: bearer, secretRef: {name: api-token}, map: {token: value}}
- {name: both, kind: basic, secretRef: {name: mixed},
   map: {username: user, password: other-secret/pass}}
- {name: again, kind: secret, secretRef: {name: other-secret}}
"""


def test_G1_keychain_secrets_are_mounted_where_the_worker_looks() -> None:
    made = pod(KEYCHAIN)
    volumes = {v["name"]: v for v in made["spec"]["volumes"]}
    found = {
        mount["mountPath"]: volumes[mount["name"]]["projected"]["sources"][0]["secret"]
        for mount in container(made)["volumeMounts"]
        if mount["mountPath"].startswith("/etc/noetl/keychain/")
    }
    assert found == {
        "/etc/noetl/keychain/warehouse-db": {"name": "warehouse-db", "optional": True},
        "/etc/noetl/keychain/api-token": {
            "name": "api-token",
            "optional": True,
            "items": [{"key": "value", "path": "value"}],
        },
        "/etc/noetl/keychain/mixed": {
            "name": "mixed",
            "optional": True,
            "items": [{"key": "user", "path": "user"}],
        },
        # One entry wants all of it.
        "/etc/noetl/keychain/other-secret": {"name": "other-secret", "optional": True},
    }


def test_G3_names_that_no_secret_can_have_are_left_to_the_worker_to_refuse() -> None:
    text = """
keychain:
- {name: a, kind: secret, map: {x: ../../etc/passwd, y: "Bad Name/key", z: good/..data}}
"""
    assert manifests.secrets_of(playbook(text).keychain) == {"good": []}


@pytest.mark.parametrize(
    "text", ["load", "x" * 63, "x" * 64, "_under_", "with space", "é", "-", "a" * 200, "A.b-c_d"]
)
def test_a_label_holds_any_text(text: str) -> None:
    made = manifests.label(text)
    assert len(made) <= 63
    assert LABEL.fullmatch(made)
    if LABEL.fullmatch(text) and len(text) <= 63:
        assert made == text


def test_labels_of_different_texts_differ() -> None:
    long = "a" * 80
    assert manifests.label(long + "1") != manifests.label(long + "2")
    assert manifests.label("a b") != manifests.label("a-b")


@pytest.mark.parametrize("execution", ["e", "nightly.load", "x" * 253, "a" * 40 + "-" * 10 + "b"])
@pytest.mark.parametrize("step", [None, "load", "Step_One", "é" * 50, "s" * 100])
def test_names_of_pods_are_short_enough_for_a_job_too(execution: str, step: str | None) -> None:
    lease = "8a0f6f0e-4f53-5c55-8d3a-3f0f4f1f2f3f"
    one = manifests.lease_pod_name(execution, step, lease, 12)
    pooled = manifests.pool_pod_name(execution, "execution/0197", 17)
    for name in (one, pooled):
        assert len(name) <= 57
        assert NAME.fullmatch(name)
    assert one.endswith("-12")
    assert one != manifests.lease_pod_name(execution, step, lease, 13)


def test_pods_of_two_pools_of_one_execution_have_different_names() -> None:
    names = {manifests.pool_pod_name("e", f"execution/1/{step}", 0) for step in ("", "a", "b")}
    assert len(names) == 3
