"""The real API server behind the operator's port."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest

from e2e.cluster import Cluster, Kubernetes
from e2e.operator.stand import Stand
from noetl_operator.kube import client
from noetl_operator.kube.client import KubeClient
from noetl_operator.kube.port import AUDIENCE, EXECUTION, POD, Kind
from tests.support.cluster_contract import ClusterContract

CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")


class TestKubeClient(ClusterContract):
    @pytest.fixture
    async def kube(self, stand: Stand) -> AsyncIterator[KubeClient]:
        cluster = stand.cluster
        inside = cluster.inside() if isinstance(cluster, Cluster) else contextlib.nullcontext()
        with inside:
            async with KubeClient.connect(cluster.kubeconfig) as connected:
                yield connected

    @pytest.fixture
    def namespace(self, control_plane: Kubernetes) -> Iterator[str]:
        """One that no operator serves."""
        name = f"contract-{uuid4().hex[:8]}"
        control_plane.kubectl("create", "namespace", name)
        yield name
        control_plane.kubectl("delete", "namespace", name, "--wait=false")

    async def test_a_token_tells_its_pod(self, kube: KubeClient, stand: Stand) -> None:
        pod = stand.pod("claims", "execution/x")
        uid = pod["metadata"]["uid"]
        found = await kube.token_review(stand.token("claims", uid), AUDIENCE)
        assert found is not None
        assert (found.namespace, found.pod, found.pod_uid) == (stand.namespace, "claims", uid)
        other = stand.token("claims", uid, audience="somebody")
        assert await kube.token_review(other, AUDIENCE) is None, "not meant for us"

    async def test_a_long_list_comes_in_pages(self, kube: KubeClient, namespace: str) -> None:
        for number in range(7):
            await kube.create(CONFIG_MAP, namespace, {"metadata": {"name": f"c{number}"}})
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(client, "PAGE", 3)
            found = await kube.list(CONFIG_MAP, namespace)
        assert {f"c{i}" for i in range(7)} <= {one["metadata"]["name"] for one in found}

    async def test_rights_can_be_asked_for(self, kube: KubeClient, namespace: str) -> None:
        assert await kube.access_review("create", POD, namespace)
        assert await kube.access_review("list", EXECUTION)


def test_statuses_are_objects(stand: Stand) -> None:
    """`kubectl explain` and the CRD know every field that the operator writes."""
    text = stand.cluster.kubectl("explain", "execution.status", "--recursive").stdout
    for field in ("phase", "observedGeneration", "activeSummary", "lastSeq", "executionId"):
        assert field in text, json.dumps(text)
