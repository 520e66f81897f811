"""An operator that serves one namespace of a real API server."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from e2e.cluster import Kubernetes, run
from e2e.crds.objects import CRDS
from e2e.operator.stand import Stand

NAMESPACE = f"operator-tests-{os.getpid()}"


@pytest.fixture(scope="session")
def stand(control_plane: Kubernetes) -> Iterator[Stand]:
    control_plane.kubectl("apply", "--server-side", "-f", str(CRDS))
    run.until(lambda: _established(control_plane), what="the CRDs are known", timeout=30.0)
    control_plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    made = Stand(control_plane, NAMESPACE)
    try:
        made.up()
        yield made
    finally:
        made.down()
        control_plane.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def _established(api: Kubernetes) -> bool:
    names = ("crd/playbooks.noetl.io", "crd/executions.noetl.io")
    words = ("wait", "--for=condition=Established", "--timeout=1s", *names)
    return not api.kubectl(*words, check=False).returncode
