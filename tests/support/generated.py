"""Playbooks made by chance, for the comparison of engine and reference.

`made(random)` draws from any `random.Random`: one with a seed (simulation), or Hypothesis' own
(then failures shrink). Two flavours: a `line` has one token at a time, so everything about it is
fixed; a `net` forks, merges and joins, and reads only what no order of events can change.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from noetl_core.load import load
from noetl_core.model import Playbook
from noetl_core.values import Value
from tests.support.generated_tasks import Tasks
from tests.support.reference import End, Reference
from tests.support.script import Script

MOST_RUNS = 40
"""A playbook that would run more steps is drawn again, smaller: simulations have to be quick."""

Doc = dict[str, Value]


@dataclass(frozen=True)
class Made:
    document: Doc
    playbook: Playbook
    script: Script
    patches: tuple[Doc, ...]
    """Writes from outside that open its gates; they may come at any time."""
    is_line: bool
    repeats: bool
    """Whether running a pipeline twice (a lost worker) writes the same `ctx`."""
    end: End
    """What the reference says."""


def made(random: Random) -> Made:
    for size in (6, 5, 4, 3, 2):
        found = _Maker(random, size).made()
        if found.end.counts["total"] <= MOST_RUNS:
            return found
    return _Maker(random, 1).made()


def loaded(document: Doc) -> Playbook:
    """A document that must load. The analysis of A6 is left out: nets that it calls hopeless, such
    as a join that never fills, have to end well too."""
    (found,) = load(json.dumps(document))
    assert found.playbook is not None, [str(p) for p in found.problems]
    return found.playbook


class _Maker:
    def __init__(self, random: Random, size: int) -> None:
        self.random = random
        self.is_line = random.random() < 0.35
        self.names = [
            f"s{index}"
            for index in range(random.randint(min(size, 1 if self.is_line else 3), size))
        ]
        self.joins = self.choose_joins()
        self.gates: list[str] = []
        self.tasks = Tasks(random, self.is_line)
        self.ordered = False
        """Of the step that is made: whether all it does has one order."""

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def choose_joins(self) -> set[str]:
        if self.is_line:
            return {name for name in self.names[1:] if self.chance(5)}
        return {name for name in self.names[2:] if self.chance(40)}

    def made(self) -> Made:
        workflow: list[Value] = [self.step(index) for index in range(len(self.names))]
        spec = self.executor_spec(workflow)
        document: Doc = {
            "metadata": {"name": "made"},
            "executor": {"spec": spec},
            "workload": {"flag": self.chance(50), "window": self.random.randint(1, 3)},
            "workflow": workflow,
        }
        playbook = loaded(document)
        script = Script(self.random.randrange(1 << 30), self.tasks.rates)
        patches: tuple[Doc, ...] = tuple({gate: True} for gate in self.gates)
        end = Reference(playbook, script, patches=patches).run()
        self.note_races(end, json.dumps(document))
        repeats = not self.tasks.accumulates
        return Made(document, playbook, script, patches, self.is_line, repeats, end)

    def note_races(self, end: End, text: str) -> None:
        """Reducers of two runs of one step meet in an order that nothing fixes, and whoever reads
        what a failed parallel loop may or may not have written has a choice of ends."""
        end.ambiguous |= any(f"ctx.{key} " in text for key in end.uncertain)
        if not self.is_line:
            end.uncertain |= {f"r_{step}" for step, runs in end.runs.items() if runs > 1}
        end.uncertain |= set(self.gates)

    def executor_spec(self, workflow: list[Value]) -> Doc:
        spec: Doc = {}
        limits: Doc = {"max_task_runs": 12} if self.tasks.limited else {}
        if self.is_line and self.chance(20):
            limits["max_step_runs"] = self.random.randint(1, 6)
        spec["policy"] = {"limits": limits}
        if self.chance(40):
            spec["policy"]["failure"] = {"mode": "best_effort"}  # type: ignore[index]
        if self.chance(30):
            workflow.append(self.final())
            spec["final_step"] = "final"
        if self.chance(40):
            spec["result"] = self.random.choice(self.results())
        return spec

    def results(self) -> list[Value]:
        fixed: list[Value] = [{"flag": "{{ flag }}"}, "{{ ctx.k_s0 | default('none') }}"]
        if not self.is_line:
            return fixed
        return [*fixed, "{{ event.result }}", "{{ args.n | default(0) }}", "{{ ctx.missing }}"]

    def final(self) -> Doc:
        step: Doc = {"step": "final"}
        self.tasks.fill(step, args={"phase": "{{ args.phase }}"})
        return step

    # Steps

    def step(self, index: int) -> Doc:
        name = self.names[index]
        step: Doc = {"step": name}
        spec: Doc = {}
        policy: Doc = {}
        if name in self.joins:
            spec["join"] = {"mode": "all", "at_end": self.random.choice(["fail", "fire", "drop"])}
        if self.chance(20):
            policy["admit"] = self.admit(name)
        if self.chance(20):
            policy["failure"] = {"mode": "best_effort"}
        if not self.chance(15):
            reads: Doc = {"n": "{{ args.n | default(0) }}"}
            if name in self.joins:
                reads["via"] = "{{ args.via | default('') }}"
            self.tasks.fill(step, args=reads)
        loop = step.get("loop")
        self.ordered = self.tasks.has_order(loop if isinstance(loop, dict) else None)
        arcs = self.arcs(index)
        if arcs or "tool" not in step:
            step["next"] = {"spec": {"mode": self.mode()}, "arcs": arcs}
        step["spec"] = {**spec, "policy": policy}
        return step

    def mode(self) -> str:
        return "exclusive" if self.is_line or self.chance(30) else "inclusive"

    def admit(self, name: str) -> Doc:
        if self.chance(40):
            gate = f"gate_{name}"
            self.gates.append(gate)
            opens: Value = {
                "when": f"{{{{ ctx.{gate} | default(false) }}}}",
                "then": {"allow": True},
            }
            return {"on_deny": "wait", "rules": [opens]}
        limit = self.random.randint(0, 2)
        first: Value = {
            "when": f"{{{{ args.n | default(0) > {limit} }}}}",
            "then": {"allow": self.chance(50)},
        }
        other: Value = {"else": {"then": {"allow": self.chance(80)}}}
        return {"rules": self.random.choice([[first, other], [first], [other]])}

    # Arcs

    def arcs(self, index: int) -> list[Value]:
        arcs: list[Value] = []
        if self.chance(25):
            arcs.append(self.back(index))
        targets = self.names[index + 1 :]
        least = 0 if self.is_line else min(2, len(targets))
        most = min(len(targets), 2 if self.is_line else 3)
        for target in self.random.sample(targets, self.random.randint(least, most)):
            arcs.append(self.arc(index, target))
            if not self.is_line and self.chance(8):
                arcs.append(self.arc(index, target))
        return arcs

    def back(self, index: int) -> Value:
        """A cycle that the token's own counter bounds (rule C10)."""
        target = self.random.choice(self.names[: index + 1])
        most = self.random.randint(1, 2)
        limits = f"(args.n | default(0)) < {most}"
        return {"step": target, "when": f"{{{{ {limits} }}}}", "args": self.args(index)}

    def arc(self, index: int, target: str) -> Value:
        arc: Doc = {"step": target, "args": self.args(index)}
        when = self.random.choice(self.guards())
        return arc if when is None else {**arc, "when": when}

    def args(self, index: int) -> Value:
        """A counter that bounds cycles, and where it came from: so the merge in a join shows."""
        return {
            "n": "{{ (args.n | default(0)) + 1 }}",
            "via": f"{index}/{self.random.randrange(9)}",
        }

    def guards(self) -> list[Value]:
        fixed: list[Value] = [
            None,
            None,
            None,
            None,
            True,
            "{{ event.status == 'ok' }}",
            "{{ event.name == 'step.failed' }}",
            "{{ event.result.v | default(9) > 3 }}",
            "{{ event.result.v > 1 }}",
            "{{ workload.flag }}",
            "{{ event.loop.failed | default(0) == 0 }}",
        ]
        if self.ordered:
            # Of a parallel loop that fails it is open which iteration's error is told.
            fixed.append("{{ event.error.kind == 'timeout' }}")
        if self.is_line:
            fixed += [
                "{{ ctx.k_s0 | default(0) is number }}",
                "{{ (ctx.r_s0 | default([])) is defined }}",
                "{{ ctx.k_s1 | default(0) > 2 }}",
            ]
        return fixed


def repeat_until(random: Random, fits: Callable[[Made], bool], tries: int = 200) -> Made:
    """The first made playbook that fits: for tests that want one of a kind."""
    for _ in range(tries):
        found = made(random)
        if fits(found):
            return found
    raise AssertionError(f"no fitting playbook in {tries} tries")
