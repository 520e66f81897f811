"""The operator with no more rights than it needs."""

from __future__ import annotations

from e2e.operator import playbooks, rights
from e2e.operator.stand import Stand


def test_it_works_with_few_rights_and_cannot_read_secrets(stand: Stand) -> None:
    for thing in rights.manifests(stand.namespace):
        stand.apply(thing)
    config = rights.kubeconfig(stand.cluster, stand.namespace, stand.folder / "operator.kubeconfig")
    stand.stop_operator()
    stand.start_operator(NOETL_KUBECONFIG=str(config), NOETL_NAMESPACES="")
    stand.apply(playbooks.gate(stand), playbooks.failing(stand), stand.execution("modest", "gate"))
    stand.apply(stand.execution("modest-bad", "failing", ttlSecondsAfterFinished=3600))
    stand.worker("modest")
    stand.worker("modest-bad")
    stand.phase("modest", "Waiting")
    stand.patch("modest", ctxPatches=[{"id": "ok", "set": {"open": True}}])
    stand.phase("modest", "Succeeded")
    stand.phase("modest-bad", "Failed")
    said = stand.log.read_text()
    assert " 403 " not in said, said[-3000:]
    who = f"--as=system:serviceaccount:{stand.namespace}:{rights.ACCOUNT}"
    asked = stand.cluster.kubectl("auth", "can-i", "get", "secrets", who, "-A", check=False)
    assert asked.stdout.strip() == "no"
    stand.stop_operator()
    stand.start_operator()
