"""An API server that knows the custom resources."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.cluster import Kubernetes
from e2e.crds.objects import CRDS, NAMESPACE


@pytest.fixture(scope="session")
def api(control_plane: Kubernetes) -> Iterator[Kubernetes]:
    """An API server that knows the resources, with a namespace for these tests."""
    control_plane.kubectl("apply", "-f", str(CRDS))
    names = ["crd/playbooks.noetl.io", "crd/executions.noetl.io"]
    control_plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
    control_plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    yield control_plane
    control_plane.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
