"""Children of `playbook` tasks as objects."""

from __future__ import annotations

import pytest

from noetl_core.engine.triggers import CreateChild
from noetl_operator.kube.port import EXECUTION
from noetl_operator.starting import child_name
from noetl_operator.store.port import NewExecution
from tests.support.cluster import FakeCluster
from tests.support.kube_stand import (
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

CHILD = "01a1ee98-7f8a-74d9-82ba-c385b1cd8c09"
NAME = child_name("x", CHILD)


@pytest.fixture
def cluster() -> FakeCluster:
    made = FakeCluster()
    put_playbook(made, "p", gated("a"))
    put_playbook(made, "small", step("a"))
    put_execution(made, "x")
    return made


async def parent(stand: KubeStand) -> NewExecution:
    await stand.look()
    found = (await stand.shows("x", "Waiting"))["executionId"]
    snapshot = await stand.store.load(found)
    assert snapshot is not None
    return snapshot.request


def wish(of: NewExecution, playbook: str = "small") -> CreateChild:
    about = {"execution_id": of.execution_id, "run_id": CHILD, "task": "t", "depth": 1}
    return CreateChild(
        child=CHILD,
        playbook=playbook,
        workload={"n": 1},
        parent={**about, "iteration": None, "max_depth": 10},
        depth=1,
    )


async def test_a_child_is_an_object_of_its_parent_and_runs_under_the_id_it_was_given(
    cluster: FakeCluster, store_uri: str
) -> None:
    async with kube_stand(store_uri, cluster) as stand:
        of = await parent(stand)
        request = await stand.children.request(wish(of), of)
        assert (request.name, request.execution_id) == (NAME, CHILD)
        made = cluster.objects[execution_key(NAME)]
        (owner,) = made["metadata"]["ownerReferences"]
        assert owner["uid"] == cluster.objects[execution_key("x")]["metadata"]["uid"]
        assert made["metadata"]["labels"] == {"noetl.io/parent": "x"}
        assert made["spec"] == {"playbookRef": {"name": "small"}, "workload": {"n": 1}}
        await stand.look()
        status = await stand.shows(NAME, "Succeeded")
        assert status["executionId"] == CHILD


async def test_asking_twice_makes_one(cluster: FakeCluster, store_uri: str) -> None:
    async with kube_stand(store_uri, cluster) as stand:
        of = await parent(stand)
        first = await stand.children.request(wish(of), of)
        assert await stand.children.request(wish(of), of) == first
    creates = [key for what, key in cluster.writes if what == "create"]
    assert creates == [execution_key(NAME)]


async def test_the_object_is_found_also_when_nobody_came_to_link_it(
    cluster: FakeCluster, store_uri: str
) -> None:
    async with kube_stand(store_uri, cluster) as stand:
        of = await parent(stand)
        await stand.children.request(wish(of), of)
        uid = cluster.objects[execution_key(NAME)]["metadata"]["uid"]
        await stand.objects.unlink(uid)
        await stand.look(everything=True)
        assert (await stand.shows(NAME, "Succeeded"))["executionId"] == CHILD


async def test_one_whose_playbook_is_not_there_ends_at_once(
    cluster: FakeCluster, store_uri: str
) -> None:
    async with kube_stand(store_uri, cluster) as stand:
        of = await parent(stand)
        for unknown in ("nobody", "no/such/path"):
            request = await stand.children.request(wish(of, unknown), of)
            assert [one["code"] for one in request.problems] == ["K37.not-found"]  # type: ignore[index, call-overload]


async def test_a_name_that_somebody_took_is_not_taken_from_them(
    cluster: FakeCluster, store_uri: str
) -> None:
    theirs = put_execution(cluster, NAME, "p")
    async with kube_stand(store_uri, cluster) as stand:
        of = await parent(stand)
        await stand.children.request(wish(of), of)
        assert cluster.objects[execution_key(NAME)]["spec"] == theirs["spec"]
        link = await stand.objects.of(CHILD)
        assert link is None


async def test_a_finished_parent_stays_while_its_children_run(
    cluster: FakeCluster, store_uri: str
) -> None:
    async with kube_stand(store_uri, cluster) as stand:
        of = await parent(stand)
        await stand.children.request(wish(of, "p"), of)
        await stand.look()
        await stand.shows(NAME, "Waiting")
        patches = [{"id": "o", "set": {"open": True}}]
        put_execution(cluster, "x", ctxPatches=patches, ttlSecondsAfterFinished=0)
        await stand.look()
        await stand.shows("x", "Succeeded")
        assert execution_key("x") in cluster.objects
        cluster.put(
            EXECUTION,
            {
                **cluster.objects[execution_key(NAME)],
                "spec": {**cluster.objects[execution_key(NAME)]["spec"], "cancel": "Now"},
            },
        )
        await stand.look()
        await stand.executions.reconcile(execution_key("x"))
        assert execution_key("x") not in cluster.objects
