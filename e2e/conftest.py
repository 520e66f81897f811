"""Fixtures of the tests that need a real Kubernetes, and the word about those that did not run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from e2e.cluster import Cluster, Existing, Kubernetes, Unsupported, supported

NAME_VARIABLE = "NOETL_E2E_NAME"
"""Names a cluster that `python -m e2e.cluster up` keeps, to test on it again and again."""

FIXTURES = {"cluster", "control_plane", "own_cluster"}

_reason = pytest.StashKey[str]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    needy = [item for item in items if FIXTURES.intersection(getattr(item, "fixturenames", ()))]
    for item in needy:
        item.add_marker(pytest.mark.cluster)
    if needy and (reason := supported()):
        config.stash[_reason] = reason
        for item in needy:
            item.add_marker(pytest.mark.skip(reason=f"no cluster: {reason}"))


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line of all, below pytest's own summary."""
    if reason := config.stash.get(_reason, None):
        print(f"the cluster tests did not run: {reason}")


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Kubernetes]:
    """A whole Kubernetes: the one that the environment names, or one of this session's own."""
    yield from _session_cluster(request.config, nodes=True)


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[Kubernetes]:
    """A Kubernetes without nodes: it starts in seconds, and is enough for CRDs and RBAC."""
    yield from _session_cluster(request.config, nodes=False)


@pytest.fixture(scope="session")
def own_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A whole Kubernetes that was surely made here, so that its parts can be stopped."""
    made = Cluster()
    _up_or_skip(request.config, made)
    yield made
    made.down()


def _session_cluster(config: pytest.Config, *, nodes: bool) -> Iterator[Kubernetes]:
    kept = os.environ.get(NAME_VARIABLE)
    found = Existing.named() or (Cluster(kept, nodes=nodes, keep=True) if kept else None)
    made = found or Cluster(nodes=nodes)
    _up_or_skip(config, made)
    yield made
    if found is None:
        made.down()


def _up_or_skip(config: pytest.Config, wanted: Kubernetes) -> None:
    """Some things show only when they are tried: packages and modules that cannot be had."""
    try:
        wanted.up()
    except Unsupported as error:
        config.stash[_reason] = str(error)
        pytest.skip(f"no cluster: {error}")
