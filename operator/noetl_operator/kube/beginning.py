"""What a new Execution runs: its playbook, judged, and all that is kept of its request.

Called by `executions` when one begins, and by `children` for what both have in common.
"""

from __future__ import annotations

from dataclasses import replace

from noetl_core.engine.clock import later
from noetl_core.engine.rerun import adopted
from noetl_core.execution import ExecutionSpec
from noetl_core.load import dump
from noetl_core.values import Value
from noetl_operator.clock import StoreClock
from noetl_operator.kube.playbooks import Judged, Playbooks
from noetl_operator.kube.pools import pools_of
from noetl_operator.kube.port import Key
from noetl_operator.starting import origin_of
from noetl_operator.store.objects import Link, Objects
from noetl_operator.store.port import NewExecution


class Beginnings:
    """Makes requests of specs."""

    def __init__(
        self, clock: StoreClock, objects: Objects, playbooks: Playbooks, shard: int
    ) -> None:
        self._clock, self._objects = clock, objects
        self._playbooks, self._shard = playbooks, shard

    async def judged(self, key: Key, spec: ExecutionSpec) -> Judged:
        """What it shall run. Raises NotFound where there is no such Playbook."""
        if spec.playbookRef is not None:
            return await self._playbooks.named(key.namespace, spec.playbookRef.name)
        assert spec.playbook is not None
        return await self._playbooks.written_out(key.name, spec.playbook)

    async def request(
        self, key: Key, spec: ExecutionSpec, judged: Judged, link: Link
    ) -> NewExecution:
        """The execution as it will be registered."""
        now = self._clock.now()
        limit = spec.activeDeadlineSeconds
        request = NewExecution(
            execution_id=link.execution_id,
            namespace=key.namespace,
            name=key.name,
            playbook_name=judged.name or key.name,
            digest="none",
            document={},
            workload=spec.workload,
            request_key=f"object/{link.uid}",
            deadline_at=None if limit is None else later(now, limit),
            shard=self._shard,
            pool=f"execution/{link.execution_id}",
            problems=[*judged.errors],
        )
        whole = with_playbook(request, judged)
        return whole if spec.rerunOf is None else await self._rerun(whole, spec)

    async def _rerun(self, request: NewExecution, spec: ExecutionSpec) -> NewExecution:
        """Take over what an earlier execution had done (rule K47)."""
        assert spec.rerunOf is not None
        objects, of = self._objects, spec.rerunOf
        earlier = await objects.latest(request.namespace, of.name, request.execution_id)
        if earlier is None:
            said = f"there is no Execution {of.name} to run again"
            return _cannot(request, "spec.rerunOf.name", said)
        taken = None
        if of.fromStep is not None:
            taken = adopted(await objects.log(earlier), of.fromStep)
            if taken is None:
                said = f"no token ever reached the step {of.fromStep} of {of.name}"
                return _cannot(request, "spec.rerunOf.fromStep", said)
        rerun_of: Value = {"execution_id": earlier, "from_step": of.fromStep}
        return replace(request, origin=origin_of(taken, rerun_of))


def with_playbook(request: NewExecution, judged: Judged) -> NewExecution:
    """What is run, if it may run."""
    playbook = judged.playbook
    if playbook is None or judged.digest is None:
        return request
    where = pools_of(playbook, request.execution_id, request.namespace, judged.name, judged.digest)
    return replace(
        request,
        digest=judged.digest,
        document=dump(playbook),
        pool=where.pool,
        pools=where.steps,
    )


def _cannot(request: NewExecution, path: str, message: str) -> NewExecution:
    """One that ends at once, saying why."""
    problem: dict[str, Value] = {"code": "K47.rerun", "severity": "error", "path": path}
    return replace(request, problems=[*request.problems, {**problem, "message": message}])
