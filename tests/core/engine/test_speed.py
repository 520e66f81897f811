"""What a decision costs. The bounds leave room for busy machines; the usual figures are far below.

Processor time is measured, and the best of several rounds counts.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import orjson

from noetl_core.engine import Program, decide, ids
from noetl_core.engine.state import State
from noetl_core.engine.triggers import EndStatus, IterationEnd, Reported, RunEnd, Start, Store
from noetl_core.load import load
from noetl_core.values import Value
from tests.support.sim import BEGIN, EXECUTION, Sim, workflow


def microseconds(call: Callable[[], object], times: int = 500, rounds: int = 7) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = process_time()
        for _ in range(times):
            call()
        best = min(best, process_time() - start)
    return best / times * 1e6


def test_a_finished_step_with_two_guarded_arcs() -> None:
    sim = Sim(
        workflow("""
- step: a
  tool: {kind: noop}
  next:
    arcs:
      - {step: b, when: "{{ event.name == 'step.failed' }}"}
      - {step: b, when: "{{ event.result.n > 1 }}", args: {n: "{{ event.result.n }}"}}
- {step: b, tool: {kind: noop}}
""")
    ).start()
    sim.begin("a")
    end = RunEnd(status=EndStatus.OK, result={"n": 2})
    report = Reported(lease_id=sim.lease("a").lease_id, epoch=1, first=1, end=end)
    state = sim.state

    def step() -> object:
        return decide(sim.program, state, report, BEGIN, sim)

    assert [f.name for f in decide(sim.program, state, report, BEGIN, sim).facts] == [
        "step.done",
        "next.evaluated",
        "step.scheduled",
    ]
    assert microseconds(step) < 120


class Memory:
    """Answers look-ups of one loop."""

    def __init__(self) -> None:
        self.results: dict[str, Value] = {}
        self.ends: list[IterationEnd] = []

    def result(self, key: str) -> Value | None:
        return self.results.get(key)

    def iterations(self, run_id: str) -> list[IterationEnd]:
        return self.ends

    def frames(self, run_id: str) -> dict[str, int]:
        return {}


def test_an_iteration_costs_the_same_in_a_long_loop_and_the_state_does_not_grow() -> None:
    text = workflow("""
- step: a
  loop: {in: "{{ workload.rows }}", iterator: r, spec: {mode: parallel, max_in_flight: 10}}
  tool: {kind: noop}
""")
    total = 20_000
    playbook = load(text)[0].playbook
    program = Program.of(
        playbook,
        execution_id=EXECUTION,
        name="n",
        namespace="ns",
        workload={"rows": list(range(total))},
    )
    memory = Memory()
    decision = decide(program, State(), Start(), BEGIN, memory)
    for effect in decision.effects:
        if isinstance(effect, Store):
            memory.results[effect.key] = orjson.loads(effect.content)
    state = decision.state
    run_id = next(iter(state.runs))
    size = len(orjson.dumps(state))
    spent: list[float] = []
    started = process_time()
    for n in range(total - 1):
        end = RunEnd(status=EndStatus.OK, result="r" * 50)
        lease_id = ids.iteration_lease(run_id, str(n))
        report = Reported(lease_id=lease_id, epoch=1, first=0, end=end)
        state = decide(program, state, report, BEGIN, memory).state
        if n % 1000 == 999:
            spent.append(process_time() - started)
            started = process_time()
            assert len(orjson.dumps(state)) < size + 200
    assert min(spent[-5:]) < 2 * min(spent[:5])
