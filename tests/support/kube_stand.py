"""The operator's Kubernetes side in one process: a cluster in memory, a store on Postgres.

Nothing watches and nothing runs by itself but the control plane and the writer of statuses: a test
says when the operator looks. Playbooks of steps without tools need no worker.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from noetl_operator.control import ControlPlane, control_plane
from noetl_operator.kube.children import KubeChildren
from noetl_operator.kube.executions import Executions, Parts
from noetl_operator.kube.playbooks import Playbooks
from noetl_operator.kube.port import EXECUTION, PLAYBOOK, Key, Object
from noetl_operator.kube.recorder import Recorder
from noetl_operator.kube.resync import Resync
from noetl_operator.kube.status import StatusWriter
from noetl_operator.kube.watch import Watch, Watched
from noetl_operator.settings import OperatorSettings
from noetl_operator.store.objects import Objects
from noetl_operator.store.postgres import PostgresStore
from tests.support.cluster import FakeCluster

NAMESPACE = "n"
WATCHED = (Watched(PLAYBOOK), Watched(EXECUTION))


def step(name: str, *then: str, **keys: Any) -> Object:
    """A step that only routes."""
    return {"step": name, "next": {"arcs": [{"step": one} for one in then]}, **keys}


def gated(name: str) -> Object:
    """A step that waits until `ctx.open` is true."""
    rules = [
        {"when": "{{ ctx.open }}", "then": {"allow": True}},
        {"else": {"then": {"allow": False}}},
    ]
    return step(name, spec={"policy": {"admit": {"rules": rules, "on_deny": "wait"}}})


class KubeStand:
    """One operator process."""

    def __init__(self, cluster: FakeCluster, store: PostgresStore) -> None:
        self.cluster, self.store = cluster, store
        self.objects = Objects(store)
        self.dirty: set[Key] = set()
        self.watch = Watch(WATCHED, self.dirty.add)
        self.writer = StatusWriter(cluster)
        self.recorder = Recorder(cluster, lambda: "2026-11-18T10:00:00Z", "op")
        self.playbooks = Playbooks(cluster, self.watch, self.writer, lambda: "2026-11-18T10:00:00Z")
        self.children = KubeChildren(store, self.objects, cluster, self.playbooks)
        self.resync = Resync(
            cluster,
            self.watch,
            self.objects,
            self.writer,
            self.dirty.add,
            watched=WATCHED,
            namespaces=(),
        )

    def begin(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.executions = Executions(
            Parts(
                plane=plane,
                objects=self.objects,
                cluster=self.cluster,
                watch=self.watch,
                playbooks=self.playbooks,
                writer=self.writer,
                recorder=self.recorder,
                troubles=lambda execution_id: {},
            ),
            self.dirty.add,
        )

    async def look(self, *, everything: bool = False) -> None:
        """Compare with the cluster and act until nothing is left to do."""
        await self.resync.once(everything=everything)
        while self.dirty:
            key = self.dirty.pop()
            if key.kind is PLAYBOOK:
                await self.playbooks.reconcile(key)
            else:
                await self.executions.reconcile(key)

    async def shows(self, name: str, phase: str) -> Object:
        """The status, once it says so."""

        def status() -> Object:
            found: Object = self.cluster.objects[execution_key(name)].get("status") or {}
            return found

        await self.cluster.until(lambda: status().get("phase") == phase)
        return status()


def execution_key(name: str) -> Key:
    return Key(EXECUTION, NAMESPACE, name)


def put_playbook(cluster: FakeCluster, name: str, *steps: Object) -> Object:
    meta = {"name": name, "namespace": NAMESPACE}
    return cluster.put(PLAYBOOK, {"metadata": meta, "spec": {"workflow": list(steps)}})


def put_execution(cluster: FakeCluster, name: str, playbook: str = "p", **spec: object) -> Object:
    meta = {"name": name, "namespace": NAMESPACE}
    whole = {"playbookRef": {"name": playbook}, **spec}
    return cluster.put(EXECUTION, {"metadata": meta, "spec": whole})


@contextlib.asynccontextmanager
async def kube_stand(uri: str, cluster: FakeCluster) -> AsyncIterator[KubeStand]:
    """A process from its start to its end."""
    settings = OperatorSettings(sweep_interval_s=0.05)
    async with contextlib.AsyncExitStack() as stack:
        store = await stack.enter_async_context(PostgresStore.connect(uri, connections=4))
        made = KubeStand(cluster, store)
        plane = await stack.enter_async_context(
            control_plane(store, made.children, settings, shard=0, holder="op")
        )
        await plane.sweeper.led.wait()
        made.begin(plane)
        writing = asyncio.create_task(made.writer.run())
        try:
            yield made
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
