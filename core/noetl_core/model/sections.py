"""What stands around a workflow: metadata, keychain, executor (rules A1, F1, G1, H1)."""

from __future__ import annotations

import re
from typing import ClassVar

from noetl_core.model.words import (
    ExecutorKind,
    FailureMode,
    KeychainKind,
    Numeric,
    PoolScope,
)
from noetl_core.scopes import Scope
from noetl_core.shape import (
    KUBERNETES_NAME,
    Boolean,
    Choice,
    Data,
    DataMap,
    Integer,
    ListOf,
    LooseText,
    MapOf,
    Number,
    Placeholder,
    Rec,
    Record,
    Text,
    key,
    name_text,
    record,
)
from noetl_core.shapes_forms import Timeout
from noetl_core.values import Value

_ANY_NAME = Text(re.compile(r"[\s\S]*\S[\s\S]*"), "A1.missing", "a name: it is empty")


@record
class Metadata(Record):
    """What identifies a playbook."""

    place: ClassVar[str] = "metadata"
    name: str = key(_ANY_NAME, "The playbook's name.")
    path: str | None = key(Text(), "A path by which other playbooks may call it.", default=None)
    version: str | None = key(LooseText(), "The author's version of it.", default=None)
    description: str | None = key(Text(), "What it does, in words.", default=None)
    namespace: str | None = key(Text(), "The Kubernetes namespace it is meant for.", default=None)
    labels: dict[str, str] = key(MapOf(LooseText()), "Labels.", default_factory=dict)
    annotations: dict[str, str] = key(MapOf(LooseText()), "Annotations.", default_factory=dict)


_SECRET_NAME = Text(KUBERNETES_NAME, "G1.secret-name", "the name of a Secret")


@record
class SecretRef(Record):
    """The Secret behind a keychain entry."""

    name: str = key(_SECRET_NAME, "The Secret's name, in the Execution's own namespace.")


@record
class KeychainEntry(Record):
    """A credential the playbook needs, taken from a Kubernetes Secret."""

    place: ClassVar[str] = "keychain"
    name: str = key(
        name_text(), "The entry's name: `keychain.<name>` in templates, `auth: <name>`."
    )
    kind: KeychainKind = key(
        Choice(KeychainKind, "G2.kind", {"secret_manager": KeychainKind.SECRET}),
        "What kind of credential it is.",
    )
    secretRef: SecretRef | None = key(
        Rec(SecretRef), "Its Secret; by default the entry's name with `_` as `-`.", default=None
    )
    map: dict[str, str] = key(
        MapOf(Text()), "Field → key of the Secret, or `secret/key`.", default_factory=dict
    )

    @property
    def secret_name(self) -> str:
        """Rule G1."""
        return self.secretRef.name if self.secretRef else self.name.replace("_", "-")


@record
class Failure(Record):
    """How a failure is taken."""

    mode: FailureMode | None = key(
        Choice(FailureMode, "E5.failure-mode"), "`fail_fast` or `best_effort`.", default=None
    )


@record
class ExecutionFailure(Record):
    """How the failure of a step is taken by the other branches (rule C7)."""

    mode: FailureMode | None = key(
        Choice(FailureMode, "C7.failure-mode"), "`fail_fast` or `best_effort`.", default=None
    )


@record
class Limits(Record):
    """Bounds that end a runaway with a clear failure."""

    max_step_runs: int = key(Integer(1), "Step-runs of one execution.", default=10_000)
    max_task_runs: int = key(Integer(1), "Task runs of one pipeline.", default=100_000)
    max_iterations: int = key(Integer(1), "Iterations of one loop.", default=1_000_000)
    max_depth: int = key(Integer(1), "How deep child executions nest.", default=10)
    max_payload_bytes: int = key(Integer(1024), "Bytes of one event.", default=1024 * 1024)


@record
class DefaultTimeouts(Record):
    """Timeouts in seconds for tasks and steps that set none."""

    task: float | None = key(Number(0, above=True), "For each task.", default=None)
    step: float | None = key(Number(0, above=True), "For each step.", default=None)


@record
class Defaults(Record):
    """What tasks and Pods get where they say nothing."""

    timeouts: DefaultTimeouts = key(
        Rec(DefaultTimeouts), "Default timeouts, in seconds.", default=DefaultTimeouts()
    )
    resources: dict[str, Value] = key(
        DataMap(), "Kubernetes resources of worker Pods.", default_factory=dict
    )


@record
class ResultDefaults(Record):
    """How results are kept, for the whole playbook."""

    reference_first: bool = key(Boolean(), "Store every result.", default=False)
    inline_max_bytes: int | None = key(
        Integer(0), "The largest result that travels in events.", default=None
    )


@record
class ReservedPolicy(Record):
    """What v10 reserves in the policies of executor, step and loop (rule K5)."""

    emit: Value = key(Placeholder(), "Reserved.", default=None)
    ordering: Value = key(Placeholder(), "Reserved.", default=None)
    backpressure: Value = key(Placeholder(), "Reserved.", default=None)
    partitioning: Value = key(Placeholder(), "Reserved.", default=None)
    tracing: Value = key(Placeholder(), "Reserved.", default=None)
    quotas: Value = key(Placeholder(), "Reserved.", default=None)
    compensation: Value = key(Placeholder(), "Reserved.", default=None)


@record
class ExecutorPolicy(ReservedPolicy):
    """Policy for the whole execution."""

    place: ClassVar[str] = "policy"
    defaults: Defaults = key(Rec(Defaults), "Defaults for tasks and Pods.", default=Defaults())
    results: ResultDefaults = key(
        Rec(ResultDefaults), "How results are kept.", default=ResultDefaults()
    )
    limits: Limits = key(Rec(Limits), "Bounds on the execution.", default=Limits())
    failure: ExecutionFailure = key(
        Rec(ExecutionFailure),
        "`best_effort` lets other branches end first.",
        default=ExecutionFailure(),
    )


@record
class Pool(Record):
    """Worker Pods that serve many step-runs."""

    scope: PoolScope = key(
        Choice(PoolScope, "K3.pool-scope"),
        "Pods of one Execution, or shared by the Playbook's Executions.",
        default=PoolScope.EXECUTION,
    )
    min: int = key(Integer(0), "How many Pods stay.", default=0)
    max: int | None = key(Integer(1), "How many Pods there may be.", default=None)
    idle_s: float | None = key(Number(0), "Seconds before an idle Pod goes.", default=None)


@record
class LayeredSpec(Record):
    """Settings that may stand at any scope; the innermost wins (rule F1)."""

    timeout: Value = key(Timeout(), "Seconds a task may take, or `{connect, read}`.", default=None)
    retry_statuses: tuple[int, ...] | None = key(
        ListOf(Integer(100)), "HTTP statuses the http tool tries once more itself.", default=None
    )
    numeric: Numeric | None = key(
        Choice(Numeric, "K35.numeric"), "SQL numeric as `number` or exact `text`.", default=None
    )


@record
class PodSettings(LayeredSpec):
    """How worker Pods look, where the installation allows it."""

    place: ClassVar[str] = "executor"
    pool: Pool | None = key(Rec(Pool), "The pool of worker Pods (kind `pool`).", default=None)
    image: str | None = key(Text(), "The worker's image.", default=None)
    resources: dict[str, Value] = key(
        DataMap(), "Kubernetes resources of the Pods.", default_factory=dict
    )
    nodeSelector: dict[str, str] = key(
        MapOf(Text()), "Labels of the nodes to run on.", default_factory=dict
    )
    tolerations: tuple[dict[str, Value], ...] = key(
        ListOf(DataMap()), "Taints to tolerate.", default=()
    )
    affinity: dict[str, Value] = key(DataMap(), "Kubernetes affinity.", default_factory=dict)
    serviceAccountName: str | None = key(Text(), "The ServiceAccount of the Pods.", default=None)


@record
class StepExecutor(Record):
    """Where one step runs, other than the playbook says."""

    kind: ExecutorKind = key(
        Choice(ExecutorKind, "K3.executor-kind"),
        "`pool`, `pod` or `job`.",
        default=ExecutorKind.POOL,
    )
    spec: PodSettings = key(Rec(PodSettings), "Settings of its Pods.", default=PodSettings())


@record
class ExecutorSpec(PodSettings):
    """Settings of the whole execution."""

    entry_step: str | None = key(
        Text(), "The step that gets the first token; by default the first.", default=None
    )
    final_step: str | None = key(
        Text(), "The step that runs once at the end, whatever the outcome.", default=None
    )
    result: Value = key(
        Data(Scope.RESULT), "The execution's result; by default the last step's.", default=None
    )
    policy: ExecutorPolicy = key(
        Rec(ExecutorPolicy), "Policy for the whole execution.", default=ExecutorPolicy()
    )


@record
class Executor(Record):
    """What runs the playbook."""

    place: ClassVar[str] = "executor"
    kind: ExecutorKind = key(
        Choice(ExecutorKind, "K3.executor-kind"),
        "`pool` (worker Pods that serve many step-runs), `pod` or `job` (one per step-run).",
        default=ExecutorKind.POOL,
    )
    spec: ExecutorSpec = key(
        Rec(ExecutorSpec), "Settings of the whole execution.", default=ExecutorSpec()
    )
