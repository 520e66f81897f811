"""The reference's loops: every iteration in order of its index (rules E1–E7, K26–K29)."""

from __future__ import annotations

from dataclasses import dataclass, field

from noetl_core.model import FailureMode, Loop, LoopMode, Reducer, Step
from noetl_core.templates import render
from noetl_core.values import Value
from tests.support.reference_pipeline import Error, World, run_pipeline


@dataclass
class LoopEnd:
    result: Value = None
    error: Error | None = None
    counts: dict[str, Value] = field(default_factory=dict)
    failures: list[Error] = field(default_factory=list)
    options: frozenset[tuple[str | None, str | None, str]] = frozenset()
    """The failures that may have been the first."""
    uncertain: set[str] = field(default_factory=set)


def run_loop(world: World, step: Step, args: dict[str, Value]) -> LoopEnd:
    run = _LoopRun(world, step, args)
    assert step.loop is not None
    result = run.level(step.loop, (), {})
    done, failed = run.done, len(run.failures)
    counts: dict[str, Value] = {"total": done + failed, "done": done, "failed": failed}
    if run.failures and run.fail_fast:
        options = frozenset((e.task, e.iteration, e.kind) for e in run.failures)
        uncertain = run.plain_keys if run.has_parallel else set()
        error = run.failures[0]
        return LoopEnd(error=error, counts=counts, options=options, uncertain=uncertain)
    run.reduce()
    return LoopEnd(result, None, counts, run.failures)


def levels(step: Step) -> list[Loop]:
    found: list[Loop] = []
    loop = step.loop
    while loop is not None:
        found.append(loop)
        loop = loop.loop
    return found


class _LoopRun:
    def __init__(self, world: World, step: Step, args: dict[str, Value]) -> None:
        self.world = world
        self.step = step
        self.args = args
        self.done = 0
        self.failures: list[Error] = []
        self.fail_fast = step.spec.policy.failure.mode is not FailureMode.BEST_EFFORT
        self.has_parallel = any(level.mode is LoopMode.PARALLEL for level in levels(step))
        self.reducers: dict[str, Reducer] = {}
        for level in levels(step):
            self.reducers.update(level.spec.policy.reducers)
        self.writes: list[dict[str, Value]] = []
        """Of each iteration, in order: its last write to each key that has a reducer."""
        self.plain_keys: set[str] = set()

    def level(self, loop: Loop, path: tuple[int, ...], outer: dict[str, Value]) -> list[Value]:
        names: dict[str, Value] = {"iter": outer} if path else {}
        items = render(loop.in_, self.world.scope(args=self.args, **names))
        assert isinstance(items, list), "made playbooks loop over lists"
        results: list[Value] = []
        before = len(self.failures)
        for index, item in enumerate(items):
            failed_here = len(self.failures) > before
            if failed_here and self.fail_fast and loop.mode is LoopMode.SEQUENTIAL:
                break
            here: dict[str, Value] = {loop.iterator: item, "index": index, "total": len(items)}
            if path:
                here["parent"] = outer
            if loop.loop is not None:
                results.append(self.level(loop.loop, (*path, index), here))
            else:
                results.append(self.iteration((*path, index), here))
        return results

    def iteration(self, path: tuple[int, ...], here: dict[str, Value]) -> Value:
        name = ".".join(str(index) for index in path)
        deferred: dict[str, Value] = {}

        def write(values: dict[str, Value]) -> None:
            for key, value in values.items():
                if key in self.reducers:
                    deferred[key] = value
                else:
                    self.world.ctx[key] = value
                    self.plain_keys.add(key)

        ended = run_pipeline(self.world, self.step, self.args, here, name, write)
        self.writes.append(deferred)
        if ended.error is not None:
            self.failures.append(ended.error)
            return None
        self.done += 1
        return ended.result

    def reduce(self) -> None:
        """Rule K29."""
        for key, reducer in self.reducers.items():
            written = [writes[key] for writes in self.writes if key in writes]
            if written:
                start = [self.world.ctx[key]] if key in self.world.ctx else []
                self.world.ctx[key] = _reduced(reducer, start, written)


def _reduced(reducer: Reducer, start: list[Value], written: list[Value]) -> Value:
    """`start` is the value from before the loop, if there is one."""
    match reducer:
        case Reducer.APPEND:
            return [*(start[0] if start else []), *written]  # type: ignore[misc]
        case Reducer.COUNT:
            return (start[0] if start else 0) + len(written)  # type: ignore[operator]
        case Reducer.SUM:
            return sum([*start, *written])  # type: ignore[arg-type]
        case Reducer.MIN:
            return min([*start, *written])  # type: ignore[type-var]
        case Reducer.MAX:
            return max([*start, *written])  # type: ignore[type-var]
        case Reducer.LAST:
            return written[-1]
        case Reducer.MERGE:
            merged: Value = {}
            for one in [*start, *written]:
                merged = _merged(merged, one)
            return merged


def _merged(low: Value, high: Value) -> Value:
    if not (isinstance(low, dict) and isinstance(high, dict)):
        return high
    both = dict(low)
    for key, value in high.items():
        both[key] = _merged(low[key], value) if key in low else value
    return both
