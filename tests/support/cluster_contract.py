"""What holds for every Kubernetes behind the operator's port, the real one and the one in memory.

A test module makes a subclass whose fixtures `kube` and `namespace` give the cluster to be tried.
"""

from __future__ import annotations

import pytest

from noetl_operator.kube import port
from noetl_operator.kube.port import EVENT, EXECUTION, Cluster, Key, Object, generation_of, uid_of

SPEC: Object = {"playbookRef": {"name": "p"}}
STATUS: Object = {"phase": "Running", "observedGeneration": 1, "steps": {"total": 2}}


class ClusterContract:
    """The contract, one promise a test."""

    async def make(self, kube: Cluster, namespace: str, name: str, **meta: object) -> Object:
        body = {"metadata": {"name": name, **meta}, "spec": SPEC}
        return await kube.create(EXECUTION, namespace, body)

    async def test_what_was_created_is_there(self, kube: Cluster, namespace: str) -> None:
        made = await self.make(kube, namespace, "there")
        found = await kube.get(Key(EXECUTION, namespace, "there"))
        assert uid_of(found) == uid_of(made)
        assert found["spec"] == SPEC
        assert generation_of(found) == 1
        assert found["metadata"]["creationTimestamp"]

    async def test_a_name_is_taken_once(self, kube: Cluster, namespace: str) -> None:
        await self.make(kube, namespace, "taken")
        with pytest.raises(port.Exists):
            await self.make(kube, namespace, "taken")

    async def test_what_is_not_there_is_not_found(self, kube: Cluster, namespace: str) -> None:
        key = Key(EXECUTION, namespace, "nobody")
        with pytest.raises(port.NotFound):
            await kube.get(key)
        with pytest.raises(port.NotFound):
            await kube.delete(key)
        with pytest.raises(port.NotFound):
            await kube.apply_status(key, "u", STATUS)

    async def test_lists_go_by_namespace_and_label(self, kube: Cluster, namespace: str) -> None:
        await self.make(kube, namespace, "red", labels={"colour": "red", "kind": "x"})
        await self.make(kube, namespace, "blue", labels={"colour": "blue"})

        async def names(labels: str | None, where: str | None = namespace) -> set[str]:
            found = await kube.list(EXECUTION, where, labels)
            return {one["metadata"]["name"] for one in found}

        assert await names("colour=red") == {"red"}
        assert await names("colour=red,kind=y") == set()
        assert {"red", "blue"} <= await names(None)
        assert {"red", "blue"} <= await names(None, None)
        assert await names(None, "another") == set()

    async def test_a_status_is_applied_as_a_whole(self, kube: Cluster, namespace: str) -> None:
        made = await self.make(kube, namespace, "told")
        key = Key(EXECUTION, namespace, "told")
        await kube.apply_status(key, uid_of(made), STATUS)
        await kube.apply_status(key, uid_of(made), {"phase": "Failed"})
        found = await kube.get(key)
        assert found["status"] == {"phase": "Failed"}, "what is left out is gone"
        assert found["spec"] == SPEC
        assert generation_of(found) == 1, "a status is no change of the spec"

    async def test_another_object_of_the_name_is_not_touched(
        self, kube: Cluster, namespace: str
    ) -> None:
        await self.make(kube, namespace, "other")
        key, another = Key(EXECUTION, namespace, "other"), "00000000-0000-4000-8000-000000000000"
        with pytest.raises(port.Conflict):
            await kube.apply_status(key, another, STATUS)
        with pytest.raises(port.Conflict):
            await kube.delete(key, uid=another)
        assert await kube.get(key)

    async def test_what_was_deleted_is_gone(self, kube: Cluster, namespace: str) -> None:
        made = await self.make(kube, namespace, "gone")
        key = Key(EXECUTION, namespace, "gone")
        await kube.delete(key, uid=uid_of(made))
        with pytest.raises(port.NotFound):
            await kube.get(key)
        again = await self.make(kube, namespace, "gone")
        assert uid_of(again) != uid_of(made)

    async def test_a_patch_merges(self, kube: Cluster, namespace: str) -> None:
        body = {
            "metadata": {"name": "event.1"},
            "involvedObject": {"kind": "Execution", "name": "x", "namespace": namespace},
            "reason": "Started",
            "count": 1,
        }
        await kube.create(EVENT, namespace, body)
        await kube.patch(Key(EVENT, namespace, "event.1"), {"count": 2})
        found = await kube.get(Key(EVENT, namespace, "event.1"))
        assert (found["count"], found["reason"]) == (2, "Started")

    async def test_a_wrong_token_is_nobodys(self, kube: Cluster) -> None:
        assert await kube.token_review("not-a-token", "noetl") is None
