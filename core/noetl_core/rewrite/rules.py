"""Old rules of error handling → the rules of a task policy."""

from __future__ import annotations

from collections.abc import Callable

from noetl_core.rewrite.text import (
    as_guard,
    as_list,
    as_mapping,
    bare_condition,
    braced,
    canonical,
    say,
)
from noetl_core.values import Value

THEN_KEYS = (
    "do",
    "attempts",
    "backoff",
    "delay",
    "max_delay",
    "to",
    "set_iter",
    "set_ctx",
    "message",
)


def else_rule(rule: Value, then_key: str) -> str:
    held = as_mapping(rule)
    then = as_mapping(held.get("else")) or as_mapping(held.get("then"))
    then = then or {then_key: True if then_key == "allow" else "continue"}
    return say("write", [{"else": {"then": then}}])


def flat_rule(rule: Value, then_key: str) -> str:
    held = as_mapping(rule)
    then = {**as_mapping(held.get("then")), **{k: v for k, v in held.items() if k in THEN_KEYS}}
    if then_key == "allow" and "allow" in held:
        then = {"allow": held["allow"]}
    return say("write", [{"when": as_guard(held.get("when", "…")), "then": then}])


def written_as_do(word: str) -> Callable[[Value, Value], str]:
    """`then: {retry: {attempts: 3}}` → `then: {do: retry, attempts: 3}`."""

    def rewrite(value: Value, parent: Value) -> str:
        return say("write", {"then": _done(word, value)})

    return rewrite


def _done(word: str, value: Value) -> dict[str, Value]:
    then: dict[str, Value] = {"do": word}
    if word == "jump":
        then["to"] = value if isinstance(value, str) else "some_label"
    elif word == "retry" and isinstance(value, int) and not isinstance(value, bool):
        then["attempts"] = value
    return then | {k: v for k, v in as_mapping(value).items() if k in THEN_KEYS}


def misplaced_control(word: str) -> Callable[[Value, Value], str]:
    """A control action outside a task's policy, with what was written beside it."""

    def rewrite(value: Value, parent: Value) -> str:
        if word == "rules":
            rules: Value = canonical(value) if isinstance(value, list) else error_fails()
        else:
            beside = {k: v for k, v in as_mapping(parent).items() if k in THEN_KEYS}
            then = beside if word == "do" else _done(word, value)
            rules = [{"when": braced("outcome.status == 'error'"), "then": then}]
        return say("write it in the task", {"spec": {"policy": {"rules": rules}}})

    return rewrite


def policy_object(value: Value) -> str:
    """A policy written as a list of rules, or as a word."""
    if isinstance(value, list):
        return say("write", {"policy": {"rules": canonical(value)}})
    then: Value = {"do": value} if isinstance(value, str) else {"do": "continue"}
    return say("write", {"policy": {"rules": [{"else": {"then": then}}]}})


def retry_policy(value: Value, parent: Value) -> str:
    return say("write it in the task", {"spec": {"policy": {"rules": retry_rules(value)}}})


def retry_rules(value: Value) -> list[Value]:
    held = as_mapping(value)
    then: dict[str, Value] = {"do": "retry"}
    attempts = held.get(
        "attempts", held.get("max_attempts", value if isinstance(value, int) else 3)
    )
    then["attempts"] = attempts
    for new, old in (("backoff", "backoff"), ("delay", "delay"), ("delay", "initial_delay")):
        if isinstance(held.get(old), int | float | str):
            then[new] = held[old]
    failing = "outcome.status == 'error' and outcome.error.retryable"
    return [
        {"when": braced(failing), "then": then},
        *error_fails(),
    ]


def error_fails() -> list[Value]:
    return [
        {"when": braced("outcome.status == 'error'"), "then": {"do": "fail"}},
        {"else": {"then": {"do": "continue"}}},
    ]


def eval_policy(value: Value, parent: Value) -> str:
    """A list of `{expr, do, …}` → `spec.policy.rules`."""
    rules: list[Value] = []
    for item in as_list(value):
        rules += rule_of(as_mapping(item), "")
    return say("write", {"spec": {"policy": {"rules": rules or error_fails()}}})


def rule_of(item: dict[str, Value], prefix: str) -> list[Value]:
    """One old rule (`catch.cond`, `eval`) → the canonical rules that mean it."""
    if "else" in item:
        then = _action(as_mapping(item["else"]))
        if prefix and then.get("do") == "fail":
            return error_fails()
        return [{"else": {"then": then}}]
    condition = bare_condition(item.get("when", item.get("expr", "true")))
    if prefix:
        condition = (
            f"{prefix} and ({condition})" if " or " in condition else f"{prefix} and {condition}"
        )
    return [{"when": braced(condition), "then": _action(item)}]


def _action(item: dict[str, Value]) -> dict[str, Value]:
    held = {**as_mapping(item.get("then")), **item}
    if held.get("do") == "retry" and "from" in held:
        return {"do": "jump", "to": held["from"]}
    then: dict[str, Value] = {k: canonical(held[k]) for k in THEN_KEYS if k in held}
    if then.get("do") == "skip":
        then["do"] = "continue"
    if "set_prev" in held:
        then["set_iter"] = {"fallback": canonical(held["set_prev"])}
    then.setdefault("do", "continue")
    return then
