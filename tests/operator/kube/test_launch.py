"""The launcher's rounds: the queue and the cluster as they are, and what it makes of them.

The cluster, the queue and the engine are small stand-ins that remember what was asked of them; the
real ones are tried together on a real cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from noetl_core.engine.triggers import Enqueue, WorkerLost
from noetl_core.load import load
from noetl_operator.kube import port
from noetl_operator.kube.allow import Workers
from noetl_operator.kube.briefs import Briefs, Shared
from noetl_operator.kube.launch import Launcher, Parts
from noetl_operator.kube.port import EXECUTION, JOB, PLAYBOOK, POD, Key, Kind, Object
from noetl_operator.store.objects import Link
from noetl_operator.store.port import Expired, Leased, NewExecution
from noetl_operator.store.queues import SingleCommand, Waiting

WORKERS = Workers(url="http://noetl", image="worker:1", capacity=2, pool_max=3, idle_s=30)
DIGEST = "sha256:" + "ab" * 32
X, LEASE = "0197f3a0-0000-7000-8000-000000000001", "8a0f6f0e-4f53-5c55-8d3a-3f0f4f1f2f3f"
OWN, SHARED, STEP = f"execution/{X}", "playbook/team/etl/abababababab", f"step/{X}/load"


class FakeCluster:
    """Objects by key, made and removed as asked."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.deleted: list[tuple[Key, int | None]] = []
        self.refusal: port.ClusterError | None = None
        self.lagging = False
        """The watch shows nothing that is new."""
        self._count = 0

    def get(self, key: Key) -> Object | None:
        return self.objects.get(key)

    def every(self, kind: Kind) -> list[Object]:
        if self.lagging:
            return []
        return [obj for key, obj in self.objects.items() if key.kind is kind]

    def put(self, kind: Kind, body: Object) -> Object:
        self._count += 1
        meta = {**body["metadata"], "uid": f"uid-{self._count}", "resourceVersion": self._count}
        made = {"apiVersion": kind.api_version, "kind": kind.name, **body, "metadata": meta}
        self.objects[Key(kind, meta["namespace"], meta["name"])] = made
        return made

    def set_status(self, name: str, status: Object) -> None:
        key = Key(POD, "team", name)
        self._count += 1
        old = self.objects[key]
        meta = {**old["metadata"], "resourceVersion": self._count}
        self.objects[key] = {**old, "metadata": meta, "status": status}

    def runs(self, name: str) -> None:
        self.set_status(name, {"phase": "Running"})

    @property
    def pods(self) -> list[str]:
        return sorted(key.name for key in self.objects if key.kind is POD)


class Api:
    """The same objects as the API server gives them."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    async def get(self, key: Key) -> Object:
        if key not in self._cluster.objects:
            raise port.NotFound(str(key))
        return self._cluster.objects[key]

    async def create(self, kind: Kind, namespace: str, body: Object) -> Object:
        if self._cluster.refusal is not None:
            raise self._cluster.refusal
        if Key(kind, namespace, body["metadata"]["name"]) in self._cluster.objects:
            raise port.Exists("there")
        return self._cluster.put(kind, body)

    async def delete(self, key: Key, *, uid: str | None = None, grace_s: int | None = None) -> None:
        found = await self.get(key)
        assert uid == found["metadata"]["uid"]
        del self._cluster.objects[key]
        self._cluster.deleted.append((key, grace_s))


class FakeQueue:
    """The rows of the queue."""

    def __init__(self) -> None:
        self.rows: list[Waiting] = []
        self.commands: list[SingleCommand] = []
        self.held: dict[tuple[str, str], list[Expired]] = {}
        self.live: set[str] = {X}

    async def demand(self, shard: int) -> list[Waiting]:
        return self.rows

    async def singles(self, shard: int) -> list[SingleCommand]:
        return self.commands

    async def holders(self, shard: int) -> dict[tuple[str, str], int]:
        return {name: len(held) for name, held in self.held.items() if held}

    async def held_by(self, shard: int, namespace: str, worker: str) -> list[Expired]:
        return self.held.get((namespace, worker), [])

    async def unfinished(self, executions: set[str]) -> set[str]:
        return executions & self.live

    def holds(self, pod: str) -> None:
        self.held["team", pod] = [Expired(X, LEASE, 1)]


class FakeRouter:
    def __init__(self, queue: FakeQueue) -> None:
        self.observers: list[Any] = []
        self.leads = True
        self.lost: list[WorkerLost] = []
        self._queue = queue

    async def apply(self, execution_id: str, trigger: WorkerLost) -> None:
        self.lost.append(trigger)
        for held in self._queue.held.values():
            held[:] = [one for one in held if one.lease_id != trigger.lease_id]


class FakeStore:
    """What the operator takes in its own name."""

    def __init__(self) -> None:
        self.leased: list[tuple[str, str | None]] = []

    async def lease(
        self, pool: str, owner: str, limit: int, ttl_s: float, lease_id: str | None = None
    ) -> list[Leased]:
        assert owner == "noetl-operator"
        self.leased.append((pool, lease_id))
        return [
            Leased(execution_id=X, lease_id=lease_id or LEASE, epoch=1, command={}, until="2026")
        ]


class World:
    """Everything around a launcher."""

    def __init__(self, executor: str = "{}", workers: Workers = WORKERS) -> None:
        text = f"""
metadata: {{name: etl}}
executor: {executor}
keychain: [{{name: db, kind: secret}}]
workflow:
- {{step: load, tool: {{kind: noop}}}}
"""
        (loaded,) = load(text)
        assert loaded.playbook is not None, loaded.problems
        self.book = loaded.playbook
        self.time = 1000.0
        self.cluster, self.queue = FakeCluster(), FakeQueue()
        self.router, self.store = FakeRouter(self.queue), FakeStore()
        self.ingest = SimpleNamespace(heard={}, retiring=set())
        self.changed: list[str] = []
        self.execution = self.cluster.put(
            EXECUTION, {"metadata": {"namespace": "team", "name": "nightly"}}
        )
        self.playbook = self.cluster.put(
            PLAYBOOK, {"metadata": {"namespace": "team", "name": "etl"}, "spec": {"min": "'min':"}}
        )
        briefs = Briefs(self, self, self.cluster, self, workers)  # type: ignore[arg-type]
        parts = Parts(
            cluster=Api(self.cluster),  # type: ignore[arg-type]
            seen=self.cluster,
            store=self.store,  # type: ignore[arg-type]
            queue=self.queue,
            router=self.router,  # type: ignore[arg-type]
            live=self,  # type: ignore[arg-type]
            ingest=self.ingest,  # type: ignore[arg-type]
            briefs=briefs,
            workers=workers,
            clock=lambda: self.time,
        )
        self.launcher = Launcher(parts, self.changed.append)

    async def get(self, execution_id: str) -> Any:
        request = NewExecution(
            execution_id=X,
            namespace="team",
            name="nightly",
            playbook_name="etl",
            digest=DIGEST,
            document={},
            workload={},
            pool=self.queue.rows[0].pool if self.queue.rows else OWN,
        )
        steps = {step.step: step for step in self.book.workflow}
        program = SimpleNamespace(playbook=self.book, steps=steps)
        return SimpleNamespace(request=request, program=program)

    async def of(self, execution_id: str) -> Link:
        return Link(
            uid=port.uid_of(self.execution),
            execution_id=X,
            namespace="team",
            name="nightly",
            spec_key="k",
        )

    async def shared(self, obj: Object) -> Shared:
        return Shared(obj, self.book, DIGEST)

    def want(self, waiting: int = 0, held: int = 0, pool: str = OWN) -> None:
        self.queue.rows = [Waiting(pool, X, waiting, held)] if waiting + held else []

    def single(self, epoch: int = 0, owner: str | None = None) -> None:
        self.want(waiting=int(owner is None), held=int(owner is not None), pool=STEP)
        self.queue.commands = [SingleCommand(STEP, X, LEASE, epoch, "load", owner)]

    async def round(self, after_s: float = 0.0) -> Sequence[str]:
        self.time += after_s
        await self.launcher.round()
        return self.cluster.pods

    def serves(self, name: str) -> None:
        self.cluster.runs(name)
        self.ingest.heard[name] = self.time


@pytest.fixture
def world() -> World:
    return World()


async def test_what_waits_brings_pods_that_belong_to_the_execution(world: World) -> None:
    world.want(waiting=3)
    first, second = await world.round()
    made = world.cluster.objects[Key(POD, "team", first)]
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Execution", "nightly")
    assert owner["uid"] == world.execution["metadata"]["uid"]
    assert made["metadata"]["annotations"]["noetl.io/pool"] == OWN
    mounts = made["spec"]["containers"][0]["volumeMounts"]
    assert "/etc/noetl/keychain/db" in [mount["mountPath"] for mount in mounts]
    assert first != second


async def test_a_round_that_changes_nothing_writes_nothing(world: World) -> None:
    world.want(waiting=1)
    before = await world.round()
    assert await world.round() == before
    assert world.cluster.deleted == []


async def test_pods_that_the_watch_does_not_show_yet_are_not_made_twice(world: World) -> None:
    world.want(waiting=1)
    world.cluster.lagging = True
    assert len(await world.round()) == 1
    assert len(await world.round()) == 1


async def test_only_the_leader_acts(world: World) -> None:
    world.want(waiting=1)
    world.router.leads = False
    assert await world.round() == []


async def test_an_idle_pod_goes_after_its_time_and_gets_nothing_more(world: World) -> None:
    world.want(waiting=1)
    (name,) = await world.round()
    world.serves(name)
    world.want(held=1)
    world.queue.holds(name)
    await world.round(after_s=100)
    assert world.cluster.pods == [name]
    world.want()
    world.queue.held.clear()
    world.ingest.heard[name] = world.time
    await world.round()
    assert await world.round(after_s=29) == [name]
    world.ingest.heard[name] = world.time
    assert await world.round(after_s=2) == []
    assert name in world.ingest.retiring
    ((_, grace),) = world.cluster.deleted
    assert grace is None, "it may finish what it got at the last moment"


async def test_an_idle_pod_that_gets_work_at_the_last_moment_stays(world: World) -> None:
    world.want(waiting=1)
    (name,) = await world.round()
    world.serves(name)
    world.want()
    await world.round()

    async def late(shard: int, namespace: str, worker: str) -> list[Expired]:
        assert worker in world.ingest.retiring, "first nothing more is given, then it is looked"
        return [Expired(X, LEASE, 1)]

    world.queue.held_by = late  # type: ignore[method-assign]
    world.ingest.heard[name] = world.time + 31
    assert await world.round(after_s=31) == [name]
    assert name not in world.ingest.retiring


async def test_the_pods_of_an_execution_that_is_over_go_at_once(world: World) -> None:
    world.want(waiting=1)
    (name,) = await world.round()
    world.serves(name)
    world.want()
    world.queue.live.clear()
    assert await world.round() == []


async def test_a_shared_pool_belongs_to_the_playbook_and_outlives_the_execution() -> None:
    world = World("{spec: {pool: {scope: playbook}}}")
    world.want(waiting=1, pool=SHARED)
    (name,) = await world.round()
    meta = world.cluster.objects[Key(POD, "team", name)]["metadata"]
    assert meta["ownerReferences"][0]["uid"] == world.playbook["metadata"]["uid"]
    assert "noetl.io/execution" not in meta["labels"]
    world.serves(name)
    world.want()
    world.queue.live.clear()
    assert await world.round(after_s=5) == [name]


async def test_a_warm_pool_is_there_before_anybody_asks() -> None:
    world = World("{spec: {pool: {scope: playbook, min: 2}}}")
    names = await world.round()
    assert len(names) == 2
    for name in names:
        world.serves(name)
    world.ingest.heard |= dict.fromkeys(names, world.time + 500)
    assert await world.round(after_s=500) == names


async def test_a_pool_of_an_older_playbook_is_not_kept_warm() -> None:
    world = World("{spec: {pool: {scope: playbook, min: 1}}}")
    old = SHARED.replace("abab", "cdcd")
    world.want(waiting=1, pool=old)
    await world.round()
    world.want()
    for name in world.cluster.pods:
        world.serves(name)
    world.ingest.heard |= dict.fromkeys(world.cluster.pods, world.time + 500)
    await world.round()
    await world.round(after_s=31)
    (left,) = world.cluster.every(POD)
    assert left["metadata"]["annotations"]["noetl.io/pool"] == SHARED


ENDED = {
    "phase": "Failed",
    "containerStatuses": [
        {"name": "worker", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    ],
}


async def test_what_an_ended_pod_held_is_lost_at_once_with_its_reason(world: World) -> None:
    world.want(waiting=1)
    (name,) = await world.round()
    world.serves(name)
    world.want(held=1)
    world.queue.holds(name)
    world.cluster.set_status(name, ENDED)
    await world.round()
    (lost,) = world.router.lost
    assert (lost.lease_id, lost.epoch, lost.nowhere) == (LEASE, 1, False)
    assert lost.reason == f"it ran out of memory (OOMKilled) (Pod {name})"


async def test_what_a_pod_held_that_is_gone_is_lost(world: World) -> None:
    world.queue.holds("vanished")
    await world.round()
    (lost,) = world.router.lost
    assert lost.reason == "the Pod vanished is gone"
    await world.round(after_s=60)
    assert "vanished" in world.ingest.retiring, "its process may live on: it gets nothing more"


async def test_a_pod_that_only_the_watch_misses_is_not_lost(world: World) -> None:
    world.want(waiting=1)
    (name,) = await world.round()
    world.serves(name)
    world.want(held=1)
    world.queue.holds(name)
    world.cluster.lagging = True
    await world.round(after_s=60)
    assert world.router.lost == []


UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes are available",
        }
    ],
}


async def test_what_holds_up_a_pod_is_told_and_bounded(world: World) -> None:
    world.want(waiting=1)
    (name,) = await world.round()
    world.cluster.set_status(name, UNSCHEDULABLE)
    await world.round(after_s=1)
    words = f"no node takes the Pod: 0/1 nodes are available (Pod {name})"
    assert world.launcher.troubles.of(X) == {"": words, "load": words}
    assert world.changed == [X]
    await world.round(after_s=1)
    assert world.changed == [X], "told once"
    await world.round(after_s=WORKERS.pending_timeout_s)
    (lost,) = world.router.lost
    assert lost.nowhere
    assert lost.reason == f"no Pod was ready within 300 s: {words}"
    assert world.store.leased == [(OWN, None)]
    assert world.cluster.pods == []


async def test_a_trouble_that_is_over_is_told_as_well(world: World) -> None:
    world.want(waiting=1)
    (name,) = await world.round()
    world.cluster.set_status(name, UNSCHEDULABLE)
    await world.round()
    world.serves(name)
    await world.round()
    assert world.launcher.troubles.of(X) == {}
    assert world.changed == [X, X]


async def test_a_pod_that_the_api_server_never_takes_fails_its_commands(world: World) -> None:
    world.want(waiting=1)
    world.cluster.refusal = port.Refused("quantities must match")
    await world.round()
    (lost,) = world.router.lost
    assert lost.nowhere
    assert "quantities must match" in lost.reason


async def test_a_pod_that_may_not_be_made_now_is_tried_again_later(world: World) -> None:
    world.want(waiting=1)
    world.cluster.refusal = port.Denied("exceeded quota")
    await world.round()
    assert world.router.lost == []
    assert "exceeded quota" in world.launcher.troubles.of(X)["load"]
    world.cluster.refusal = None
    assert await world.round() == [], "not at once"
    assert len(await world.round(after_s=2)) == 1


async def test_pods_that_end_at_once_are_made_ever_more_slowly(world: World) -> None:
    world.want(waiting=1)
    made = 0
    for _ in range(60):
        for name in await world.round(after_s=1):
            made += 1
            world.cluster.set_status(name, ENDED)
    assert 3 <= made <= 8


async def test_a_pod_that_runs_and_never_calls_is_replaced(world: World) -> None:
    world.want(waiting=1)
    (name,) = await world.round()
    world.cluster.runs(name)
    await world.round()
    await world.round(after_s=61)
    assert Key(POD, "team", name) in [key for key, _ in world.cluster.deleted]


# Commands with a Pod or Job of their own


async def test_a_command_of_kind_pod_has_a_pod_of_its_own() -> None:
    world = World("{kind: pod}")
    world.single()
    (name,) = await world.round()
    assert name == "nightly-load-8a0f6f0e4f53-1"
    made = world.cluster.objects[Key(POD, "team", name)]
    told = {one["name"]: one.get("value") for one in made["spec"]["containers"][0]["env"]}
    assert (told["NOETL_LEASE"], told["NOETL_POOL"]) == (LEASE, STEP)
    assert made["metadata"]["labels"]["noetl.io/step"] == "load"
    world.single(epoch=1, owner=name)
    world.queue.holds(name)
    assert await world.round() == [name]
    world.want()
    world.queue.commands = []
    world.queue.held.clear()
    assert await world.round() == []


async def test_a_command_delivered_again_gets_another_pod() -> None:
    world = World("{kind: pod}")
    world.single()
    await world.round()
    world.single(epoch=1)
    await world.round()
    assert world.cluster.pods == ["nightly-load-8a0f6f0e4f53-2"]


async def test_a_pod_that_ended_before_it_took_its_command_counts_as_lost() -> None:
    world = World("{kind: pod}")
    world.single()
    (name,) = await world.round()
    world.cluster.set_status(name, ENDED)
    await world.round()
    (lost,) = world.router.lost
    assert (lost.lease_id, lost.nowhere) == (LEASE, False)
    assert "OOMKilled" in lost.reason
    assert world.store.leased == [(STEP, LEASE)]


async def test_waiting_for_a_pod_of_its_own_is_bounded() -> None:
    world = World("{kind: pod}")
    world.single()
    (name,) = await world.round()
    world.cluster.set_status(name, UNSCHEDULABLE)
    await world.round(after_s=1)
    assert "0/1 nodes" in world.launcher.troubles.of(X)["load"]
    await world.round(after_s=301)
    (lost,) = world.router.lost
    assert lost.nowhere
    assert "no Pod was ready within 300 s" in lost.reason


async def test_a_command_of_kind_job_has_a_job_and_its_end_is_left_to_kubernetes() -> None:
    world = World("{kind: job}")
    world.single()
    await world.round()
    await world.round()
    (key,) = [key for key in world.cluster.objects if key.kind is JOB]
    assert world.cluster.pods == []
    world.want()
    world.queue.commands = []
    done = world.cluster.objects[key]
    done["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    await world.round()
    assert key in world.cluster.objects


async def test_a_job_whose_command_was_cancelled_is_removed() -> None:
    world = World("{kind: job}")
    world.single()
    await world.round()
    world.want()
    world.queue.commands = []
    await world.round()
    assert [key.kind for key, _ in world.cluster.deleted] == [JOB]


async def test_new_commands_that_nobody_holds_wake_it(world: World) -> None:
    def committed(*leases: str, handed: frozenset[str] = frozenset()) -> Any:
        queued = [Enqueue(lease_id=one, run_id=one, step="load", args={}) for one in leases]
        state = SimpleNamespace(phase=SimpleNamespace(is_final=False))
        moved = SimpleNamespace(enqueue=queued, requeue=(), revoke=(), state=state)
        return SimpleNamespace(transition=moved, handed=handed)

    (observer,) = world.router.observers
    observer(committed("a", handed=frozenset(["a"])))
    assert not world.launcher._wake.is_set()
    observer(committed("a"))
    assert world.launcher._wake.is_set()
