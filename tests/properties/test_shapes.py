"""Shapes that chance meets too seldom, each under many heavy schedules, beside the reference."""

from __future__ import annotations

from random import Random

import pytest

from noetl_core.values import Value
from tests.support.comparison import compare
from tests.support.generated import Doc, Made, loaded
from tests.support.profile import IS_NIGHTLY
from tests.support.reference import Reference
from tests.support.script import Script
from tests.support.simulation import Simulation
from tests.support.simulation_faults import Faults

SCHEDULES = 2000 if IS_NIGHTLY else 40
HEAVY = Faults(
    steps=300, lost_post=6, lost_answer=8, double_post=8, worker=10, operator=4, suspend=1
)


def task(name: str = "t0", **more: Value) -> Doc:
    reads: Doc = {"n": "{{ args.n | default(0) }}", "i": "{{ iter.index | default(0) }}"}
    return {"name": name, "kind": "python", "code": "result = 1", "args": reads, **more}


def child(name: str = "t0") -> Doc:
    workload: Doc = {"i": "{{ iter.index | default(0) }}"}
    return {"name": name, "kind": "playbook", "playbook": "other", "workload": workload}


def loop(items: Value, iterator: str = "item", inner: Doc | None = None, **spec: Value) -> Doc:
    made: Doc = {"in": items, "iterator": iterator, "spec": spec}
    return made if inner is None else {**made, "loop": inner}


def to(*steps: str, when: Value = None, mode: str = "inclusive") -> Doc:
    guard: Doc = {} if when is None else {"when": when}
    arcs: list[Value] = [
        {"step": step, "args": {"n": number}, **guard} for number, step in enumerate(steps)
    ]
    return {"spec": {"mode": mode}, "arcs": arcs}


ITEMS: list[Value] = [1, 2, 3, 4]
ROWS: list[Value] = [[1, 2], [], [3], [4, 5, 6]]
LOCAL: Doc = {"exec": "local"}
BEST: Doc = {"policy": {"failure": {"mode": "best_effort"}}}
APPEND: Doc = {"do": "continue", "set_ctx": {"all": "{{ outcome.result.v }}"}}
WRITES: Doc = {"policy": {"rules": [{"when": "{{ outcome.status == 'ok' }}", "then": APPEND}]}}

SHAPES: dict[str, list[Doc]] = {
    "children in a local loop": [
        {"step": "a", "loop": loop(ITEMS, mode="sequential"), "tool": [child(), task("t1")]},
    ],
    "children in a parallel local loop": [
        {"step": "a", "loop": loop(ITEMS, mode="parallel", policy=LOCAL), "tool": [child()]},
    ],
    "children in a distributed loop with a loop inside": [
        {
            "step": "a",
            "loop": loop(ROWS, "row", loop("{{ iter.row }}", "cell"), mode="parallel"),
            "tool": [child()],
        },
    ],
    "two distributed levels": [
        {
            "step": "a",
            "loop": loop(
                ROWS, "row", loop("{{ iter.row }}", "cell", mode="parallel", max_in_flight=2),
                mode="parallel", max_in_flight=2,
            ),
            "tool": [task()],
        },
    ],
    "a local loop that appends": [
        {
            "step": "a",
            "loop": loop(ROWS, "row", loop("{{ iter.row }}", "cell"),
                         policy={"reducers": {"all": "append"}}),
            "tool": [task(spec=WRITES)],
        },
    ],
    "a best-effort loop in a diamond": [
        {"step": "a", "next": to("b", "c")},
        {"step": "b", "spec": BEST, "loop": loop(ITEMS, mode="parallel"), "tool": [task()],
         "next": to("d")},
        {"step": "c", "tool": [task()], "next": to("d", when=True)},
        {"step": "d", "spec": {"join": "all"}, "tool": [task()]},
    ],
    "a cycle into a fork": [
        {"step": "a", "tool": [task()], "next": {"spec": {"mode": "inclusive"}, "arcs": [
            {"step": "a", "when": "{{ (args.n | default(0)) < 3 }}",
             "args": {"n": "{{ (args.n | default(0)) + 1 }}"}},
            {"step": "b", "args": {"n": "{{ args.n | default(0) }}"}}]}},
        {"step": "b", "tool": [task(), child("t1")]},
    ],
}  # fmt: skip


def made(workflow: list[Doc], rates: dict[str, int], final: bool) -> Made:
    spec: Doc = {"policy": {"failure": {"mode": "best_effort"}}}
    steps: list[Value] = [*workflow]
    if final:
        spec["final_step"] = "last"
        steps.append({"step": "last", "tool": [child()]})
    document: Doc = {
        "metadata": {"name": "shape"},
        "executor": {"spec": spec},
        "workflow": steps,
    }
    playbook, script = loaded(document), Script(7, rates)
    end = Reference(playbook, script).run()
    return Made(document, playbook, script, (), False, True, end)


@pytest.mark.parametrize("rate", [0, 30])
@pytest.mark.parametrize("shape", SHAPES)
def test_E3_E6_I4_K37_a_shape_ends_as_the_reference_under_heavy_faults(
    shape: str, rate: int
) -> None:
    rates = {f"{step}/t0": rate for step in "abcd"}
    found = made(SHAPES[shape], rates, final=True)
    for seed in range(SCHEDULES):
        simulation = Simulation(found, Random(seed), HEAVY, 2)
        log = simulation.run()
        simulation.replay()
        state = simulation.memory.executions[simulation.execution_id].state
        compare(found, state, log)
