"""Whose token it is, and what that Pod may serve."""

from __future__ import annotations

import pytest

from noetl_operator.kube import peers
from noetl_operator.kube.peers import KubePeers
from noetl_operator.kube.port import POD, Reviewed, uid_of
from noetl_operator.kube.watch import Watch
from noetl_operator.store.port import Unavailable
from tests.support.cluster import FakeCluster

ID = "01a1ee98-7f8a-74d9-82ba-c385b1cd8c09"


class Namespaces:
    """The executions that there are, and where."""

    async def namespace(self, execution_id: str) -> str | None:
        return "n" if execution_id == ID else None


class Bench:
    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.peers = KubePeers(self.cluster, Watch([], lambda key: None), Namespaces())  # type: ignore[arg-type]

    def pod(self, name: str, pool: str | None, namespace: str = "n") -> str:
        """A Pod and its token."""
        notes = {} if pool is None else {"noetl.io/pool": pool}
        meta = {"name": name, "namespace": namespace, "annotations": notes}
        uid = uid_of(self.cluster.put(POD, {"metadata": meta}))
        self.cluster.tokens[f"token-{name}"] = Reviewed(namespace, "default", name, uid)
        return f"token-{name}"


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize(
    "pool",
    [f"execution/{ID}", f"execution/{ID}/step", f"step/{ID}/", f"step/{ID}/a", "playbook/n/p/abc"],
)
async def test_a_pod_may_serve_its_own_pool_and_no_other(bench: Bench, pool: str) -> None:
    peer = await bench.peers.identify(bench.pod("w", pool))
    assert peer is not None
    assert peer.may_serve(pool)
    assert not peer.may_serve("default")
    assert not peer.may_serve(f"{pool}x")


@pytest.mark.parametrize(
    ("pool", "namespace"),
    [
        (f"execution/{ID}", "other"),
        (f"step/{ID}/a", "other"),
        ("playbook/n/p/abc", "other"),
        ("execution/01a1ee98-7f8a-74d9-82ba-000000000000", "n"),
        ("execution/nonsense", "n"),
        ("default", "n"),
        ("", "n"),
        (None, "n"),
    ],
)
async def test_a_pod_cannot_claim_what_is_not_of_its_namespace(
    bench: Bench, pool: str | None, namespace: str
) -> None:
    assert await bench.peers.identify(bench.pod("w", pool, namespace)) is None


async def test_tokens_of_nobody_are_refused(bench: Bench) -> None:
    bench.cluster.tokens["person"] = Reviewed("n", "default")
    bench.cluster.tokens["gone"] = Reviewed("n", "default", "no-such-pod", "u")
    for token in ("", "unknown", "person", "gone", "\udcff"):
        assert await bench.peers.identify(token) is None


async def test_the_token_of_an_earlier_pod_of_the_name_is_refused(bench: Bench) -> None:
    token = bench.pod("w", f"execution/{ID}")
    bench.cluster.tokens[token] = Reviewed("n", "default", "w", "uid-of-before")
    assert await bench.peers.identify(token) is None


async def test_an_answer_is_remembered_for_a_while(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(peers.time, "monotonic", lambda: now)
    token = bench.pod("w", f"execution/{ID}")
    assert await bench.peers.identify(token) is not None
    bench.cluster.tokens.clear()
    now += 59
    assert await bench.peers.identify(token) is not None
    now += 2
    assert await bench.peers.identify(token) is None


async def test_who_cannot_be_asked_for_is_not_refused_but_put_off(bench: Bench) -> None:
    token = bench.pod("w", f"execution/{ID}")
    bench.cluster.down = True
    with pytest.raises(Unavailable):
        await bench.peers.identify(token)
    bench.cluster.down = False
    assert await bench.peers.identify(token) is not None
