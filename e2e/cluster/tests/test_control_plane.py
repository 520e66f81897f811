"""The control plane alone: what CRD and RBAC tests stand on."""

from __future__ import annotations

import pytest

from e2e.cluster import Cluster, KubectlError, Kubernetes


def test_the_api_server_answers_with_the_stamped_version(control_plane: Kubernetes) -> None:
    assert '"gitVersion": "v1.' in control_plane.kubectl("get", "--raw", "/version").stdout


def test_kubectl_errors_are_raised_with_its_words(control_plane: Kubernetes) -> None:
    with pytest.raises(KubectlError, match='namespaces "nowhere" not found'):
        control_plane.kubectl("get", "namespace", "nowhere")
    assert control_plane.kubectl("get", "namespace", "nowhere", check=False).returncode


def test_an_object_and_a_list_of_objects_can_be_applied(control_plane: Kubernetes) -> None:
    made = [_config_map("one"), _config_map("two")]
    control_plane.apply(made[0])
    control_plane.apply(made)
    names = control_plane.kubectl("get", "configmaps", "-o", "name").stdout
    assert {"configmap/one", "configmap/two"} <= set(names.split())


def test_two_clusters_live_side_by_side(control_plane: Kubernetes) -> None:
    control_plane.apply(_config_map("only-in-the-first"))
    with Cluster(nodes=False) as other:
        assert "only-in-the-first" not in other.kubectl("get", "configmaps").stdout
    assert "only-in-the-first" in control_plane.kubectl("get", "configmaps").stdout


def _config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
