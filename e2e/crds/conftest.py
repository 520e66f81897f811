"""An API server that knows the custom resources."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.cluster import Kubernetes, run
from e2e.crds.objects import CRDS, NAMESPACE


@pytest.fixture(scope="session")
def api(control_plane: Kubernetes) -> Iterator[Kubernetes]:
    """An API server that knows the resources, with a namespace for these tests."""
    control_plane.kubectl("apply", "-f", str(CRDS))
    run.until(lambda: _established(control_plane), what="the CRDs are known", timeout=30.0)
    control_plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    yield control_plane
    control_plane.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def _established(api: Kubernetes) -> bool:
    """Asked again and again: `kubectl wait` fails on a CRD so new that its conditions are null."""
    names = ("crd/playbooks.noetl.io", "crd/executions.noetl.io")
    words = ("wait", "--for=condition=Established", "--timeout=1s", *names)
    return not api.kubectl(*words, check=False).returncode
