"""Pipelines and loops of made playbooks: tasks, their policies, what they write."""

from __future__ import annotations

from random import Random

from noetl_core.values import Value

Doc = dict[str, Value]

ERROR = "{{ outcome.status == 'error' }}"
RETRYABLE = "{{ outcome.status == 'error' and outcome.error.retryable }}"
REDUCERS = ("append", "sum", "min", "max", "count", "last", "merge")


class Tasks:
    """Fills steps with a pipeline and perhaps a loop; gathers how often each task shall fail."""

    def __init__(self, random: Random, is_line: bool) -> None:
        self.random = random
        self.is_line = is_line
        self.rates: dict[str, int] = {}
        self.accumulates = False
        self.limited = self.chance(25)
        """Whether `max_task_runs` is small: then jumps may go on for ever (rule K23)."""

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def fill(self, step: Doc, args: Doc) -> None:
        name = str(step["step"])
        loop = self.loop(name) if self.chance(40) else None
        if loop is not None:
            step["loop"] = loop
        labels = [f"t{index}" for index in range(self.random.randint(1, 2 if loop else 3))]
        reads = {**args, "i": "{{ iter.index | default(0) }}"} if loop else args
        step["tool"] = [self.task(name, labels, at, reads, loop) for at in range(len(labels))]

    # Loops

    def loop(self, step: str) -> Doc:
        self.reducer = self.random.choice(REDUCERS) if self.chance(50) else None
        if self.chance(30):
            rows: list[Value] = [[1, 2], [], [3], [4, 5, 6]][: self.random.randint(1, 4)]
            inner = self.level(step, "{{ iter.row }}", "cell")
            return {**self.level(step, rows, "row"), "loop": inner}
        length = self.random.choice([0, 1, 2, 3, 3, 5, 8])
        items: list[Value] = list(range(10, 10 + length))
        return self.level(step, items, "item")

    def level(self, step: str, items: Value, iterator: str) -> Doc:
        spec: Doc = {"mode": self.random.choice(["sequential", "parallel"])}
        policy: Doc = {}
        if self.chance(50):
            policy["exec"] = self.random.choice(["local", "distributed"])
        if spec["mode"] == "parallel":
            window: list[Value] = [1, 2, 3, 10, "{{ workload.window }}"]
            spec["max_in_flight"] = self.random.choice(window)
        if self.reducer:
            policy["reducers"] = {f"r_{step}": self.reducer}
        spec["policy"] = policy
        return {"in": items, "iterator": iterator, "spec": spec}

    def has_order(self, loop: Doc | None) -> bool:
        """Whether one thing happens after the other, so that `ctx` may be read and counted up."""
        while loop is not None:
            spec, inner = loop["spec"], loop.get("loop")
            if isinstance(spec, dict) and spec["mode"] == "parallel":
                return False
            loop = inner if isinstance(inner, dict) else None
        return self.is_line

    # Tasks

    def task(self, step: str, labels: list[str], at: int, args: Doc, loop: Doc | None) -> Doc:
        label = labels[at]
        if self.chance(15):
            task: Doc = {"name": label, "kind": "noop"}
            if self.chance(50):
                task["result"] = {"v": self.random.randint(0, 6)}
        else:
            before: Doc = {"p": "{{ _prev.v | default(0) }}"} if at else {}
            reads: Doc = {**args, **before, **self.more(step, loop)}
            task = {"name": label, "kind": "python", "code": "result = 1", "args": reads}
            if self.chance(12):
                task = {"name": label, "kind": "playbook", "playbook": "other", "workload": reads}
            self.rates[f"{step}/{label}"] = self.random.choice([0, 0, 15, 35, 60])
        policy = self.policy(step, labels, at, loop)
        return {**task, "spec": {"policy": policy}} if policy else task

    def more(self, step: str, loop: Doc | None) -> Doc:
        if self.chance(4):
            return {"oops": "{{ ctx.never.there }}"}
        if self.has_order(loop) and self.chance(30):
            # A second delivery reads what the first one wrote.
            self.accumulates |= step == "s0"
            return {"c": "{{ ctx.k_s0 | default(0) }}"}
        return {"again": "{{ _attempt }}"} if self.chance(15) else {}

    def policy(self, step: str, labels: list[str], at: int, loop: Doc | None) -> Doc | None:
        rules: list[Value] = []
        if self.chance(35):
            attempts = self.random.randint(1, 3)
            rules.append(self.rule(RETRYABLE, self.retry(attempts)))
        if self.chance(15):
            polls = "{{ outcome.result.v | default(9) < 2 }}"
            rules.append(self.rule(polls, self.retry(self.random.randint(1, 3))))
        if self.chance(15):
            rules.append(self.jump(labels, at))
        if self.chance(20):
            rules.append(self.rule(ERROR, {"do": "continue"}))
        if self.chance(12):
            rules.append(self.rule("{{ outcome.result.v > 4 }}", {"do": "break"}))
        if self.chance(10):
            rules.append(self.rule("{{ outcome.result.v == 0 }}", {"do": "fail", "message": "no"}))
        if self.chance(45):
            rules.append(self.writing(step, loop))
        if not rules:
            return None
        if self.chance(50):
            rules.append(self.rule("{{ outcome.status == 'ok' }}", {"do": "continue"}))
            rules.append({"else": {"then": {"do": self.random.choice(["fail", "continue"])}}})
        elif self.chance(25):
            return {"rules": rules, "on_unmatched": "fail"}
        return {"rules": rules}

    def rule(self, when: str, then: Doc) -> Value:
        return {"when": when, "then": then}

    def retry(self, attempts: int) -> Doc:
        backoff = self.random.choice(["none", "linear", "exponential"])
        return {"do": "retry", "attempts": attempts, "delay": 0.5, "backoff": backoff}

    def jump(self, labels: list[str], at: int) -> Value:
        """Bounded by a counter in `iter`, or only by `max_task_runs`."""
        counter = f"c_{labels[at]}"
        to = self.random.choice(labels)
        if self.limited and self.chance(50):
            return self.rule("{{ outcome.status == 'ok' }}", {"do": "jump", "to": to})
        bound = f"(iter.{counter} | default(0)) < {self.random.randint(1, 2)}"
        then: Doc = {
            "do": "jump",
            "to": to,
            "set_iter": {counter: f"{{{{ (iter.{counter} | default(0)) + 1 }}}}"},
        }
        return self.rule(f"{{{{ {bound} and outcome.result.v | default(1) > 0 }}}}", then)

    def writing(self, step: str, loop: Doc | None) -> Value:
        then: Doc = {"do": "continue", "set_ctx": self.writes(step, loop)}
        return self.rule("{{ outcome.status == 'ok' }}", then)

    def writes(self, step: str, loop: Doc | None) -> Doc:
        if loop is not None and self.reducer:
            value: Value = "{{ outcome.result.v | default(1) }}"
            if self.reducer == "merge":
                value = {"last": "{{ iter.index }}", "by": {"x": "{{ iter.index }}"}}
            return {f"r_{step}": value}
        if not self.has_order(loop):
            return {f"k_{step}": 1}
        if self.chance(40):
            self.accumulates = True
            return {f"k_{step}": f"{{{{ (ctx.k_{step} | default(0)) + 1 }}}}"}
        return {f"k_{step}": "{{ outcome.result.v | default(5) }}"}
