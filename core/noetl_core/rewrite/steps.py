"""Old steps (`case`, `pipe`, `catch`, `finally`) and old task shapes → canonical steps and
tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable

from noetl_core.rewrite.rules import error_fails, rule_of
from noetl_core.rewrite.text import (
    as_list,
    as_mapping,
    bare_condition,
    braced,
    canonical,
    from_prev,
    say,
)
from noetl_core.values import Value


def tool_keys(tool: dict[str, Value]) -> dict[str, Value]:
    names = {"query": "command", "credential": "auth", "input": "args"}
    keys: dict[str, Value] = {}
    for key, value in tool.items():
        if key == "output_select":
            keys["spec"] = {"result": {"inline_max_bytes": 65536}}
        else:
            keys[names.get(key, key)] = canonical(value)
    return keys


def named_task(label: str, body: Value) -> str:
    return say("write", [{"name": label, **as_mapping(body)}])


def named_tasks(labelled: dict[str, Value]) -> str:
    tasks: list[Value] = [{"name": label, **as_mapping(body)} for label, body in labelled.items()]
    return say("write", {"tool": tasks})


def flat_tool(value: Value, parent: Value) -> str:
    held = {k: v for k, v in as_mapping(parent).items() if k != "tool"}
    return say("write", [{**held, **tool_keys(as_mapping(value))}])


def router(value: Value) -> str:
    """`next: end` or `next: [{step: …}]` → the router."""
    return say("write", {"next": {"spec": {"mode": _mode_of(value)}, "arcs": arcs_of(value)}})


def _mode_of(value: Value) -> str:
    targets = [item for item in as_list(value) if "when" not in as_mapping(item)]
    return "inclusive" if len(targets) > 1 else "exclusive"


def lone_arc(value: Value, parent: Value) -> str:
    return say("write", {"next": {"arcs": arcs_of(parent)}})


def arcs_of(value: Value, guard: str = "") -> list[Value]:
    arcs: list[Value] = []
    for item in value if isinstance(value, list) else [value]:
        arc: dict[str, Value] = {}
        held = as_mapping(item)
        arc["step"] = held.get("step", item if isinstance(item, str) else "some_step")
        conditions = [
            c for c in (guard, bare_condition(held["when"]) if "when" in held else "") if c
        ]
        if conditions:
            arc["when"] = braced(" and ".join(conditions))
        for old in ("args", "with", "input"):
            if old in held:
                arc["args"] = canonical(held[old])
        if isinstance(held.get("then"), list | dict | str) and "step" not in held:
            arcs += arcs_of(
                held["then"], (arc.get("when") and bare_condition(arc["when"])) or guard
            )
            continue
        arcs.append(arc)
    return arcs


def step_of(value: Value, parent: Value) -> str:
    """A step written with `case`, `pipe`, `catch`, `finally` → the canonical step."""
    return say("the same step in v10", [_step(as_mapping(parent))])


def pipe(value: Value, parent: Value) -> str:
    """`pipe` with the `catch` and `finally` beside it → the tasks, their policies, the router."""
    held = as_mapping(parent)
    if "step" in held:
        return step_of(value, parent)
    made = _step({"pipe": value, **held})
    return say("write", {key: made[key] for key in ("tool", "next") if key in made})


def catch(value: Value, parent: Value) -> str:
    tasks = [t for t in _pipeline(as_mapping(parent)) if "policy" in as_mapping(t.get("spec"))]
    if tasks:
        policies: list[Value] = [{"name": t["name"], "spec": t["spec"]} for t in tasks]
        return say("write it in the policies of the tasks", policies)
    rules: list[Value] = []
    for item in as_list(as_mapping(value).get("cond")):
        rules += rule_of(as_mapping(item), "outcome.status == 'error'")
    if not rules or "else" not in as_mapping(rules[-1]):
        rules += error_fails()
    lead = "write it in the policy of each task that it concerns"
    return say(lead, {"spec": {"policy": {"rules": rules}}})


def finally_router(value: Value, parent: Value) -> str:
    arcs = _routes({"finally": value}, "") or [{"step": "some_step"}]
    return say("write", {"next": {"spec": {"mode": "exclusive"}, "arcs": arcs}})


def _step(old: dict[str, Value]) -> dict[str, Value]:
    step: dict[str, Value] = {"step": old.get("step", "some_step")}
    step |= {k: old[k] for k in ("desc", "loop") if k in old}
    tasks: list[dict[str, Value]] = []
    arcs: list[Value] = []
    for block, guard in _blocks(old):
        made = _pipeline(block)
        if made:
            tasks += made
        arcs += _routes(block, guard)
        _keep(block, tasks)
    if not tasks and "tool" in old:
        step["tool"] = canonical(old["tool"])
    elif tasks:
        step["tool"] = list[Value](tasks)
    if not isinstance(old.get("next"), dict):
        arcs += arcs_of(old["next"]) if "next" in old else []
    else:
        step["next"] = old["next"]
    if arcs:
        step["next"] = {"spec": {"mode": "exclusive"}, "arcs": arcs}
    return step


def _blocks(old: dict[str, Value]) -> Iterable[tuple[dict[str, Value], str]]:
    """Each `case[].then` (or the step itself) with the guard its routes keep."""
    for item in as_list(old.get("case")):
        held = as_mapping(item)
        condition = bare_condition(held.get("when", ""))
        guard = "" if "step.enter" in condition or not condition else condition
        thens = held.get("then", as_mapping(held.get("else")).get("then"))
        for then in thens if isinstance(thens, list) else [thens]:
            yield as_mapping(then), guard
    if any(word in old for word in ("pipe", "catch", "finally")):
        yield old, ""


def _pipeline(block: dict[str, Value]) -> list[dict[str, Value]]:
    conditions = [as_mapping(c) for c in as_list(as_mapping(block.get("catch")).get("cond"))]
    tasks: list[dict[str, Value]] = []
    for item in as_list(block.get("pipe")):
        for label, body in as_mapping(item).items():
            held = as_mapping(body)
            task: dict[str, Value] = {
                "name": label,
                **tool_keys(as_mapping(held.get("tool", held))),
            }
            rules = _rules_for(label, conditions)
            if rules:
                task["spec"] = {**as_mapping(task.get("spec")), "policy": {"rules": rules}}
            tasks.append(task)
    return tasks


_ABOUT_TASK = re.compile(r"_task\s*==\s*['\"](?P<task>[\w-]+)['\"]\s*(and\s+)?")


def _rules_for(label: str, conditions: list[dict[str, Value]]) -> list[Value]:
    """The old conditions that concern one task, as its policy rules."""
    rules: list[Value] = []
    for item in conditions:
        about = _ABOUT_TASK.search(str(item.get("when", "")))
        if about and about["task"] != label:
            continue
        own = dict(item)
        if about:
            rest = _ABOUT_TASK.sub("", bare_condition(item["when"])).strip()
            own["when"] = braced(rest or "true")
        rules += rule_of(own, "outcome.status == 'error'")
    text = "outcome.status == 'error' and true"
    for rule in rules:
        held = as_mapping(rule)
        if isinstance(held.get("when"), str):
            held["when"] = str(held["when"]).replace(text, "outcome.status == 'error'")
    if rules and "else" not in as_mapping(rules[-1]):
        rules += error_fails()
    return rules


def _routes(block: dict[str, Value], guard: str) -> list[Value]:
    targets: list[Value] = []
    for item in as_list(block.get("finally")):
        targets += _targets(as_mapping(item).get("next"))
    targets += _targets(block.get("next"))
    return arcs_of(targets, guard or "event.name == 'step.done'") if targets else []


def _targets(value: Value) -> list[Value]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _keep(block: dict[str, Value], tasks: list[dict[str, Value]]) -> None:
    """`vars` of a block become `set_ctx` in the last task's policy."""
    kept: dict[str, Value] = dict(as_mapping(block.get("vars")))
    for item in as_list(block.get("finally")):
        kept |= as_mapping(as_mapping(item).get("vars"))
    if not kept or not tasks:
        return
    spec = as_mapping(tasks[-1].setdefault("spec", {}))
    policy = as_mapping(spec.setdefault("policy", {"rules": []}))
    rules = as_list(policy.setdefault("rules", []))
    then: Value = {"do": "continue", "set_ctx": from_prev(kept)}
    if rules and "else" in as_mapping(rules[-1]):
        rules[-1] = {"else": {"then": then}}
    else:
        rules.append({"else": {"then": then}})
