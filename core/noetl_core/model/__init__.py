"""The playbook as the engine sees it: frozen, typed, normalised; every key of the language stands
here.

Built by `load`, read by everything. A field's sentence is its documentation: in the JSON Schema,
in the CRDs (`kubectl explain`) and in error messages about a missing key.
"""

from __future__ import annotations

from typing import ClassVar

from noetl_core.model.sections import (
    Defaults,
    DefaultTimeouts,
    ExecutionFailure,
    Executor,
    ExecutorPolicy,
    ExecutorSpec,
    Failure,
    KeychainEntry,
    LayeredSpec,
    Limits,
    Metadata,
    PodSettings,
    Pool,
    ResultDefaults,
    SecretRef,
    StepExecutor,
)
from noetl_core.model.steps import (
    Admit,
    AdmitRule,
    Arc,
    InnerSpec,
    Join,
    Lifecycle,
    Loop,
    LoopPolicy,
    LoopSpec,
    Next,
    NextSpec,
    ResultSpec,
    Rule,
    Step,
    StepPolicy,
    StepSpec,
    Task,
    TaskPolicy,
    TaskSpec,
    Then,
)
from noetl_core.model.words import (
    Action,
    AtEnd,
    Backoff,
    ExecutorKind,
    FailureMode,
    JoinMode,
    KeychainKind,
    LoopExec,
    LoopMode,
    Numeric,
    OnDeny,
    OnUnmatched,
    OnWorkerLost,
    PoolScope,
    Reducer,
    RouterMode,
)
from noetl_core.shape import DataMap, ListOf, Rec, Record, key, record
from noetl_core.shapes_forms import ExecutorShape
from noetl_core.shapes_tasks import WorkbookShape
from noetl_core.values import Value


@record
class Playbook(Record):
    """A NoETL playbook, Canonical v10."""

    place: ClassVar[str] = "root"
    metadata: Metadata = key(Rec(Metadata), "What identifies it: at least `name`.")
    keychain: tuple[KeychainEntry, ...] = key(
        ListOf(Rec(KeychainEntry)), "The credentials it needs.", default=()
    )
    executor: Executor = key(ExecutorShape(lambda: Executor), "What runs it.", default=Executor())
    workload: dict[str, Value] = key(
        DataMap(), "Its inputs, with defaults; immutable while it runs.", default_factory=dict
    )
    workflow: tuple[Step, ...] = key(
        ListOf(Rec(Step), least=1), "The steps; the first is the entry unless the executor says."
    )
    workbook: dict[str, Task] = key(
        WorkbookShape(lambda: Task), "Tasks to use by name.", default_factory=dict
    )

    @property
    def entry_step(self) -> str:
        """Rule C1."""
        return self.executor.spec.entry_step or self.workflow[0].step

    def step(self, name: str) -> Step | None:
        return next((s for s in self.workflow if s.step == name), None)


__all__ = [
    "Action",
    "Admit",
    "AdmitRule",
    "Arc",
    "AtEnd",
    "Backoff",
    "DefaultTimeouts",
    "Defaults",
    "ExecutionFailure",
    "Executor",
    "ExecutorKind",
    "ExecutorPolicy",
    "ExecutorSpec",
    "Failure",
    "FailureMode",
    "InnerSpec",
    "Join",
    "JoinMode",
    "KeychainEntry",
    "KeychainKind",
    "LayeredSpec",
    "Lifecycle",
    "Limits",
    "Loop",
    "LoopExec",
    "LoopMode",
    "LoopPolicy",
    "LoopSpec",
    "Metadata",
    "Next",
    "NextSpec",
    "Numeric",
    "OnDeny",
    "OnUnmatched",
    "OnWorkerLost",
    "Playbook",
    "PodSettings",
    "Pool",
    "PoolScope",
    "Reducer",
    "ResultDefaults",
    "ResultSpec",
    "RouterMode",
    "Rule",
    "SecretRef",
    "Step",
    "StepExecutor",
    "StepPolicy",
    "StepSpec",
    "Task",
    "TaskPolicy",
    "TaskSpec",
    "Then",
]
