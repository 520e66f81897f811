"""Which settings a task runs with, and which scope gave each (rules F1, I5, K5, K38, K42).

The worker asks `effective_spec` and `resolved_task`; `noetl check --explain` asks `explain`.
Layers, weakest first: the kind's defaults, the executor's policy, `executor.spec`, `step.spec`,
`loop.spec` (outermost loop first), the workbook's task, `task.spec`. Scalars and lists are
replaced, maps merge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from noetl_core.model import (
    InnerSpec,
    LayeredSpec,
    Loop,
    Playbook,
    ResultSpec,
    Step,
    Task,
    TaskSpec,
)
from noetl_core.shape import dump_record
from noetl_core.tools import BUILT_IN, ToolKind
from noetl_core.values import Value

INLINE_MAX_BYTES = 64 * 1024
"""Rule H1: the largest result that travels in events, where nothing else is said."""

_DEFAULTS: dict[str, Value] = {"result": {"inline_max_bytes": INLINE_MAX_BYTES}}
_LAYERED_EVERYWHERE = ("timeout", "retry_statuses", "numeric")
_LAYERED = (*_LAYERED_EVERYWHERE, "result")
"""The keys that layer. All others belong to the scope they stand in (rule F1)."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Layered:
    """One effective value and where it comes from."""

    path: str
    """`timeout.connect`; a list is one value."""
    value: Value
    scope: str
    """`kind defaults`, `executor.spec.policy.defaults`, `step.spec`, … as an author writes it."""


@dataclass(frozen=True, slots=True)
class _Layer:
    scope: str
    spec: dict[str, Value]


def effective_spec(
    playbook: Playbook, step: Step, task: Task, kinds: Mapping[str, ToolKind] = BUILT_IN
) -> dict[str, Value]:
    """The settings a task of a step runs with (rule F1)."""
    merged: dict[str, Value] = {}
    for layer in _layers(playbook, step, task, kinds):
        merged = merge(merged, layer.spec)
    return merged


def explain(
    playbook: Playbook, step: Step, task: Task, kinds: Mapping[str, ToolKind] = BUILT_IN
) -> list[Layered]:
    """Every effective value of a task with the scope that gave it, by path."""
    given: dict[tuple[str, ...], Layered] = {}
    for layer in _layers(playbook, step, task, kinds):
        for path, value in _leaves(layer.spec, ()):
            _replace(given, path)
            given[path] = Layered(".".join(path), value, layer.scope)
    return [given[path] for path in sorted(given)]


def _replace(given: dict[tuple[str, ...], Layered], path: tuple[str, ...]) -> None:
    """A value replaces what stood at its place, be it below (a map) or above (a scalar)."""
    for old in list(given):
        shorter = min(len(old), len(path))
        if old != path and old[:shorter] == path[:shorter]:
            del given[old]


def resolved_task(playbook: Playbook, task: Task) -> Task:
    """A task as it runs: one of kind `workbook` becomes the task it names, overlaid (rule K38).

    A task that names nothing in the workbook is given back as it is: the checker refuses it.
    """
    base = workbook_base(playbook, task)
    if base is None:
        return task
    own = {key: value for key, value in task.inputs.items() if key != "task"}
    return Task(
        name=task.name,
        kind=base.kind,
        spec=_overlaid(base.spec, task.spec),
        inputs=merge(base.inputs, own),
    )


def workbook_base(playbook: Playbook, task: Task) -> Task | None:
    """The task of the workbook that a task of kind `workbook` runs, or None."""
    if task.kind != "workbook":
        return None
    named = task.inputs.get("task")
    base = playbook.workbook.get(named) if isinstance(named, str) else None
    return base if base is not None and base.kind != "workbook" else None


def _overlaid(base: TaskSpec, own: TaskSpec) -> TaskSpec:
    result = replace(
        base.result,
        inline_max_bytes=_first(own.result.inline_max_bytes, base.result.inline_max_bytes),
        select=_merged_select(base.result, own.result),
    )
    return replace(
        base,
        timeout=merge_values(base.timeout, own.timeout),
        retry_statuses=_first(own.retry_statuses, base.retry_statuses),
        numeric=_first(own.numeric, base.numeric),
        result=result,
        # A policy is one thought: rules of two authors in one list would have no order.
        policy=_first(own.policy, base.policy),
    )


def _first(own: T | None, base: T | None) -> T | None:
    return base if own is None else own


def _merged_select(base: ResultSpec, own: ResultSpec) -> dict[str, str] | None:
    if base.select is None or own.select is None:
        return _first(own.select, base.select)
    return base.select | own.select


def merge(outer: Mapping[str, Value], inner: Mapping[str, Value]) -> dict[str, Value]:
    """Maps merge deep; everything else of the inner one replaces."""
    merged = dict(outer)
    for key, value in inner.items():
        merged[key] = merge_values(merged.get(key), value) if value is not None else None
    return merged


def merge_values(outer: Value, inner: Value) -> Value:
    """One value over another; None says nothing."""
    if inner is None:
        return outer
    if isinstance(outer, dict) and isinstance(inner, dict):
        return merge(outer, inner)
    return inner


def _layers(
    playbook: Playbook, step: Step, task: Task, kinds: Mapping[str, ToolKind]
) -> Iterator[_Layer]:
    base = workbook_base(playbook, task)
    kind = kinds.get(base.kind if base else task.kind)
    yield _Layer("kind defaults", merge(_DEFAULTS, kind.defaults if kind else {}))
    yield from _executor_policy(playbook)
    yield _Layer("executor.spec", _settings(playbook.executor.spec))
    yield _Layer("step.spec", _settings(step.spec))
    for depth, loop in enumerate(loops_of(step)):
        yield _Layer("loop." * (depth + 1) + "spec", _settings(loop.spec))
    if base is not None:
        yield _Layer(f"workbook.{base.name}.spec", _settings(base.spec))
    yield _Layer("task.spec", _settings(task.spec))


def _executor_policy(playbook: Playbook) -> Iterator[_Layer]:
    """Rules K5 and K42: the playbook-wide defaults."""
    policy = playbook.executor.spec.policy
    if policy.defaults.timeouts.task is not None:
        given: dict[str, Value] = {"timeout": policy.defaults.timeouts.task}
        yield _Layer("executor.spec.policy.defaults", given)
    results = dump_record(policy.results)
    if results:
        yield _Layer("executor.spec.policy.results", {"result": results})


def loops_of(step: Step) -> Iterator[Loop]:
    """The loops of a step, outermost first."""
    loop = step.loop
    while loop is not None:
        yield loop
        loop = loop.loop


def _settings(spec: LayeredSpec) -> dict[str, Value]:
    """The keys of a spec that layer. `result` of the executor is the execution's own (rule F1)."""
    own = dump_record(spec)
    names = _LAYERED if isinstance(spec, InnerSpec) else _LAYERED_EVERYWHERE
    return {name: own[name] for name in names if name in own}


def _leaves(
    value: Mapping[str, Value], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Value]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _leaves(inner, (*path, key))
        else:
            yield (*path, key), inner
