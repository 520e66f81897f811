"""The Kubernetes in memory keeps the contract of the real one."""

from __future__ import annotations

import pytest

from tests.support.cluster import FakeCluster
from tests.support.cluster_contract import ClusterContract


class TestFakeCluster(ClusterContract):
    @pytest.fixture
    def kube(self) -> FakeCluster:
        return FakeCluster()

    @pytest.fixture
    def namespace(self) -> str:
        return "n"
