"""The names of pools: whose commands wait together, and which Pods may take them.

    execution/<execution id>                       Pods of one Execution
    execution/<execution id>/<step>                the same, of a step that says how its Pods look
    playbook/<namespace>/<playbook>/<digest>       Pods that the Playbook's Executions share
    playbook/<namespace>/<playbook>/<digest>/<step>
    step/<execution id>/                           one Pod or Job for every command
    step/<execution id>/<step>

Pure. `executions` names the pools of a new execution, `launch` reads the names again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from noetl_core.model import ExecutorKind, Playbook, PoolScope, Step
from noetl_operator.kube.allow import placement_of

DIGEST_CHARS = 12


class Scope(StrEnum):
    """What a pool belongs to."""

    EXECUTION = "execution"
    PLAYBOOK = "playbook"
    STEP = "step"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolName:
    """The name of a pool, taken apart."""

    scope: Scope
    execution_id: str = ""
    namespace: str = ""
    playbook: str = ""
    digest: str = ""
    """Its first characters."""
    step: str = ""
    """The step whose executor says how the Pods look; none: the playbook's."""

    def __str__(self) -> str:
        if self.scope is Scope.PLAYBOOK:
            whole = f"playbook/{self.namespace}/{self.playbook}/{self.digest}"
        else:
            whole = f"{self.scope}/{self.execution_id}"
        return f"{whole}/{self.step}" if self.step or self.scope is Scope.STEP else whole

    @classmethod
    def parse(cls, text: str) -> PoolName | None:
        """None: a pool of somebody else."""
        match text.split("/", 1)[0]:
            case Scope.PLAYBOOK:
                words = text.split("/", 4)
                if len(words) < 4:
                    return None
                _, namespace, playbook, digest, *step = words
                return cls(
                    scope=Scope.PLAYBOOK,
                    namespace=namespace,
                    playbook=playbook,
                    digest=digest,
                    step="".join(step),
                )
            case (Scope.EXECUTION | Scope.STEP) as scope:
                words = text.split("/", 2)
                if len(words) < 2:
                    return None
                return cls(scope=Scope(scope), execution_id=words[1], step="".join(words[2:]))
        return None


@dataclass(frozen=True, slots=True)
class Pools:
    """Where the commands of an execution wait: `NewExecution.pool` and `.pools`."""

    pool: str
    steps: dict[str, str]


def pools_of(
    playbook: Playbook, execution_id: str, namespace: str, shared_by: str, digest: str
) -> Pools:
    """`shared_by` is the Playbook object. An Execution with a playbook of its own has none: what it
    would share, it has to itself."""

    def name(step: Step | None) -> str:
        kind, scope = placement_of(playbook, step)
        own = step.step if step is not None else ""
        if kind is not ExecutorKind.POOL:
            return str(PoolName(scope=Scope.STEP, execution_id=execution_id, step=own))
        if scope is PoolScope.PLAYBOOK and shared_by:
            return str(shared_pool(namespace, shared_by, digest, own))
        return str(PoolName(scope=Scope.EXECUTION, execution_id=execution_id, step=own))

    steps = [step for step in playbook.workflow if step.spec.executor is not None]
    return Pools(name(None), {step.step: name(step) for step in steps})


def shared_pool(namespace: str, playbook: str, digest: str, step: str = "") -> PoolName:
    return PoolName(
        scope=Scope.PLAYBOOK,
        namespace=namespace,
        playbook=playbook,
        digest=digest.rpartition(":")[2][:DIGEST_CHARS],
        step=step,
    )
