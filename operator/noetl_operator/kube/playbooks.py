"""Playbook objects: checked, told what is wrong, and found by name or path.

What a Playbook is worth is worked out once per generation. Executions and the parents of children
ask here for what to run; they always get the Playbook as the API server has it now.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import orjson

from noetl_core.check import Checked, check_data
from noetl_core.execution import MOST_PROBLEMS, ConditionStatus
from noetl_core.load import API_VERSION, KIND, NAME_ANNOTATION
from noetl_core.model import Playbook
from noetl_core.problems import Problem, Severity
from noetl_core.values import Value
from noetl_operator.kube import port
from noetl_operator.kube.briefs import Shared
from noetl_operator.kube.port import PLAYBOOK, Cluster, Key, Object, generation_of, uid_of
from noetl_operator.kube.project import Verdict, condition, problems_text, shortened
from noetl_operator.kube.status import StatusWriter
from noetl_operator.kube.tame import depth_problem
from noetl_operator.kube.watch import Watch

KEPT = 256
"""Checked playbooks that are remembered."""
LARGE = 100_000
"""Bytes above which a playbook is checked in a thread, so that nobody else has to wait."""
LONGEST_TEXT = 512
"""Of a problem's message or hint, in a status."""

Refuse = Callable[[Playbook], list[Problem]]
"""What a playbook wants of its Pods and may not have in this installation."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A playbook and what the checker says of it."""

    name: str
    """Of the object; empty for one that is written out in an Execution."""
    generation: int | None
    playbook: Playbook | None
    """None where it may not run."""
    digest: str | None
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> list[dict[str, Value]]:
        return [_data(p) for p in self.problems if p.severity is Severity.ERROR]


class Playbooks:
    """All Playbooks of the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        watch: Watch,
        writer: StatusWriter,
        now: Callable[[], str],
        refuse: Refuse = lambda playbook: [],
    ) -> None:
        self._cluster, self._watch, self._writer = cluster, watch, writer
        self._now, self._refuse = now, refuse
        self._judged: OrderedDict[tuple[str, int], Judged] = OrderedDict()
        self.changed: list[Callable[[Key], None]] = []
        """Who wants to know that a Playbook is there, or is another one."""

    async def reconcile(self, key: Key) -> None:
        """Bring one Playbook's status up to date."""
        obj = self._watch.get(key)
        if obj is None:
            self._writer.forget(key)
            return
        for tell in self.changed:
            tell(key)
        judged = await self._judge(obj)
        there = obj.get("status")
        status = playbook_status(judged, there or {}, generation_of(obj), self._now())
        self._writer.want(key, uid_of(obj), lambda: status, there, soon=True)

    async def quarantine(self, key: Key, error: Exception) -> None:
        """Checking it fails again and again: say so on the object."""
        obj = self._watch.get(key)
        if obj is None:
            return
        said = f"the operator cannot check it ({type(error).__name__}); its log says more"
        why = Verdict(ConditionStatus.UNKNOWN, "Quarantined", said)
        generation, there = generation_of(obj), obj.get("status") or {}
        told = condition("Valid", why, _since(why, there, self._now()), generation)
        status = {"observedGeneration": generation, "conditions": [told]}
        self._writer.want(key, uid_of(obj), lambda: status, obj.get("status"), soon=True)

    async def named(self, namespace: str, name: str) -> Judged:
        """The Playbook of this name as it is now. Raises NotFound."""
        return await self._judge(await self._cluster.get(Key(PLAYBOOK, namespace, name)))

    async def find(self, namespace: str, wanted: str) -> Judged:
        """By resource name, or by path where a `/` stands in it (rule K37). Raises NotFound."""
        if "/" not in wanted:
            return await self.named(namespace, wanted)
        for obj in self._watch.every(PLAYBOOK):
            meta = obj["metadata"]
            if meta["namespace"] == namespace and path_of(obj) == wanted:
                return await self.named(namespace, meta["name"])
        raise port.NotFound(f"no Playbook has the path {wanted}")

    async def shared(self, obj: Object) -> Shared | None:
        """A Playbook that may have Pods of its own; None where it may not run."""
        judged = await self._judge(obj)
        if judged.playbook is None or judged.digest is None:
            return None
        return Shared(obj, judged.playbook, judged.digest)

    async def written_out(self, name: str, spec: dict[str, Value]) -> Judged:
        """A playbook that stands in an Execution of this name."""
        judged = self._judgement("", None, await _check(name, {}, spec))
        inner = tuple(_below_playbook(problem) for problem in judged.problems)
        return replace(judged, problems=inner)

    async def _judge(self, obj: Object) -> Judged:
        known = (uid_of(obj), generation_of(obj))
        found = self._judged.get(known)
        if found is None and (wrong := depth_problem(obj.get("spec"))) is not None:
            return Judged(obj["metadata"]["name"], known[1], None, None, (wrong,))
        if found is None:
            meta = obj["metadata"]
            checked = await _check(meta["name"], meta.get("annotations") or {}, obj.get("spec"))
            found = self._judgement(meta["name"], known[1], checked)
            self._judged[known] = found
            while len(self._judged) > KEPT:
                self._judged.popitem(last=False)
        self._judged.move_to_end(known)
        return found

    def _judgement(self, name: str, generation: int | None, checked: Checked) -> Judged:
        refused = [] if checked.playbook is None else self._refuse(checked.playbook)
        may_run = None if refused else checked.playbook
        problems = (*checked.problems, *refused)
        return Judged(name, generation, may_run, checked.digest if may_run else None, problems)


async def _check(name: str, annotations: dict[str, str], spec: Any) -> Checked:
    kept = {k: v for k, v in annotations.items() if k == NAME_ANNOTATION}
    metadata: Value = {"name": name, "annotations": kept} if kept else {"name": name}  # type: ignore[dict-item]  # texts
    document: Value = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": spec if spec is not None else {},
    }
    if len(orjson.dumps(document)) > LARGE:
        return await asyncio.to_thread(check_data, document)
    return check_data(document)


def path_of(obj: Object) -> str | None:
    """`metadata.path` of a playbook, wherever its form puts it."""
    inner = (obj.get("spec") or {}).get("metadata")
    path = inner.get("path") if isinstance(inner, dict) else None
    return path if isinstance(path, str) else None


def playbook_status(judged: Judged, there: Object, generation: int, now: str) -> Object:
    """The status of a Playbook. `there` only tells since when its condition is what it is."""
    verdict = _verdict(judged)
    listed = [_brief(problem) for problem in judged.problems[:MOST_PROBLEMS]]
    status: Object = {
        "observedGeneration": generation,
        "conditions": [condition("Valid", verdict, _since(verdict, there, now), generation)],
        "problems": listed,
    }
    if judged.playbook is not None:
        status |= {"digest": judged.digest, "steps": len(judged.playbook.workflow)}
    return status


def _verdict(judged: Judged) -> Verdict:
    errors = judged.errors
    if judged.playbook is None:
        many = f"{len(errors)} problem{'s' if len(errors) != 1 else ''}"
        return Verdict(ConditionStatus.FALSE, "Invalid", f"{many}: {problems_text(errors)}")
    warnings = [_data(problem) for problem in judged.problems]
    if warnings:
        told = problems_text(warnings)
        return Verdict(ConditionStatus.TRUE, "ValidWithWarnings", f"it may run; but {told}")
    return Verdict(ConditionStatus.TRUE, "Valid", "it may run")


def _since(verdict: Verdict, there: Object, now: str) -> str:
    for one in there.get("conditions", []):
        if one.get("type") == "Valid" and one.get("status") == verdict.status.value:
            return str(one["lastTransitionTime"])
    return now


def _brief(problem: Problem) -> Object:
    made: Object = {
        "code": problem.code,
        "severity": problem.severity.value,
        "path": shortened(problem.path, LONGEST_TEXT),
        "message": shortened(problem.message, LONGEST_TEXT),
    }
    return made | {"hint": shortened(problem.hint, LONGEST_TEXT)} if problem.hint else made


def _data(problem: Problem) -> dict[str, Value]:
    return dict(problem.as_json())


def _below_playbook(problem: Problem) -> Problem:
    """Its place in the Execution: `spec.workflow[0]` is `spec.playbook.workflow[0]` there."""
    inner = problem.path.removeprefix("spec")
    return replace(problem, path=f"spec.playbook{inner}")
