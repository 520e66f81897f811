"""What worker Pods look like here, and what a playbook may change about it.

`Workers` is what the installation says (the chart writes it as one JSON value); `shape_of` lays a
playbook's wishes over it and `refusals` says which of them are not allowed. Pure: `executions` asks
before an Execution starts, `launch` when it makes a Pod.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from noetl_core.layers import merge
from noetl_core.model import ExecutorKind, Playbook, PodSettings, Pool, PoolScope, Step
from noetl_core.problems import Problem, Severity
from noetl_core.values import Value

REFUSED = "K5.not-allowed-here"


class Workers(BaseModel):
    """Every knob of worker Pods."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, extra="forbid")

    url: str
    """Where worker Pods reach the operator's ingest."""
    image: str
    """The worker's image."""
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: list[str] = []
    """Secrets of the Pods' own namespace with which images are pulled."""
    service_account: str = "default"
    """The ServiceAccount of worker Pods; it needs no rights at all."""
    allowed_images: list[str] = []
    """Images that a playbook may name, as patterns with `*`; the worker's own is always allowed."""
    allowed_service_accounts: list[str] = []
    """ServiceAccounts that a playbook may name, as patterns with `*`."""
    allow_placement: bool = True
    """Whether a playbook may say on which nodes its Pods run."""
    resources: dict[str, Any] = {}
    """Resources of Pods whose playbook names none."""
    node_selector: dict[str, str] = {}
    tolerations: list[dict[str, Any]] = []
    affinity: dict[str, Any] = {}
    labels: dict[str, str] = {}
    """Further labels of every worker Pod."""
    annotations: dict[str, str] = {}
    """Further annotations of every worker Pod."""
    environment: dict[str, str] = {}
    """Further variables of every worker: proxies, the level of its log."""
    priority_class: str | None = None
    runtime_class: str | None = None
    user: int | None = Field(65532, ge=1)
    """The user that workers run as; null where the platform picks one."""
    capacity: int = Field(16, ge=1)
    """Step-runs that one Pod of a pool serves at once."""
    pool_max: int = Field(4, ge=1)
    """How many Pods a pool has at most where its playbook does not say."""
    most_pods: int = Field(100, ge=1)
    """How many Pods of kind `pod` or `job` one Execution has at once."""
    idle_s: float = Field(60.0, ge=0)
    """How long a Pod of a pool stays without work where its playbook does not say."""
    pending_timeout_s: float = Field(300.0, gt=0)
    """How long commands wait for a Pod that cannot start before they fail."""
    stop_grace_s: float = Field(20.0, ge=0)
    """How long runs may go on in a Pod that was told to end; then they are handed back."""
    job_ttl_s: int = Field(60, ge=0)
    """How long an ended Job stays."""
    scratch_limit: str = "1Gi"
    """How much a Pod may write to its scratch folder."""
    token_s: int = Field(3600, ge=600)
    """How long a worker's token is good; the kubelet renews it in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How the Pods of a pool look, all layers laid over each other."""

    kind: ExecutorKind
    image: str
    service_account: str
    resources: dict[str, Value] = field(default_factory=dict)
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[dict[str, Value], ...] = ()
    affinity: dict[str, Value] = field(default_factory=dict)
    scope: PoolScope = PoolScope.EXECUTION
    least: int = 0
    most: int = 1
    idle_s: float = 0.0


def shape_of(playbook: Playbook, step: Step | None, workers: Workers) -> Shape:
    """The Pods of a step that says where it runs, or of the whole playbook.

    As everywhere (rule F1): scalars and lists of the inner layer replace, maps merge.
    """
    layers, pool = _layers(playbook, step), _pool_of(playbook, step)
    kind, scope = placement_of(playbook, step)
    defaults = playbook.executor.spec.policy.defaults
    resources = merge(dict(workers.resources), defaults.resources)
    selector, affinity = dict(workers.node_selector), dict(workers.affinity)
    tolerations: tuple[dict[str, Value], ...] = tuple(workers.tolerations)
    image, account = workers.image, workers.service_account
    for layer in layers:
        resources = merge(resources, layer.resources)
        selector |= layer.nodeSelector
        affinity = merge(affinity, layer.affinity)
        tolerations = layer.tolerations or tolerations
        image, account = layer.image or image, layer.serviceAccountName or account
    most = pool.max if pool.max is not None else max(workers.pool_max, pool.min)
    return Shape(
        kind=kind,
        image=image,
        service_account=account,
        resources=resources,
        node_selector=selector,
        tolerations=tolerations,
        affinity=affinity,
        scope=scope,
        least=min(pool.min, most),
        most=most,
        idle_s=workers.idle_s if pool.idle_s is None else pool.idle_s,
    )


def placement_of(playbook: Playbook, step: Step | None) -> tuple[ExecutorKind, PoolScope]:
    """What kind of Pods serve a step that says so, or the whole playbook, and whose they are."""
    own = step.spec.executor if step is not None else None
    kind = playbook.executor.kind if own is None else own.kind
    return kind, _pool_of(playbook, step).scope


def _layers(playbook: Playbook, step: Step | None) -> list[PodSettings]:
    """Outermost first."""
    own = step.spec.executor if step is not None else None
    return [playbook.executor.spec] if own is None else [playbook.executor.spec, own.spec]


def _pool_of(playbook: Playbook, step: Step | None) -> Pool:
    """The innermost `pool` that is said: its keys belong together."""
    said = [layer.pool for layer in _layers(playbook, step) if layer.pool is not None]
    return said[-1] if said else Pool()


def refusals(playbook: Playbook, workers: Workers, prefix: str = "") -> list[Problem]:
    """What a playbook wants of its Pods and may not have here, each with its place."""
    found = list(_refused(playbook.executor.spec, "executor.spec", workers))
    for index, step in enumerate(playbook.workflow):
        if step.spec.executor is not None:
            place = f"workflow[{index}].spec.executor.spec"
            found += _refused(step.spec.executor.spec, place, workers)
    return [
        Problem(REFUSED, Severity.ERROR, prefix + place, 0, 0, message, hint)
        for place, message, hint in found
    ]


_Refusal = tuple[str, str, str]


def _refused(spec: PodSettings, place: str, workers: Workers) -> Iterator[_Refusal]:
    if spec.image and not _matches(spec.image, [workers.image, *workers.allowed_images]):
        yield _listed(f"{place}.image", "image", spec.image, workers.allowed_images)
    account = spec.serviceAccountName
    accounts = [workers.service_account, *workers.allowed_service_accounts]
    if account and not _matches(account, accounts):
        allowed = workers.allowed_service_accounts
        yield _listed(f"{place}.serviceAccountName", "ServiceAccount", account, allowed)
    if not workers.allow_placement:
        wishes: Mapping[str, object] = {
            "nodeSelector": spec.nodeSelector,
            "tolerations": spec.tolerations,
            "affinity": spec.affinity,
        }
        for name in (name for name, wish in wishes.items() if wish):
            message = f"this installation does not let a playbook set {name}"
            yield f"{place}.{name}", message, "remove it, or ask for `workers.allow_placement`"


def _listed(place: str, what: str, value: str, allowed: list[str]) -> _Refusal:
    message = f"the {what} `{value}` is not allowed in this installation"
    hint = f"allowed: {', '.join(allowed)}" if allowed else f"no {what} of a playbook is allowed"
    return place, message, hint


def _matches(value: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(value, pattern) for pattern in patterns)
