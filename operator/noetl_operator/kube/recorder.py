"""Kubernetes Events: the story of an Execution as `kubectl describe` tells it.

Made of committed facts and gathered for a moment: what repeats is counted, and of a run that ends
at once only the end is told. They are a courtesy: one that is lost changes nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from noetl_core.engine import events as ev
from noetl_core.values import Value
from noetl_operator.kube import port
from noetl_operator.kube.port import EVENT, Cluster, Key, Object
from noetl_operator.kube.project import shortened, whole_seconds

_log = logging.getLogger(__name__)

GATHER_S = 1.0
LONGEST = 1000
"""Kubernetes takes 1,024 bytes of a message."""
MOST_OF_ONE = 25
"""Different Events that one Execution gets in one go; the rest is counted."""
REMEMBERED = 10_000
_NORMAL, _WARNING = "Normal", "Warning"


@dataclass(frozen=True, slots=True)
class Happening:
    """Something worth telling; what has the same reason and subject is one Event."""

    type: str
    reason: str
    message: str
    subject: str = ""
    count: int = 1


def happenings(facts: Iterable[ev.Fact]) -> Iterator[Happening]:
    """What of the log people want to see. Pure."""
    for fact in facts:
        found = _happening(fact)
        if found is not None:
            yield found


def _happening(fact: ev.Fact) -> Happening | None:
    step = fact.step or ""
    match fact:
        case ev.WorkflowStarted():
            return Happening(_NORMAL, "Started", f"the first token is at {step}")
        case ev.StepFailed():
            handled = " (an arc handles it)" if fact.handled else ""
            said = f"step {step} failed{handled}: {error_text(fact.error)}"
            return Happening(_WARNING, "StepFailed", said, step)
        case ev.IterationFailed():
            said = f"iteration {fact.iteration} of {step} failed: {error_text(fact.error)}"
            return Happening(_WARNING, "IterationFailed", said, step)
        case ev.StepRedelivered() if fact.counts:
            said = f"step {step} is given to another worker: {fact.reason}"
            return Happening(_WARNING, "Redelivered", said, step)
        case ev.AdmitEvaluated() if fact.waits:
            return Happening(_NORMAL, "Waiting", f"a token waits at the gate of {step}", step)
        case ev.ChildRequested():
            said = f"step {step} runs the playbook {fact.playbook}"
            return Happening(_NORMAL, "ChildRequested", said, step)
        case ev.ExecutionSuspended():
            return Happening(_NORMAL, "Suspended", "no new step starts")
        case ev.ExecutionResumed():
            return Happening(_NORMAL, "Resumed", "steps start again")
        case ev.ExecutionCancelled():
            return Happening(_NORMAL, "Cancelling", f"{fact.cause}, {fact.mode}")
        case ev.CtxPatched() if fact.patch_id:
            said = f"patch {fact.patch_id} of ctx by {fact.by}: {', '.join(fact.set)}"
            return Happening(_NORMAL, "CtxPatched", said, fact.patch_id)
        case ev.WorkflowFinished():
            return _finished(fact)
        case _:
            return None


def _finished(fact: ev.WorkflowFinished) -> Happening:
    kind = _WARNING if fact.phase == "Failed" else _NORMAL
    counts = ", ".join(f"{number} {name}" for name, number in fact.steps.items() if number)
    said = fact.message or f"steps: {counts or 'none'}"
    why = f"{fact.reason}: " if fact.reason != fact.phase else ""
    return Happening(kind, fact.phase, f"{why}{said}")


def error_text(error: Value) -> str:
    """An error in a line."""
    if not isinstance(error, dict):
        return str(error)
    task = f"task {error['task']}: " if error.get("task") else ""
    words = " ".join(str(error[k]) for k in ("kind", "code") if error.get(k))
    return f"{task}{error.get('message') or ''} [{words}]"


def gathered(told: Iterable[Happening]) -> list[Happening]:
    """What one Execution gets now: repeats counted, a beginning without an end. Pure."""
    found: dict[tuple[str, str], Happening] = {}
    for one in told:
        known = found.get((one.reason, one.subject))
        count = one.count + (known.count if known else 0)
        found[one.reason, one.subject] = replace(one, count=count)
    if any(reason in ("Succeeded", "Failed", "Cancelled") for reason, _ in found):
        found.pop(("Started", ""), None)
    listed = list(found.values())
    if len(listed) <= MOST_OF_ONE:
        return listed
    # The end comes last, and it is what matters most.
    kept, rest = listed[: MOST_OF_ONE - 2], listed[MOST_OF_ONE - 2 : -1]
    more = sum(one.count for one in rest)
    return [*kept, Happening(_NORMAL, "More", f"and {more} more of the kind"), listed[-1]]


class Recorder:
    """Writes Events."""

    def __init__(self, cluster: Cluster, now: Callable[[], str], instance: str) -> None:
        self._cluster, self._now, self._instance = cluster, now, instance
        self._told: dict[tuple[Key, str], list[Happening]] = {}
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._wake = asyncio.Event()

    def note(self, key: Key, uid: str, told: Iterable[Happening]) -> None:
        """Something happened to an object."""
        new = list(told)
        if new:
            self._told.setdefault((key, uid), []).extend(new)
            self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(GATHER_S)
            self._wake.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write what was gathered; what cannot be written is lost."""
        told, self._told = self._told, {}
        for (key, uid), happened in told.items():
            for one in gathered(happened):
                try:
                    await self._write(key, uid, one)
                except port.ClusterError as error:
                    _log.info("an Event of %s is lost: %s", key, error)

    async def _write(self, key: Key, uid: str, one: Happening) -> None:
        name = event_name(key, uid, one)
        before = self._counts.get(name)
        if before is None:
            try:
                await self._cluster.create(EVENT, key.namespace, self._event(name, key, uid, one))
            except port.Exists:
                there = await self._cluster.get(Key(EVENT, key.namespace, name))
                before = int(there.get("count") or 1)
        if before is not None:
            changed = {
                "count": before + one.count,
                "lastTimestamp": whole_seconds(self._now()),
                "message": shortened(one.message, LONGEST),
            }
            await self._cluster.patch(Key(EVENT, key.namespace, name), changed)
        self._counts[name] = (before or 0) + one.count
        while len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)

    def _event(self, name: str, key: Key, uid: str, one: Happening) -> Object:
        now = whole_seconds(self._now())
        return {
            "metadata": {"name": name, "namespace": key.namespace},
            "involvedObject": {
                "apiVersion": key.kind.api_version,
                "kind": key.kind.name,
                "namespace": key.namespace,
                "name": key.name,
                "uid": uid,
            },
            "type": one.type,
            "reason": one.reason,
            "message": shortened(one.message, LONGEST),
            "count": one.count,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": port.MANAGER},
            "reportingComponent": f"{port.GROUP}/operator",
            "reportingInstance": self._instance,
        }


def event_name(key: Key, uid: str, one: Happening) -> str:
    """The same for what is counted together."""
    text = "\n".join((uid, one.reason, one.subject))
    return f"{key.name[:200].rstrip('.-')}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
