"""Replacements of single words: each takes the word's value and the mapping that holds it."""

from __future__ import annotations

from collections.abc import Callable

from noetl_core.rewrite.steps import arcs_of, tool_keys
from noetl_core.rewrite.text import (
    as_guard,
    as_mapping,
    bare_condition,
    braced,
    canonical,
    from_prev,
    policy_of,
    say,
)
from noetl_core.values import Value

SUGAR = (
    "write it with a task that jumps:\n"
    "  - name: decide\n"
    "    kind: noop\n"
    "    spec:\n"
    "      policy:\n"
    "        rules:\n"
    '          - when: "{{ … }}"\n'
    "            then: {do: jump, to: some_label}\n"
    "          - else:\n"
    "              then: {do: continue}"
)


def renamed(old: str, new: str) -> Callable[[Value, Value], str]:
    def rewrite(value: Value, parent: Value) -> str:
        return say(f"write `{new}`", {new: canonical(value)})

    return rewrite


def under(outer: str, word: str) -> Callable[[Value, Value], str]:
    def rewrite(value: Value, parent: Value) -> str:
        return say("write", {outer: {word: value}})

    return rewrite


def under_spec(value: Value, parent: Value) -> str:
    held = as_mapping(parent)
    return say("write", {"spec": {k: held[k] for k in ("policy", "timeout") if k in held}})


_INPUT_OF = {"playbook": "workload", "http": "params", "postgres": "params", "duckdb": "params"}


def task_input(value: Value, parent: Value) -> str:
    """`input` of a later language, by the kind of its task."""
    word = _INPUT_OF.get(str(as_mapping(parent).get("kind")), "args")
    return say(f"write `{word}`", {word: canonical(value)})


def admission(value: Value, parent: Value) -> str:
    rules: Value = [
        {"when": as_guard(value), "then": {"allow": True}},
        {"else": {"then": {"allow": False}}},
    ]
    return say("write", {"spec": {"policy": {"admit": {"rules": rules}}}})


def next_mode(value: Value, parent: Value) -> str:
    router: dict[str, Value] = {"spec": {"mode": value}}
    held = as_mapping(parent).get("next")
    if held is not None:
        router["arcs"] = as_mapping(held).get("arcs") or list[Value](arcs_of(held))
    return say("write it in the router", {"next": router})


def root_vars(value: Value, parent: Value) -> str:
    lead = "inputs go to `workload` (what a run changes is `ctx`, written by a policy's `set_ctx`)"
    return say(lead, {"workload": canonical(value)})


def root_result(value: Value, parent: Value) -> str:
    lead = "what an execution gives back is its result"
    return say(lead, {"executor": {"spec": {"result": canonical(value)}}})


def step_vars(value: Value, parent: Value) -> str:
    lead = "write it in the policy of the task that makes the value"
    return say(lead, policy_of({"do": "continue", "set_ctx": from_prev(value)}))


def set_by_policy(value: Value, parent: Value) -> str:
    word = "set_iter" if "set_iter" in as_mapping(parent) else "set_ctx"
    lead = "write it in the policy of the task after which it holds"
    return say(lead, policy_of({"do": "continue", word: from_prev(value)}))


def output_policy(value: Value, parent: Value) -> str:
    kept: Value = value if isinstance(value, dict) else {"some_key": braced("outcome.result")}
    lead = "write what later steps need to `ctx`, in the task's policy"
    return say(lead, policy_of({"do": "continue", "set_ctx": from_prev(kept)}))


def set_words(value: Value, parent: Value) -> str:
    """`set: {ctx.a: 1, iter.b: 2}` → `set_ctx: {a: 1}`, `set_iter: {b: 2}`."""
    ctx: dict[str, Value] = {}
    iteration: dict[str, Value] = {}
    for key, item in as_mapping(value).items():
        target = iteration if key.startswith("iter.") else ctx
        target[key.removeprefix("iter.").removeprefix("ctx.")] = item
    then: dict[str, Value] = {"do": str(as_mapping(parent).get("do", "continue"))}
    if iteration:
        then["set_iter"] = canonical(iteration)
    if ctx or not iteration:
        then["set_ctx"] = canonical(ctx)
    return say("write it in a rule of the task's policy", {"then": then})


def arc_args(value: Value, parent: Value) -> str:
    name = as_mapping(parent).get("step", "this_step")
    arc: Value = {"step": name, "args": canonical(value)}
    return say("write it on the arc that leads here", {"next": {"arcs": [arc]}})


def step_result(value: Value, parent: Value) -> str:
    lead = "make it the last task of the step (for the whole execution: `executor.spec.result`)"
    return say(lead, {"tool": [{"name": "result", "kind": "noop", "result": canonical(value)}]})


def sink_task(value: Value, parent: Value) -> str:
    task: dict[str, Value] = {"name": "store", "kind": "postgres"}
    task |= tool_keys(as_mapping(as_mapping(value).get("tool", value)))
    return say("write it as the last task of the pipeline", {"tool": [task]})


def expr_when(value: Value, parent: Value) -> str:
    return say("write", {"when": as_guard(value)})


def result_spec(value: Value, parent: Value) -> str:
    kilobytes = as_mapping(value).get("threshold_kb")
    size = kilobytes * 1024 if isinstance(kilobytes, int) else 65536
    return say("write", {"spec": {"result": {"inline_max_bytes": size}}})


def set_prev(value: Value, parent: Value) -> str:
    task: Value = {"name": "fallback", "kind": "noop", "result": canonical(value)}
    return say("jump to a task that sets `_prev`", {"tool": [task]})


def retry_from(value: Value, parent: Value) -> str:
    return say("write", {"then": {"do": "jump", "to": value}})


def skip_by_jump(value: Value, parent: Value) -> str:
    over: Value = {"do": "jump", "to": "after_it"}
    rules: Value = [
        {"when": braced(f"not ({bare_condition(value)})"), "then": over},
        {"else": {"then": {"do": "continue"}}},
    ]
    task: Value = {"name": "decide", "kind": "noop", "spec": {"policy": {"rules": rules}}}
    return say("put a task before it that jumps over it", {"tool": [task]})
