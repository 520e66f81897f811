"""Execution objects: each is brought to what its spec asks for, and told what became of it.

Reconciling one is: gather what is known, let `plan.decide` say what to do, do it, and look again
until nothing is left to do. Commits of the router tell in between what has moved: those only renew
the status. Called by the queue, the router's observers and the rooms about Pods.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from noetl_core.engine.state import Phase, State
from noetl_core.engine.triggers import Cancel, CancelMode, Patch, Verdict
from noetl_core.execution import ConditionStatus, ExecutionSpec
from noetl_operator.control import ControlPlane
from noetl_operator.kube import plan, port
from noetl_operator.kube.beginning import Beginnings
from noetl_operator.kube.playbooks import Playbooks
from noetl_operator.kube.port import (
    EXECUTION_ID,
    Cluster,
    Key,
    Object,
    generation_of,
    uid_of,
)
from noetl_operator.kube.project import Verdict as Answer
from noetl_operator.kube.project import execution_status, idle_status, with_fault
from noetl_operator.kube.recorder import Happening, Recorder, happenings
from noetl_operator.kube.status import StatusWriter
from noetl_operator.kube.tracked import Tracked, about_of
from noetl_operator.kube.watch import Watch
from noetl_operator.live import UnknownExecution
from noetl_operator.router import Committed
from noetl_operator.starting import new_execution_id, start_of
from noetl_operator.store.objects import Link, Objects, View
from noetl_operator.store.port import NewExecution

_log = logging.getLogger(__name__)

ROUNDS = 8
"""How often one turn gathers and acts before it lets others go first."""
RESTLESS_S = 5.0
"""The pause after a turn that found no end."""
CHILDREN_S = 10.0
"""The pause before a finished Execution whose children still run is looked at again."""

Troubles = Callable[[str], Mapping[str, str]]
"""Of an execution: what holds up the Pods of its steps, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What reconciling needs."""

    plane: ControlPlane
    objects: Objects
    cluster: Cluster
    watch: Watch
    playbooks: Playbooks
    writer: StatusWriter
    recorder: Recorder
    troubles: Troubles
    shard: int = 0


class Executions:
    """All Executions of the cluster."""

    def __init__(self, parts: Parts, poke: Callable[[Key], None]) -> None:
        self._parts, self._poke = parts, poke
        self._beginnings = Beginnings(
            parts.plane.clock, parts.objects, parts.playbooks, parts.shard
        )
        self._tracked: dict[str, Tracked] = {}
        self._waiting: dict[tuple[str, str], set[Key]] = defaultdict(set)
        self._refused: dict[str, frozenset[str]] = {}
        parts.plane.router.observers.append(self.committed)
        parts.playbooks.changed.append(self._playbook_changed)

    # What the log says

    def committed(self, committed: Committed) -> None:
        """An execution moved on."""
        tracked = self._tracked.get(committed.execution.request.execution_id)
        if tracked is None:
            return
        facts = [event.fact for event in committed.transition.events]
        self._parts.recorder.note(tracked.key, tracked.uid, happenings(facts))
        tracked.learn(committed.transition.state)
        self._want(tracked, None)
        if tracked.state.phase.is_final:
            self._poke(tracked.key)

    def refresh(self, execution_id: str) -> None:
        """Something about its Pods has changed."""
        if (tracked := self._tracked.get(execution_id)) is not None:
            self._poke(tracked.key)

    def tracked(self, execution_id: str) -> Tracked | None:
        return self._tracked.get(execution_id)

    def _want(self, tracked: Tracked, there: Object | None) -> None:
        def make() -> Object:
            troubles = self._parts.troubles(tracked.about.execution_id)
            status = execution_status(tracked.about, tracked.state, troubles)
            return with_fault(status, tracked.fault, tracked.about)

        soon = tracked.state.phase.is_final
        self._parts.writer.want(tracked.key, tracked.uid, make, there, soon=soon)

    def _playbook_changed(self, key: Key) -> None:
        for waiting in self._waiting.pop((key.namespace, key.name), ()):
            self._poke(waiting)

    # What the spec asks for

    async def reconcile(self, key: Key) -> float | None:
        """Bring one Execution to what it asks for."""
        for _ in range(ROUNDS):
            seen = await self._gather(key)
            found = plan.decide(seen)
            idle = found.idle
            for act in found.acts:
                idle = await self._do(act, key, seen) or idle
            if idle is not None or not found.acts:
                self._tell(key, seen, idle)
                return found.again_s
            if any(isinstance(act, plan.Remove) for act in found.acts):
                return CHILDREN_S if self._parts.watch.get(key) is not None else None
        return RESTLESS_S

    async def quarantine(self, key: Key, error: Exception) -> None:
        """Reconciling it fails again and again: say so on the object."""
        said = f"the operator cannot handle this object ({type(error).__name__}); its log says more"
        tracked = next((one for one in self._tracked.values() if one.key == key), None)
        if tracked is not None:
            tracked.fault = said
            self._want(tracked, None)
        elif (obj := self._parts.watch.get(key)) is not None:
            why = Answer(ConditionStatus.UNKNOWN, "Quarantined", said)
            self._idle(key, obj, plan.Idle(Phase.PENDING, why))

    async def _gather(self, key: Key) -> plan.Seen:
        parts = self._parts
        obj = parts.watch.get(key)
        if obj is None:
            obj = await self._fetched(key)
        links = await parts.objects.links(key.namespace, key.name)
        if obj is None:
            return plan.Seen(object=None, others=tuple(links), now=parts.plane.clock.now())
        uid = uid_of(obj)
        read = plan.read_spec(obj)
        link = next((one for one in links if one.uid == uid), None)
        if link is None and not obj["metadata"].get("deletionTimestamp"):
            link = await self._known(key, obj)
        return plan.Seen(
            object=obj,
            spec=read.spec,
            problems=read.problems,
            link=link,
            others=tuple(one for one in links if one.uid != uid),
            view=None if link is None else await parts.objects.view(link.execution_id),
            now=parts.plane.clock.now(),
            refused=self._refused.get(uid, frozenset()),
        )

    async def _fetched(self, key: Key) -> Object | None:
        """The watch may be behind: only the API server knows that an object is not there."""
        try:
            return await self._parts.cluster.get(key)
        except port.NotFound:
            return None

    async def _known(self, key: Key, obj: Object) -> Link | None:
        """The record of an object that is new to us: a child that its parent asked for, or one that
        was removed when its time was over and is there again."""
        objects, uid, about = self._parts.objects, uid_of(obj), plan.spec_key(obj)
        asked = (obj["metadata"].get("annotations") or {}).get(EXECUTION_ID)
        if asked is not None:
            view = await objects.view(asked)
            if view is not None and (view.namespace, view.name) == (key.namespace, key.name):
                return await objects.link(_link(key, uid, asked, about, None))
        return await objects.adopt(key.namespace, about, uid)

    async def _do(self, act: plan.Act, key: Key, seen: plan.Seen) -> plan.Idle | None:
        match act:
            case plan.Abandon(link):
                await self._abandon(key, link)
            case plan.Begin():
                return await self._begin(key, seen)
            case plan.Tell(trigger):
                assert seen.link is not None
                decision = await self._parts.plane.router.apply(seen.link.execution_id, trigger)
                if isinstance(trigger, Patch) and decision.verdict is not Verdict.ACCEPTED:
                    self._refuse(key, seen.link.uid, trigger.id, decision.message or "")
            case plan.Remove():
                await self._remove(key, seen)
        return None

    def _refuse(self, key: Key, uid: str, patch: str, why: str) -> None:
        self._refused[uid] = self._refused.get(uid, frozenset()) | {patch}
        said = f"patch {patch} of ctx was not applied: {why}"
        self._parts.recorder.note(key, uid, [Happening("Warning", "PatchRefused", said, patch)])

    async def _abandon(self, key: Key, link: Link) -> None:
        """End an execution whose object was deleted; then its name is free."""
        wish = Cancel(mode=CancelMode.NOW, by="whoever deleted the Execution")
        view = await self._parts.objects.view(link.execution_id)
        if view is not None and not view.state.phase.is_final:
            if not view.state.seq:
                await self._start_stored(link.execution_id)
            try:
                await self._parts.plane.router.apply(link.execution_id, wish)
            except UnknownExecution:
                _log.warning("%s has no log", key)
        await self._parts.objects.unlink(link.uid)
        self._tracked.pop(link.execution_id, None)
        self._refused.pop(link.uid, None)
        if self._parts.watch.get(key) is None:
            self._parts.writer.forget(key)

    async def _remove(self, key: Key, seen: plan.Seen) -> None:
        assert seen.link is not None
        if await self._parts.objects.live_children(seen.link.execution_id):
            # They are owned by this object and would go with it.
            return
        # First the record, then the object: what is made again later must find it.
        await self._parts.objects.removed(seen.link.uid)
        try:
            await self._parts.cluster.delete(key, uid=seen.link.uid)
        except (port.NotFound, port.Conflict):
            _log.info("%s was gone already", key)
        self._parts.watch.forget(key)
        self._parts.writer.forget(key)
        self._tracked.pop(seen.link.execution_id, None)
        self._refused.pop(seen.link.uid, None)

    # The beginning

    async def _begin(self, key: Key, seen: plan.Seen) -> plan.Idle | None:
        """Register and start; or say what it waits for."""
        assert seen.object is not None
        assert seen.spec is not None
        if seen.view is not None and seen.link is not None:
            self._track(key, seen.object, seen.link, seen.view)
            await self._start_stored(seen.view.execution_id)
            return None
        try:
            judged = await self._beginnings.judged(key, seen.spec)
        except port.NotFound:
            return self._wait_for_playbook(key, seen.spec)
        new = new_execution_id(self._parts.plane.clock.now())
        about = plan.spec_key(seen.object)
        link = seen.link or await self._parts.objects.link(
            _link(key, uid_of(seen.object), new, about, judged.generation)
        )
        request = await self._beginnings.request(key, seen.spec, judged, link)
        self._track(key, seen.object, link, _new_view(request))
        await self._parts.plane.start(request)
        return None

    async def _start_stored(self, execution_id: str) -> None:
        """Start one that was registered by a process which then died."""
        snapshot = await self._parts.plane.store.load(execution_id)
        if snapshot is not None:
            await self._parts.plane.router.apply(execution_id, start_of(snapshot.request))

    def _wait_for_playbook(self, key: Key, spec: ExecutionSpec) -> plan.Idle:
        assert spec.playbookRef is not None
        name = spec.playbookRef.name
        self._waiting[key.namespace, name].add(key)
        said = f"there is no Playbook {name} in the namespace {key.namespace}; it is waited for"
        return plan.Idle(Phase.PENDING, Answer(ConditionStatus.FALSE, "PlaybookNotFound", said))

    # What it is told

    def _track(self, key: Key, obj: Object, link: Link, view: View) -> Tracked:
        about = about_of(obj, link, view)
        tracked = self._tracked.get(view.execution_id)
        if tracked is None or tracked.uid != link.uid:
            tracked = Tracked(key, link.uid, about, view.state)
            self._tracked[view.execution_id] = tracked
        tracked.about, tracked.fault = about, None
        tracked.learn(view.state)
        return tracked

    def _tell(self, key: Key, seen: plan.Seen, idle: plan.Idle | None) -> None:
        """Renew the status with what is known after acting."""
        if seen.object is None:
            if self._parts.watch.get(key) is None:
                self._parts.writer.forget(key)
        elif idle is not None:
            self._idle(key, seen.object, idle)
        elif seen.link is not None and seen.view is not None:
            tracked = self._track(key, seen.object, seen.link, seen.view)
            self._want(tracked, seen.object.get("status"))

    def _idle(self, key: Key, obj: Object, idle: plan.Idle) -> None:
        since = obj["metadata"]["creationTimestamp"]
        made = idle_status(generation_of(obj), since, idle.phase, idle.why)
        self._parts.writer.want(key, uid_of(obj), lambda: made, obj.get("status"), soon=True)


def _link(key: Key, uid: str, execution_id: str, about: str, generation: int | None) -> Link:
    return Link(
        uid=uid,
        execution_id=execution_id,
        namespace=key.namespace,
        name=key.name,
        spec_key=about,
        playbook_generation=generation,
    )


def _new_view(request: NewExecution) -> View:
    return View(
        execution_id=request.execution_id,
        namespace=request.namespace,
        name=request.name,
        playbook=request.playbook_name,
        digest=request.digest,
        problems=tuple(one for one in request.problems if isinstance(one, dict)),
        state=State(execution_id=request.execution_id),
    )
