"""A cluster with the product in it, and a namespace for each module."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from e2e.cluster import Cluster, Kubernetes
from e2e.pods import installation
from e2e.pods.field import Field


@pytest.fixture(scope="session")
def installed(cluster: Kubernetes) -> Cluster:
    if not isinstance(cluster, Cluster):
        pytest.skip("images cannot be brought to a cluster that was not made here")
    installation.install(cluster)
    return cluster


@pytest.fixture(scope="module")
def field(installed: Cluster, request: pytest.FixtureRequest) -> Iterator[Field]:
    word = request.module.__name__.rpartition("_")[2]
    made = Field(installed, f"pods-{word}-{os.getpid()}")
    made.up()
    yield made
    made.down()
