"""Executions reconciled: a cluster in memory, the real control plane and store."""

from __future__ import annotations

import pytest

from noetl_operator.kube import plan
from noetl_operator.kube.port import EVENT, EXECUTION, PLAYBOOK, Key, Unreachable, uid_of
from noetl_operator.store.port import NewExecution
from tests.support.cluster import FakeCluster
from tests.support.kube_stand import (
    NAMESPACE,
    KubeStand,
    execution_key,
    gated,
    kube_stand,
    put_execution,
    put_playbook,
    step,
)
from tests.support.stores import store_template, store_uri

__all__ = ["store_template", "store_uri"]

OPEN = {"id": "o", "set": {"open": True}}


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


async def ids(stand: KubeStand) -> list[str]:
    return [str(row[0]) for row in await stand.store.read("find", "")]


async def test_it_runs_and_its_status_says_so(cluster: FakeCluster, store_uri: str) -> None:
    put_playbook(cluster, "p", step("a", "b"), step("b"))
    put_execution(cluster, "x")
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look()
        status = await stand.shows("x", "Succeeded")
    assert status["steps"]["progress"] == "2/2"
    assert status["playbook"] == {
        "name": "p",
        "generation": 1,
        "digest": status["playbook"]["digest"],
    }


async def test_looking_again_writes_nothing(cluster: FakeCluster, store_uri: str) -> None:
    put_playbook(cluster, "p", step("a", "b"), step("b"))
    put_execution(cluster, "x")
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look()
        await stand.shows("x", "Succeeded")
        await cluster.until(lambda: "status" in cluster.objects[Key(PLAYBOOK, NAMESPACE, "p")])
    before = list(cluster.writes)
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look(everything=True)
        put_execution(cluster, "y")
        await stand.look(everything=True)
        await stand.shows("y", "Succeeded")
    after = [what for what in cluster.writes[len(before) :] if what[1].name != "y"]
    assert after == [], "not even by another process"


async def test_a_new_generation_is_acknowledged_after_the_end(
    cluster: FakeCluster, store_uri: str
) -> None:
    put_playbook(cluster, "p", step("a"))
    put_execution(cluster, "x")
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look()
        await stand.shows("x", "Succeeded")
        put_execution(cluster, "x", ttlSecondsAfterFinished=1000)
        await stand.look()
        there = cluster.objects[execution_key("x")]
        await cluster.until(lambda: _observed(cluster, "x") == 2)
    assert there["metadata"]["generation"] == 2


def _observed(cluster: FakeCluster, name: str) -> int:
    status = cluster.objects[execution_key(name)]["status"]
    assert {one["observedGeneration"] for one in status["conditions"]} == {
        status["observedGeneration"]
    }
    return int(status["observedGeneration"])


async def test_a_delete_while_nobody_looked_cancels_and_frees_the_name(
    cluster: FakeCluster, store_uri: str
) -> None:
    put_playbook(cluster, "p", gated("a"))
    put_execution(cluster, "x")
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look()
        first = (await stand.shows("x", "Waiting"))["executionId"]
    del cluster.objects[execution_key("x")]
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look()
        view = await stand.objects.view(first)
        assert view is not None
        assert view.state.phase == "Cancelled"
        assert await stand.objects.every() == []


async def test_one_deleted_and_made_again_while_nobody_looked_runs_again(
    cluster: FakeCluster, store_uri: str
) -> None:
    put_playbook(cluster, "p", gated("a"))
    put_execution(cluster, "x")
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look()
        first = (await stand.shows("x", "Waiting"))["executionId"]
    del cluster.objects[execution_key("x")]
    put_execution(cluster, "x")
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look()
        second = (await stand.shows("x", "Waiting"))["executionId"]
        view = await stand.objects.view(first)
    assert second != first
    assert view is not None
    assert view.state.phase == "Cancelled"


async def test_what_the_operator_removed_does_not_run_again(
    cluster: FakeCluster, store_uri: str
) -> None:
    put_playbook(cluster, "p", step("a"))
    put_execution(cluster, "x", ttlSecondsAfterFinished=0)
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look()
        assert execution_key("x") not in cluster.objects
        (first,) = await ids(stand)
        put_execution(cluster, "x", ttlSecondsAfterFinished=0)
        await stand.look()
        status = await stand.shows("x", "Succeeded")
        assert status["executionId"] == first
        put_execution(cluster, "x", ttlSecondsAfterFinished=0, cancel="Now")
        await stand.look(everything=True)
        assert execution_key("x") in cluster.objects, "who made it again wants it"
        assert await ids(stand) == [first]


async def test_a_removal_that_was_cut_off_is_finished(cluster: FakeCluster, store_uri: str) -> None:
    put_playbook(cluster, "p", step("a"))
    made = put_execution(cluster, "x")
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look()
        await stand.objects.removed(uid_of(made))
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look(everything=True)
    assert execution_key("x") not in cluster.objects


async def test_another_spec_under_the_name_of_a_removed_one_runs(
    cluster: FakeCluster, store_uri: str
) -> None:
    put_playbook(cluster, "p", step("a"))
    put_execution(cluster, "x", ttlSecondsAfterFinished=0)
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look()
        put_execution(cluster, "x", workload={"other": 1})
        await stand.look()
        await stand.shows("x", "Succeeded")
        assert len(await ids(stand)) == 2


async def test_one_that_was_linked_but_not_registered_begins(
    cluster: FakeCluster, store_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies between the link and the row, then between the row and the start."""
    put_playbook(cluster, "p", step("a"))
    put_execution(cluster, "x")
    async with kube_stand(store_uri, cluster) as stand:
        with monkeypatch.context() as patched:
            patched.setattr(type(stand.store), "create", _killed)
            with pytest.raises(Killed):
                await stand.look()
    assert _killed.calls == 1
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look(everything=True)
        await stand.shows("x", "Succeeded")
        assert len(await ids(stand)) == 1


class Killed(Exception):
    """Stands for the end of the process."""


class _Kill:
    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, request: NewExecution) -> str:
        self.calls += 1
        raise Killed


_killed = _Kill()


async def test_a_child_is_found_by_its_record_and_a_forged_one_is_not(
    cluster: FakeCluster, store_uri: str
) -> None:
    put_playbook(cluster, "p", gated("a"))
    put_execution(cluster, "x")
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look()
        first = (await stand.shows("x", "Waiting"))["executionId"]
        meta = {
            "name": "thief",
            "namespace": NAMESPACE,
            "annotations": {"noetl.io/execution-id": first},
        }
        cluster.put(EXECUTION, {"metadata": meta, "spec": {"playbookRef": {"name": "p"}}})
        meta = {**meta, "name": "fool", "annotations": {"noetl.io/execution-id": "'; DROP"}}
        cluster.put(EXECUTION, {"metadata": meta, "spec": {"playbookRef": {"name": "p"}}})
        await stand.look()
        theirs = await stand.shows("thief", "Waiting")
        assert theirs["executionId"] != first
        await stand.shows("fool", "Waiting")


async def test_a_patch_that_is_refused_is_told_and_not_tried_for_ever(
    cluster: FakeCluster, store_uri: str
) -> None:
    put_playbook(cluster, "p", gated("a"))
    big = {"id": "big", "set": {"k": "x" * 1_200_000}}
    put_execution(cluster, "x", ctxPatches=[big, OPEN])
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look()
        await stand.shows("x", "Succeeded")
        await stand.recorder.flush()
    events = await cluster.list(EVENT)
    assert [event["reason"] for event in events].count("PatchRefused") == 1


async def test_a_poison_object_is_told_so(
    cluster: FakeCluster, store_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_playbook(cluster, "p", gated("a"))
    put_execution(cluster, "x")
    put_execution(cluster, "new")
    async with kube_stand(store_uri, cluster) as stand:
        key = execution_key("x")
        await stand.look()
        await stand.shows("x", "Waiting")
        await stand.executions.quarantine(key, RecursionError("deep"))
        await cluster.until(lambda: len(cluster.objects[key]["status"]["conditions"]) == 3)
        told = cluster.objects[key]["status"]["conditions"][2]
        assert (told["type"], told["reason"]) == ("Reconciled", "Quarantined")
        assert "RecursionError" in told["message"]
        put_execution(cluster, "x", ctxPatches=[OPEN])
        await stand.look()
        status = await stand.shows("x", "Succeeded")
        assert len(status["conditions"]) == 2, "what works again is not quarantined"


async def test_a_cluster_that_does_not_answer_changes_nothing(
    cluster: FakeCluster, store_uri: str
) -> None:
    put_playbook(cluster, "p", gated("a"))
    put_execution(cluster, "x")
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look()
        first = (await stand.shows("x", "Waiting"))["executionId"]
        stand.watch.forget(execution_key("x"))
        cluster.down = True
        with pytest.raises(Unreachable):
            await stand.executions.reconcile(execution_key("x"))
        cluster.down = False
        view = await stand.objects.view(first)
        assert view is not None
        assert view.state.phase == "Waiting", "not seeing an object does not mean it is gone"


async def test_a_restless_object_lets_others_go_first(
    cluster: FakeCluster, store_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_playbook(cluster, "p", step("a"))
    put_execution(cluster, "x")
    async with kube_stand(store_uri, cluster) as stand:
        await stand.look()
        monkeypatch.setattr(plan, "decide", lambda seen: plan.Plan((plan.Begin(),)))
        assert (await stand.executions.reconcile(execution_key("x")) or 0) > 0
