"""Pods that cannot start: told in words within seconds, and not waited for without end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.cluster import Cluster
from e2e.operator.stand import condition
from e2e.pods import installation
from e2e.pods.field import Field, step


@pytest.fixture(scope="module", autouse=True)
def impatient(installed: Cluster) -> Iterator[None]:
    """An operator that waits ten seconds for a Pod, and allows more images."""
    installation.configure(installed, pending_timeout_s=10, allowed_images=["noetl.local/*"])
    yield
    installation.configure(installed)


@pytest.mark.parametrize("kind", ["pool", "pod", "job"])
def test_an_image_that_is_not_there(field: Field, kind: str) -> None:
    name = f"image-{kind}"
    executor = {"kind": kind, "spec": {"image": "noetl.local/absent:1"}}
    field.run(name, step("one"), executor=executor)
    field.says(name, "the image noetl.local/absent:1 cannot be had")
    message = condition(field.ended(name, "Failed"), "Succeeded")["message"]
    assert "no Pod was ready within 10 s" in message
    assert "noetl.local/absent:1" in message
    field.no_pods(f"noetl.io/execution={name}")


@pytest.mark.parametrize("kind", ["pool", "pod"])
def test_a_node_that_does_not_exist(field: Field, kind: str) -> None:
    name = f"node-{kind}"
    executor = {"kind": kind, "spec": {"nodeSelector": {"disk": "of-gold"}}}
    field.run(name, step("one"), executor=executor)
    field.says(name, "no node takes the Pod")
    message = condition(field.ended(name, "Failed"), "Succeeded")["message"]
    assert "didn't match Pod's node affinity/selector" in message
    field.no_pods(f"noetl.io/execution={name}")


def test_more_memory_than_any_node_has(field: Field) -> None:
    resources = {"requests": {"memory": "100Ti"}}
    field.run("huge", step("one"), executor={"spec": {"resources": resources}})
    field.says("huge", "Insufficient memory")
    field.ended("huge", "Failed")


def test_resources_that_are_none_fail_at_once(field: Field) -> None:
    resources = {"limits": {"memory": "1Gi"}, "requests": {"memory": "2Gi"}}
    field.run("wrong", step("one"), executor={"spec": {"resources": resources}})
    message = condition(field.ended("wrong", "Failed"), "Succeeded")["message"]
    assert "must be less than or equal to memory limit" in message


def test_a_quota_that_is_full_is_told(field: Field) -> None:
    metadata = {"name": "none", "namespace": field.namespace}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata}
    field.cluster.apply({**quota, "spec": {"hard": {"pods": "0"}}})
    try:
        field.run("quota", step("one"))
        field.says("quota", "exceeded quota")
    finally:
        field.kubectl("delete", "resourcequota", "none")
    field.ended("quota")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"image": "elsewhere/worker:1"}, "the image `elsewhere/worker:1` is not allowed"),
        ({"serviceAccountName": "admin"}, "the ServiceAccount `admin` is not allowed"),
    ],
)
def test_what_is_not_allowed_here_is_refused(field: Field, spec: dict[str, str], said: str) -> None:
    name = f"refused-{next(iter(spec)).lower()}"
    field.run(name, step("one"), executor={"spec": spec})
    status = field.ended(name, "Failed")
    assert condition(status, "Succeeded")["reason"] == "InvalidPlaybook"
    assert said in condition(status, "Accepted")["message"]
