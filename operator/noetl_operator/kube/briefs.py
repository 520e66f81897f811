"""What a pool's Pods are made from: whose they are, how they look, which Secrets they need.

`launch` asks for each pool that has something to do. Answers are kept: an execution's playbook
never changes, and neither does the object it belongs to.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Protocol

from noetl_core.model import ExecutorKind, KeychainEntry, Playbook, PoolScope
from noetl_operator.kube import port
from noetl_operator.kube.allow import Shape, Workers, placement_of, shape_of
from noetl_operator.kube.manifests import Order, Owner
from noetl_operator.kube.pools import PoolName, Scope, shared_pool
from noetl_operator.kube.port import EXECUTION, PLAYBOOK, Key, Kind, Object
from noetl_operator.live import Execution, Live
from noetl_operator.store.objects import Link


class Seen(Protocol):
    """The objects of the cluster as they were last seen."""

    def get(self, key: Key) -> Object | None: ...

    def every(self, kind: Kind) -> list[Object]: ...


class Links(Protocol):
    async def of(self, execution_id: str) -> Link | None:
        """The object that an execution belongs to."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A Playbook that may have Pods of its own: as it is now, and what it is worth."""

    obj: Object
    playbook: Playbook
    digest: str


class Library(Protocol):
    """Playbook objects, checked."""

    async def shared(self, obj: Object) -> Shared | None:
        """None: it may not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """Everything about a pool's Pods that is the same for all of them."""

    pool: str
    namespace: str
    stem: str
    """What the Pods' names begin with."""
    owner: Owner
    shape: Shape
    keychain: tuple[KeychainEntry, ...]
    playbook: str
    execution: str | None
    execution_id: str | None
    step: str | None

    def order(self, name: str) -> Order:
        return Order(
            name=name,
            namespace=self.namespace,
            pool=self.pool,
            owner=self.owner,
            shape=self.shape,
            keychain=self.keychain,
            playbook=self.playbook,
            execution=self.execution,
            execution_id=self.execution_id,
            step=self.step,
        )

    def order_one(self, name: str, step: str | None, lease_id: str) -> Order:
        """For one command; the Pod serves that and ends."""
        return replace(self.order(name), step=step, lease_id=lease_id)


class Briefs:
    """Finds and keeps them."""

    def __init__(
        self, live: Live, links: Links, seen: Seen, library: Library, workers: Workers
    ) -> None:
        self._live, self._links, self._seen = live, links, seen
        self._library, self._workers = library, workers
        self._kept: dict[str, Brief] = {}
        self._warm: dict[str, tuple[object, bool]] = {}

    async def of(self, pool: str, execution_id: str | None) -> Brief | None:
        """`execution_id` is one that has something to do there. None: nobody owns it any more, or
        the pool is not one of ours."""
        kept = self._kept.get(pool)
        if kept is not None and self._is_owned(kept):
            return kept
        name = PoolName.parse(pool)
        if name is None:
            return None
        made = await self._make(name, execution_id)
        if made is not None:
            self._kept[pool] = made
        return made

    def keep_only(self, pools: Collection[str]) -> None:
        for pool in [pool for pool in self._kept if pool not in pools]:
            del self._kept[pool]

    def _is_owned(self, brief: Brief) -> bool:
        """Whether the owner is still the object it was."""
        kind = PLAYBOOK if brief.owner.kind == PLAYBOOK.name else EXECUTION
        there = self._seen.get(Key(kind, brief.namespace, brief.owner.name))
        return there is not None and port.uid_of(there) == brief.owner.uid

    async def _make(self, name: PoolName, execution_id: str | None) -> Brief | None:
        if name.scope is Scope.PLAYBOOK:
            shared = self._seen.get(Key(PLAYBOOK, name.namespace, name.playbook))
            if shared is not None:
                return await self._of_playbook(name, shared, execution_id)
        wanted = name.execution_id or execution_id
        if wanted is None:
            return None
        link = await self._links.of(wanted)
        if link is None:
            return None
        execution = await self._live.get(wanted)
        owner = Owner(EXECUTION.api_version, EXECUTION.name, link.name, link.uid)
        return self._brief(name, owner, execution.program.playbook, execution)

    async def _of_playbook(
        self, name: PoolName, obj: Object, execution_id: str | None
    ) -> Brief | None:
        """Its Pods are the Playbook's own, made from the playbook as it was when the execution
        began, or as it is now where none waits for them."""
        owner = Owner(PLAYBOOK.api_version, PLAYBOOK.name, name.playbook, port.uid_of(obj))
        if execution_id is not None:
            execution = await self._live.get(execution_id)
            return self._brief(name, owner, execution.program.playbook, None)
        shared = await self._library.shared(obj)
        if shared is None or str(_pool(name, shared)) != str(name):
            return None
        return self._brief(name, owner, shared.playbook, None)

    def _brief(
        self, name: PoolName, owner: Owner, playbook: Playbook | None, execution: Execution | None
    ) -> Brief | None:
        if playbook is None:
            return None
        step = next((one for one in playbook.workflow if one.step == name.step), None)
        request = execution.request if execution is not None else None
        return Brief(
            pool=str(name),
            namespace=request.namespace if request else name.namespace,
            stem=request.name if request else name.playbook,
            owner=owner,
            shape=shape_of(playbook, step, self._workers),
            keychain=playbook.keychain,
            playbook=request.playbook_name if request else name.playbook,
            execution=request.name if request else None,
            execution_id=request.execution_id if request else None,
            step=name.step or None,
        )

    def _may_be_warm(self, obj: Object) -> bool:
        """A look at the text, once per version, so that not every Playbook has to be checked."""
        meta = obj["metadata"]
        kept = self._warm.get(meta["uid"])
        if kept is None or kept[0] != meta.get("resourceVersion"):
            kept = meta.get("resourceVersion"), "'min':" in str(obj.get("spec"))
            self._warm[meta["uid"]] = kept
        return kept[1] and not meta.get("deletionTimestamp")

    async def warm(self) -> list[str]:
        """The pools that have Pods even while nothing is to be done."""
        found: list[str] = []
        objects = self._seen.every(PLAYBOOK)
        there = {port.uid_of(obj) for obj in objects}
        self._warm = {uid: kept for uid, kept in self._warm.items() if uid in there}
        for obj in objects:
            if not self._may_be_warm(obj):
                continue
            shared = await self._library.shared(obj)
            if shared is not None:
                found += _warm_pools(shared, self._workers)
        return found


def _warm_pools(shared: Shared, workers: Workers) -> list[str]:
    meta, playbook = shared.obj["metadata"], shared.playbook
    own = [step for step in playbook.workflow if step.spec.executor is not None]
    found: list[str] = []
    for step in (None, *own):
        kind, scope = placement_of(playbook, step)
        least = shape_of(playbook, step, workers).least
        if kind is ExecutorKind.POOL and scope is PoolScope.PLAYBOOK and least:
            named = step.step if step is not None else ""
            pool = shared_pool(meta["namespace"], meta["name"], shared.digest, named)
            found.append(str(pool))
    return found


def _pool(name: PoolName, shared: Shared) -> PoolName:
    meta = shared.obj["metadata"]
    return shared_pool(meta["namespace"], meta["name"], shared.digest, name.step)
