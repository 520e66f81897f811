"""The worker Pods that are there, and what is remembered of them between two looks.

The watch shows Pods a moment after they were made: those just made count as well. How long a Pod
has been idle, silent or unable to start is known to this process only; after a restart the time
begins anew, which costs nothing but patience.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from noetl_operator.kube import pods
from noetl_operator.kube.pods import PodView, Stage
from noetl_operator.kube.port import Key, Object, uid_of

BELIEVED_S = 10.0
"""How long a Pod that was made is believed to be there without having been seen."""
SILENT_S = 60.0
"""How long a worker that runs may not call before it counts as gone."""

Name = tuple[str, str]
"""Namespace and name."""


@dataclass(slots=True)
class Since:
    """Since when something is so, by key."""

    clock: Callable[[], float]
    _begun: dict[object, float] = field(default_factory=dict)

    def note(self, key: object, holds: bool) -> float:
        """For how many seconds it has held without a break."""
        if not holds:
            self._begun.pop(key, None)
            return 0.0
        now = self.clock()
        return now - self._begun.setdefault(key, now)

    def keep_only(self, keys: Collection[object]) -> None:
        for key in [key for key in self._begun if key not in keys]:
            del self._begun[key]

    def clear(self) -> None:
        self._begun.clear()


class Crew:
    """All worker Pods, judged."""

    def __init__(
        self, heard: Mapping[str, float], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._heard, self._clock = heard, clock
        self._made: dict[Name, tuple[float, PodView]] = {}
        self._views: dict[str, tuple[object, PodView]] = {}
        self._running, self._idle = Since(clock), Since(clock)
        self.pods: dict[Name, PodView] = {}

    def look(self, seen: Collection[Object], holders: Mapping[Name, int]) -> None:
        """Take note of what is there now."""
        self.pods = {(view.namespace, view.name): view for view in map(self._view, seen)}
        now = self._clock()
        for name, (at, view) in list(self._made.items()):
            if name in self.pods or now - at > BELIEVED_S:
                del self._made[name]
            else:
                self.pods[name] = view
        uids = {view.uid for view in self.pods.values()}
        self._views = {uid: kept for uid, kept in self._views.items() if uid in uids}
        for since in (self._running, self._idle):
            since.keep_only(uids)
        for name, view in self.pods.items():
            self._running.note(view.uid, view.stage is Stage.RUNNING)
            self._idle.note(view.uid, not holders.get(name))

    def _view(self, obj: Object) -> PodView:
        """Judged once per version."""
        version = obj["metadata"].get("resourceVersion")
        kept = self._views.get(uid_of(obj))
        if kept is None or version is None or kept[0] != version:
            kept = self._views[uid_of(obj)] = version, pods.view_of(obj)
        return kept[1]

    def forget_time(self) -> None:
        """This process does not lead: what it would remember is not so."""
        self._running.clear()
        self._idle.clear()

    def made(self, obj: Object) -> None:
        view = pods.view_of(obj)
        self._made[view.namespace, view.name] = self._clock(), view
        self.pods[view.namespace, view.name] = view

    def gone(self, key: Key) -> None:
        self._made.pop((key.namespace, key.name), None)

    def idle_s(self, view: PodView) -> float:
        return self._idle.note(view.uid, True)

    def is_silent(self, view: PodView) -> bool:
        """It runs, and has not called for so long that its node must be gone, or its way to us."""
        if view.stage is not Stage.RUNNING:
            return False
        ran = self._running.note(view.uid, True)
        last = self._heard.get(view.name)
        quiet = ran if last is None else min(ran, self._clock() - last)
        return quiet > SILENT_S

    def serves(self, view: PodView) -> bool:
        """It runs and calls."""
        return view.stage is Stage.RUNNING and view.name in self._heard and not self.is_silent(view)

    def was_heard(self, view: PodView) -> bool:
        return view.name in self._heard
