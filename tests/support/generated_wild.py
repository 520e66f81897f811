"""Made playbooks with what no naive interpreter follows: time, lost workers, references, conflicts.

Nothing says how these end; that they do, and that their logs hold every invariant, is what is
tested with them.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from random import Random

from noetl_core.values import Value
from tests.support.generated import Doc, Made, loaded, made


def wild(random: Random) -> Made:
    """A made playbook, changed in many places at random."""
    found = made(random)
    document = copy.deepcopy(found.document)
    change = _Change(random)
    change.executor(document)
    for step in _records(document["workflow"]):
        change.step(step, is_final=step["step"] == "final")
    if random.randrange(100) < 30:
        document["keychain"] = [{"name": "key", "kind": "secret"}]
    return replace(found, document=document, playbook=loaded(document))


def _records(value: Value) -> list[Doc]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _within(holder: Doc, *path: str) -> Doc:
    """The mapping at a path, made where it is missing."""
    for key in path:
        found = holder.setdefault(key, {})
        assert isinstance(found, dict)
        holder = found
    return holder


class _Change:
    def __init__(self, random: Random) -> None:
        self.random = random

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def executor(self, document: Doc) -> None:
        policy = _within(document, "executor", "spec", "policy")
        limits = _within(policy, "limits")
        if self.chance(15):
            limits["max_iterations"] = self.random.randint(1, 4)
        if self.chance(15):
            limits["max_step_runs"] = self.random.randint(1, 6)
        if self.chance(30):
            policy["results"] = self.random.choice(
                [{"inline_max_bytes": 12}, {"reference_first": True}]
            )

    def step(self, step: Doc, is_final: bool) -> None:
        policy = _within(step, "spec", "policy")
        if self.chance(25):
            policy["lifecycle"] = self.lifecycle()
        admit = policy.get("admit")
        if isinstance(admit, dict) and admit.get("on_deny") == "wait" and self.chance(60):
            admit["deadline_s"] = self.random.choice([2, 15])
        loop = step.get("loop")
        if isinstance(loop, dict) and not is_final:
            self.loop(loop)
        for task in _records(step.get("tool")):
            self.task(task, isinstance(loop, dict))
        following = step.get("next")
        if isinstance(following, dict):
            for arc in _records(following["arcs"]):
                self.arc(arc)

    def lifecycle(self) -> Value:
        return self.random.choice(
            [
                {"deadline_s": 3},
                {"deadline_s": 20, "timeout_s": 4},
                {"max_redeliveries": 0},
                {"max_redeliveries": 1},
                {"on_worker_lost": "fail"},
            ]
        )

    def loop(self, loop: Doc) -> None:
        if self.chance(30) and "loop" not in loop:
            loop["in"] = "{{ args.list | default([1, 2, 3]) }}"
        if self.chance(10):
            _within(loop, "spec")["max_in_flight"] = "{{ args.n | default(0) }}"

    def task(self, task: Doc, in_loop: bool) -> None:
        spec = task.get("spec")
        if not (in_loop and isinstance(spec, dict)):
            return
        policy = spec["policy"]
        assert isinstance(policy, dict)
        for rule in _records(policy["rules"]):
            then = rule.get("then")
            if isinstance(then, dict) and "set_ctx" in then and self.chance(70):
                then["set_ctx"] = {"shared": self.random.choice(["{{ iter.index }}", 1])}

    def arc(self, arc: Doc) -> None:
        args = arc["args"]
        assert isinstance(args, dict)
        if self.chance(40):
            args["list"] = "{{ event.result }}"
        if self.chance(3):
            arc["when"] = "{{ event.name + 1 > 2 }}"
        if self.chance(3):
            args["bad"] = "{{ event.result.nothing.here }}"
