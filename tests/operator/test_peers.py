"""Under which name, and for which pools, a recognised worker may lease."""

from __future__ import annotations

from noetl_operator.ingest.peers import Peer


def test_a_pod_leases_under_its_own_name_and_for_its_own_pool() -> None:
    pod = Peer("team/nightly-0", frozenset({"execution/a"}))
    assert pod.is_called("nightly-0")
    assert not pod.is_called("nightly-1")
    assert not pod.is_called("team/nightly-0")
    assert pod.may_serve("execution/a")
    assert not pod.may_serve("execution/b")


def test_a_local_worker_is_called_as_it_likes() -> None:
    local = Peer("local")
    assert local.is_called("anything")
    assert local.may_serve("any/pool")
