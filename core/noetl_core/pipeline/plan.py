"""A step as a worker runs it: compiled once per playbook digest and step, then shared by all runs.

Templates are compiled, the paths they read collected, specs layered (rule F1) and tasks of the
workbook put in place (rules I5, K38). Nothing here depends on a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from noetl_core.layers import effective_spec, loops_of, resolved_task
from noetl_core.model import (
    Action,
    Backoff,
    FailureMode,
    Loop,
    LoopMode,
    OnUnmatched,
    Playbook,
    Reducer,
    Rule,
    Step,
    Task,
)
from noetl_core.pipeline.trees import Entries, Tree, paths_of
from noetl_core.results import INLINE_MAX_BYTES
from noetl_core.sql import Dialect, compile_sql
from noetl_core.templates import Template, compile_when
from noetl_core.templates.compiler import Path
from noetl_core.tools import BUILT_IN, ToolKind
from noetl_core.values import Value

ATTEMPTS = 3
"""Runs of a task under `retry`, the first included, where the rule says nothing (rule D2)."""
DELAY = 1.0
"""Seconds before the first retry."""
MAX_DELAY = 300.0
"""The longest wait before a retry."""

_SQL: dict[str, Dialect] = {"postgres": "postgres", "duckdb": "duckdb"}
_NEVER_RENDERED = {"python": "code", "postgres": "command", "duckdb": "command"}
"""Rule K6: code is no template, and SQL is bound by its tool."""
_WITHOUT_KEYCHAIN = {"noop": "result", "playbook": "workload"}
"""Rules K32 and K45: what is stored or sent on never holds a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRule:
    """One rule of a task policy."""

    name: int | str
    """Its index, or `else`."""
    when: Template | None
    action: Action
    attempts: int
    backoff: Backoff
    delay: Tree
    max_delay: float
    to: str | None
    set_iter: Entries | None
    set_ctx: Entries | None
    message: Tree | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledTask:
    """One task of a pipeline."""

    label: str
    kind: str
    spec: dict[str, Value]
    """The effective one."""
    raw: dict[str, Value]
    """Inputs that nobody renders here."""
    inputs: Entries
    stored: Entries
    """Inputs that are rendered without the keychain."""
    bound: tuple[Path, ...]
    """What the templates of its SQL read."""
    rules: tuple[CompiledRule, ...] | None
    """None: no policy."""
    fails_unmatched: bool
    inline_max: int
    select: dict[str, str] | None
    reference_first: bool

    @property
    def passes_prev(self) -> bool:
        """Rule D5: a `noop` without a result of its own hands on what it was given."""
        return self.kind == "noop" and "result" not in self.stored.written

    @property
    def may_yield_refs(self) -> bool:
        """The result of a child execution may hold references; all others are full values."""
        return self.kind == "playbook"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledLevel:
    """One loop of a step."""

    iterator: str
    items: Tree
    window: Tree | None
    """None: one iteration after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One step, ready to run."""

    step: str
    tasks: tuple[CompiledTask, ...]
    places: Mapping[str, int]
    """Label → index of its task."""
    levels: tuple[CompiledLevel, ...]
    """The loops, outermost first."""
    reducers: Mapping[str, Reducer]
    best_effort: bool
    """Whether a failed iteration leaves the others alone (rule E5)."""
    max_task_runs: int
    max_iterations: int
    max_payload_bytes: int


def compile_plan(playbook: Playbook, step: Step, kinds: Mapping[str, ToolKind] = BUILT_IN) -> Plan:
    """The plan of a step of a checked playbook; raises `TemplateProblems` for an unchecked one."""
    tasks = tuple(_task(playbook, step, task, kinds) for task in step.tool)
    limits = playbook.executor.spec.policy.limits
    loops = list(loops_of(step))
    return Plan(
        step=step.step,
        tasks=tasks,
        places={task.label: index for index, task in enumerate(tasks)},
        levels=tuple(_level(loop) for loop in loops),
        reducers={key: how for loop in loops for key, how in loop.spec.policy.reducers.items()},
        best_effort=step.spec.policy.failure.mode is FailureMode.BEST_EFFORT,
        max_task_runs=limits.max_task_runs,
        max_iterations=limits.max_iterations,
        max_payload_bytes=limits.max_payload_bytes,
    )


def _level(loop: Loop) -> CompiledLevel:
    parallel = loop.mode is LoopMode.PARALLEL
    window = Tree(loop.max_in_flight) if parallel else None
    return CompiledLevel(iterator=loop.iterator, items=Tree(loop.in_), window=window)


def _task(
    playbook: Playbook, step: Step, written: Task, kinds: Mapping[str, ToolKind]
) -> CompiledTask:
    task = resolved_task(playbook, written)
    spec = effective_spec(playbook, step, written, kinds)
    result = spec.get("result")
    result = result if isinstance(result, dict) else {}
    limit, select = result.get("inline_max_bytes"), result.get("select")
    raw, stored = _NEVER_RENDERED.get(task.kind), _WITHOUT_KEYCHAIN.get(task.kind)
    policy = task.spec.policy
    return CompiledTask(
        label=task.name,
        kind=task.kind,
        spec=spec,
        raw={key: value for key, value in task.inputs.items() if key == raw},
        inputs=Entries({k: v for k, v in task.inputs.items() if k not in (raw, stored)}),
        stored=Entries({key: value for key, value in task.inputs.items() if key == stored}),
        bound=_bound(task),
        rules=tuple(map(_rule, range(len(policy.rules)), policy.rules)) if policy else None,
        fails_unmatched=policy is not None and policy.on_unmatched is OnUnmatched.FAIL,
        inline_max=limit if isinstance(limit, int) else INLINE_MAX_BYTES,
        select={k: str(v) for k, v in select.items()} if isinstance(select, dict) else None,
        reference_first=result.get("reference_first") is True,
    )


def _bound(task: Task) -> tuple[Path, ...]:
    command = task.inputs.get("command")
    if task.kind not in _SQL or command is None:
        return ()
    texts = [one for one in command if isinstance(one, str)] if isinstance(command, list) else None
    return paths_of(compile_sql(texts or str(command), _SQL[task.kind]).templates)


def _rule(index: int, rule: Rule) -> CompiledRule:
    then = rule.then
    return CompiledRule(
        name="else" if rule.when is None else index,
        when=None if rule.when is None else compile_when(rule.when),
        action=then.do,
        attempts=ATTEMPTS if then.attempts is None else then.attempts,
        backoff=then.backoff or Backoff.NONE,
        delay=Tree(DELAY if then.delay is None else then.delay),
        max_delay=MAX_DELAY if then.max_delay is None else float(then.max_delay),
        to=then.to,
        set_iter=Entries(then.set_iter) if then.set_iter else None,
        set_ctx=Entries(then.set_ctx) if then.set_ctx else None,
        message=None if then.message is None else Tree(then.message),
    )
