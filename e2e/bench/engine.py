"""Measures the engine: one finished step, and a loop of a million iterations.

    python e2e/bench/engine.py [ITERATIONS]

Prints a table, in time of the processor, and ends with 1 where a goal is missed. Nothing is stored:
what is measured is `decide` with the `evolve` inside it, and that neither time nor memory grows
with a loop's length.
"""

from __future__ import annotations

import json
import resource
import sys
from collections import deque
from collections.abc import Sequence
from time import process_time

from noetl_core.engine import Program, decide
from noetl_core.engine.events import IterationStarted, StepStarted, TaskDone, TaskStarted
from noetl_core.engine.state import State
from noetl_core.engine.triggers import (
    Decision,
    EndStatus,
    Enqueue,
    IterationEnd,
    Needed,
    Reported,
    RunEnd,
    Start,
    Store,
    Trigger,
)
from noetl_core.load import load
from noetl_core.values import Value

EXECUTION = "00000000-0000-7000-8000-000000000001"
NOW = "2026-01-01T00:00:00.000000Z"
STEP_GOAL_US = 60.0
TENTH_GOAL = 1.2
MEMORY_GOAL_MB = 30.0
"""How much more may be in use after the last iterations than after the first tenth."""

STEP = """
metadata: {name: step}
workflow:
  - step: load
    tool: [{name: one, kind: noop}]
    next:
      arcs:
        - step: large
          when: "{{ event.result.rows > 100 }}"
          args: {rows: "{{ event.result.rows }}"}
        - step: small
          when: "{{ event.result.rows <= 100 }}"
          args: {rows: "{{ event.result.rows }}"}
  - {step: large, tool: [{name: one, kind: noop}]}
  - {step: small, tool: [{name: one, kind: noop}]}
"""

LOOP = """
metadata: {name: loop}
executor: {spec: {policy: {limits: {max_iterations: 2000000}}}}
workflow:
  - step: each
    loop:
      in: "{{ workload.rows }}"
      iterator: row
      spec: {mode: parallel, max_in_flight: 10}
    tool: [{name: one, kind: noop}]
"""


class Results:
    """A lookup with what decisions stored; contents are parsed once."""

    def __init__(self) -> None:
        self.known: dict[str, Value] = {}

    def result(self, key: str) -> Value | None:
        return self.known.get(key)

    def iterations(self, run_id: str) -> Sequence[IterationEnd] | None:
        return None

    def frames(self, run_id: str) -> dict[str, int] | None:
        return None


def program(text: str, workload: dict[str, Value] | None = None) -> Program:
    (found,) = load(text)
    assert found.playbook is not None, found.problems
    return Program.of(
        found.playbook, execution_id=EXECUTION, name="bench", namespace="here", workload=workload
    )


def step_us(rounds: int = 20, each: int = 500) -> float:
    """The best of some rounds: other work on the machine only ever adds."""
    made, results = program(STEP), Results()
    state = decide(made, State(execution_id=EXECUTION), Start(), NOW, results).state
    (run_id,) = state.runs
    started = StepStarted(step="load", run_id=run_id, worker="w")
    begun = Reported(lease_id=run_id, epoch=1, first=0, facts=(started,))
    state = decide(made, state, begun, NOW, results).state
    end = RunEnd(status=EndStatus.OK, result={"rows": 7})
    report = Reported(lease_id=run_id, epoch=1, first=1, end=end)
    best = float("inf")
    for _ in range(rounds):
        before = process_time()
        for _ in range(each):
            decision = decide(made, state, report, NOW, results)
        best = min(best, (process_time() - before) / each)
    names = [event.fact.name for event in decision.events]
    assert names == ["step.done", "next.evaluated", "step.scheduled"], names
    return best * 1e6


def finished(command: Enqueue) -> Reported:
    """All that a worker reports of one iteration."""
    here = {"step": command.step, "run_id": command.run_id, "iteration": command.iteration}
    facts = (
        IterationStarted(**here, worker="w"),
        TaskStarted(**here, task="one", attempt=1, kind="noop"),
        TaskDone(**here, task="one", attempt=1, result=1),
    )
    end = RunEnd(status=EndStatus.OK, result=1)
    return Reported(lease_id=command.lease_id, epoch=1, first=0, facts=facts, end=end)


def memory_mb() -> float:
    """What is in use now; the peak where the system does not say."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


SLICES = 20


def loop_tenths(count: int) -> list[tuple[float, float]]:
    """Seconds per iteration and memory of each tenth of a loop: the best of its slices, since other
    work on the machine only ever adds. The last iterations are left in flight."""
    rows: list[Value] = list(range(count + 20))
    made, results = program(LOOP, {"rows": rows}), Results()
    queue: deque[Enqueue] = deque()
    state = _decided(made, State(execution_id=EXECUTION), Start(), results, queue)
    tenths = []
    for _ in range(10):
        best = float("inf")
        for _ in range(SLICES):
            before = process_time()
            for _ in range(count // 10 // SLICES):
                state = _decided(made, state, finished(queue.popleft()), results, queue)
            best = min(best, (process_time() - before) / (count // 10 // SLICES))
        tenths.append((best, memory_mb()))
    return tenths


def _decided(
    made: Program, state: State, trigger: Trigger, results: Results, queue: deque[Enqueue]
) -> State:
    try:
        decision: Decision = decide(made, state, trigger, NOW, results)
    except Needed as needed:
        raise AssertionError(f"nothing should be missing: {needed}") from None
    for effect in decision.effects:
        if isinstance(effect, Store):
            results.known[effect.key] = json.loads(effect.content)
        elif isinstance(effect, Enqueue):
            queue.append(effect)
    return decision.state


def main(count: int = 1_000_000) -> int:
    step = step_us()
    print(f"{'one finished step, two guarded arcs':44} {step:10.1f} µs   goal < {STEP_GOAL_US:.0f}")
    tenths = loop_tenths(count)
    ratio = tenths[-1][0] / tenths[0][0]
    grown = tenths[-1][1] - tenths[0][1]
    for number, (seconds, memory) in enumerate(tenths, 1):
        each = seconds * 1e6
        title = f"iterations, tenth {number} of {count:,}"
        print(f"{title:44} {each:10.1f} µs   {memory:8.1f} MB")
    print(f"{'last tenth : first tenth':44} {ratio:10.2f}      goal ≤ {TENTH_GOAL}")
    print(
        f"{'memory grown since the first tenth':44} {grown:10.1f} MB   goal < {MEMORY_GOAL_MB:.0f}"
    )
    good = step < STEP_GOAL_US and ratio <= TENTH_GOAL and grown < MEMORY_GOAL_MB
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
