"""The operator's process, put together: settings, store, control plane, Kubernetes, ingest.

`python -m noetl_operator` runs it until it is told to stop. Several replicas may run: each watches,
one leads and acts, the others take over when it falls silent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any

from noetl_core.engine.clock import iso
from noetl_core.model import Playbook
from noetl_core.problems import Problem
from noetl_operator import health
from noetl_operator.control import ControlPlane, control_plane
from noetl_operator.ingest.web import IngestWeb, serving
from noetl_operator.kube import port
from noetl_operator.kube.allow import refusals
from noetl_operator.kube.briefs import Briefs
from noetl_operator.kube.children import KubeChildren
from noetl_operator.kube.client import KubeClient
from noetl_operator.kube.executions import Executions, Parts
from noetl_operator.kube.launch import Launcher
from noetl_operator.kube.launch import Parts as LaunchParts
from noetl_operator.kube.manifests import SELECTOR
from noetl_operator.kube.peers import KubePeers
from noetl_operator.kube.playbooks import Playbooks
from noetl_operator.kube.port import EXECUTION, JOB, PLAYBOOK, POD, Key
from noetl_operator.kube.queue import DirtyQueue
from noetl_operator.kube.recorder import Recorder
from noetl_operator.kube.resync import Resync
from noetl_operator.kube.status import StatusWriter, is_passing
from noetl_operator.kube.watch import Watch, Watched
from noetl_operator.settings import OperatorSettings
from noetl_operator.store.objects import Objects
from noetl_operator.store.port import Unavailable
from noetl_operator.store.postgres import PostgresStore
from noetl_operator.store.queues import Queues

_log = logging.getLogger(__name__)

SHARD = 0
"""The one shard of the cluster's executions."""
RETRY_S = 1.0


async def serve(settings: OperatorSettings) -> None:
    """Run until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    async with operator(settings):
        _log.info("the operator runs as %s", settings.name)
        await stop.wait()
        _log.info("the operator stops")


@contextlib.asynccontextmanager
async def operator(settings: OperatorSettings) -> AsyncIterator[Operator]:
    """A running operator."""
    async with contextlib.AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(KubeClient.connect(settings.kubeconfig))
        store = await _database(stack, settings)
        made = Operator(settings, cluster, store)
        plane = await stack.enter_async_context(
            control_plane(store, made.children, settings, shard=SHARD, holder=settings.name)
        )
        await made.resources_known()
        made.begin(plane)
        stack.push_async_callback(made.end)
        web = IngestWeb(plane.ingest, made.peers, settings).application()
        await stack.enter_async_context(serving(web, settings.listen, settings.port))
        probes = health.application(*made.checks())
        await stack.enter_async_context(serving(probes, settings.listen, settings.health_port))
        yield made


async def _database(stack: contextlib.AsyncExitStack, settings: OperatorSettings) -> PostgresStore:
    """The store, as soon as the database answers."""
    while True:
        connecting = PostgresStore.connect(settings.dsn(), connections=settings.connections)
        try:
            return await stack.enter_async_context(connecting)
        except Unavailable as error:
            _log.warning("the database is waited for: %s", error)
            await asyncio.sleep(RETRY_S)


class Operator:
    """The Kubernetes side of one process."""

    def __init__(
        self, settings: OperatorSettings, cluster: KubeClient, store: PostgresStore
    ) -> None:
        self.settings, self.cluster, self.store = settings, cluster, store
        self.objects = Objects(store)
        self.watched = [Watched(PLAYBOOK), Watched(EXECUTION)]
        if settings.workers is not None:
            self.watched += [Watched(POD, SELECTOR), Watched(JOB, SELECTOR)]
        self.queue: DirtyQueue[Key] = DirtyQueue(
            self._reconcile, is_passing=is_passing, quarantine=self._quarantine
        )
        self.watch = Watch(
            self.watched,
            self._changed,
            namespaces=settings.namespaces,
            kubeconfig=settings.kubeconfig,
        )
        self.writer = StatusWriter(cluster, self._leads)
        self.playbooks = Playbooks(cluster, self.watch, self.writer, _now, self._refuse)
        self.children = KubeChildren(store, self.objects, cluster, self.playbooks)
        self.peers = KubePeers(cluster, self.watch, self.objects)
        self.recorder = Recorder(cluster, _now, settings.name)
        self.executions: Executions | None = None
        self.launcher: Launcher | None = None
        self._plane: ControlPlane | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def resources_known(self) -> None:
        """The CRDs may come a moment later than the operator."""
        while True:
            try:
                for one in (PLAYBOOK, EXECUTION):
                    for namespace in self.settings.namespaces or (None,):
                        await self.cluster.list(one, namespace)
            except port.ClusterError as error:
                _log.warning("the resources are waited for: %s", error)
                await asyncio.sleep(RETRY_S)
            else:
                return

    def begin(self, plane: ControlPlane) -> None:
        """Watch and act."""
        self._plane = plane
        self.launcher = self._launcher(plane)
        self.executions = Executions(
            Parts(
                plane=plane,
                objects=self.objects,
                cluster=self.cluster,
                watch=self.watch,
                playbooks=self.playbooks,
                writer=self.writer,
                recorder=self.recorder,
                troubles=self._troubles,
                shard=SHARD,
            ),
            self.queue.poke,
        )
        resync = Resync(
            self.cluster,
            self.watch,
            self.objects,
            self.writer,
            self._changed,
            watched=self.watched,
            namespaces=self.settings.namespaces,
        )
        self.watch.start()
        self._run("queue", self.queue.run())
        self._run("status", self.writer.run())
        self._run("events", self.recorder.run())
        if self.launcher is not None:
            self._run("launcher", self.launcher.run())
        self._run("resync", resync.run(lambda: plane.router.leads, self.settings.resync_s))

    def _launcher(self, plane: ControlPlane) -> Launcher | None:
        """Whoever has the worker Pods made; without their looks, somebody else does."""
        workers = self.settings.workers
        if workers is None:
            return None
        parts = LaunchParts(
            cluster=self.cluster,
            seen=self.watch,
            store=self.store,
            queue=Queues(self.store),
            router=plane.router,
            live=plane.live,
            ingest=plane.ingest,
            briefs=Briefs(plane.live, self.objects, self.watch, self.playbooks, workers),
            workers=workers,
            shard=SHARD,
        )
        return Launcher(parts, self._troubled)

    def _changed(self, key: Key) -> None:
        if key.kind not in (POD, JOB):
            self.queue.poke(key)
        elif self.launcher is not None:
            self.launcher.poke()

    def _refuse(self, playbook: Playbook) -> list[Problem]:
        workers = self.settings.workers
        return [] if workers is None else refusals(playbook, workers, "spec.")

    def _troubles(self, execution_id: str) -> Mapping[str, str]:
        return {} if self.launcher is None else self.launcher.troubles.of(execution_id)

    def _troubled(self, execution_id: str) -> None:
        if self.executions is not None:
            self.executions.refresh(execution_id)

    def _run(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(_died)
        self._tasks.append(task)

    async def end(self) -> None:
        await self.watch.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _leads(self) -> bool:
        return self._plane is not None and self._plane.router.leads

    async def _reconcile(self, key: Key) -> float | None:
        # What is left out while another process leads is looked at when this one begins to.
        if self.executions is None or not self._leads():
            return None
        if key.kind is PLAYBOOK:
            await self.playbooks.reconcile(key)
            return None
        return await self.executions.reconcile(key)

    async def _quarantine(self, key: Key, error: Exception) -> None:
        if key.kind is PLAYBOOK:
            await self.playbooks.quarantine(key, error)
        elif self.executions is not None:
            await self.executions.quarantine(key, error)

    def checks(self) -> tuple[dict[str, health.Check], dict[str, health.Check]]:
        """Whether it lives, and whether it is of use."""

        async def parts() -> bool:
            return not any(task.done() for task in self._tasks)

        async def watch() -> bool:
            return self.watch.is_alive

        async def database() -> bool:
            return bool(await self.store.now())

        return {"parts": parts, "watch": watch}, {"parts": parts, "database": database}


def _died(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("%s ended", task.get_name(), exc_info=error)


def _now() -> str:
    return iso(datetime.now(UTC))
