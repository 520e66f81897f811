"""Children of `playbook` tasks, as Execution objects owned by their parent (rules I4, K37).

The outbox asks here. The child's execution is registered before its object is made: reconciling the
object finds the record by the annotation, and an annotation that somebody else writes finds none
that bears the object's name.
"""

from __future__ import annotations

import logging

from noetl_core.engine.triggers import CreateChild
from noetl_core.shape import KUBERNETES_NAME
from noetl_core.values import Value
from noetl_operator.kube import port
from noetl_operator.kube.beginning import with_playbook
from noetl_operator.kube.plan import spec_key
from noetl_operator.kube.playbooks import Judged, Playbooks
from noetl_operator.kube.port import EXECUTION, EXECUTION_ID, PARENT, Cluster, Key, Object, uid_of
from noetl_operator.starting import child_name
from noetl_operator.store.durable import DurableStore
from noetl_operator.store.objects import Link, Objects
from noetl_operator.store.port import NewExecution

_log = logging.getLogger(__name__)


class KubeChildren:
    """Makes children."""

    def __init__(
        self, store: DurableStore, objects: Objects, cluster: Cluster, playbooks: Playbooks
    ) -> None:
        self._store, self._objects = store, objects
        self._cluster, self._playbooks = cluster, playbooks

    async def request(self, action: CreateChild, parent: NewExecution) -> NewExecution:
        """The child as an execution, registered and with its object; twice is once."""
        try:
            judged: Judged | None = await self._playbooks.find(parent.namespace, action.playbook)
        except port.NotFound:
            judged = None
        request = _request(action, parent, judged)
        await self._store.create(request)
        name = judged.name if judged else action.playbook
        if len(name) <= 253 and KUBERNETES_NAME.fullmatch(name):
            generation = judged.generation if judged else None
            await self._object(request, parent, name, generation)
        return request

    async def _object(
        self, request: NewExecution, parent: NewExecution, playbook: str, generation: int | None
    ) -> None:
        owner = await self._objects.of(parent.execution_id)
        if owner is None or owner.removed:
            # The parent's object is gone: its end is under way, and the child's with it.
            return
        body = child_object(request, owner, playbook)
        try:
            made = await self._cluster.create(EXECUTION, request.namespace, body)
        except port.Exists:
            made = await self._cluster.get(Key(EXECUTION, request.namespace, request.name))
            if made["metadata"].get("annotations", {}).get(EXECUTION_ID) != request.execution_id:
                _log.warning("%s is taken: the child runs without an object", request.name)
                return
        except port.Refused as error:
            # Too large for an object, for one. The log has it all the same.
            _log.warning("the child %s runs without an object: %s", request.name, error)
            return
        await self._objects.link(
            Link(
                uid=uid_of(made),
                execution_id=request.execution_id,
                namespace=request.namespace,
                name=request.name,
                spec_key=spec_key(made),
                playbook_generation=generation,
            )
        )


def child_object(request: NewExecution, owner: Link, playbook: str) -> Object:
    reference = {
        "apiVersion": EXECUTION.api_version,
        "kind": EXECUTION.name,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
    return {
        "metadata": {
            "name": request.name,
            "namespace": request.namespace,
            "annotations": {EXECUTION_ID: request.execution_id},
            "labels": {PARENT: owner.name[:63].rstrip("-.")},
            "ownerReferences": [reference],
        },
        "spec": {"playbookRef": {"name": playbook}, "workload": request.workload},
    }


def _request(action: CreateChild, parent: NewExecution, judged: Judged | None) -> NewExecution:
    problems: list[Value] = [_unknown(action.playbook, parent.namespace)]
    request = NewExecution(
        execution_id=action.child,
        namespace=parent.namespace,
        name=child_name(parent.name, action.child),
        playbook_name=judged.name if judged else action.playbook,
        digest="none",
        document={},
        workload=action.workload,
        parent=action.parent,
        depth=action.depth,
        shard=parent.shard,
        pool=f"execution/{action.child}",
        problems=problems if judged is None else [*judged.errors],
    )
    return request if judged is None else with_playbook(request, judged)


def _unknown(wanted: str, namespace: str) -> dict[str, Value]:
    kind = "path" if "/" in wanted else "name"
    return {
        "code": "K37.not-found",
        "severity": "error",
        "path": "",
        "message": f"there is no Playbook of the {kind} `{wanted}` in the namespace {namespace}",
    }
