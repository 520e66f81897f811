"""Task policies that do not do what they say (rule A6): retries that never match, silent errors.

A task's outcome is looked at as a few cases (ok; an error, retryable or not, of a kind the rules
name or of another); a guard is judged in each with the rest unknown. Only what is certain is told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from noetl_core.checks.report import Report, TaskAt, rule_path
from noetl_core.guards import Guards
from noetl_core.model import Action, OnUnmatched, Rule, TaskPolicy, Then
from noetl_core.problems import Path
from noetl_core.source import ScalarNode
from noetl_core.templates import MISSING, Missing
from noetl_core.tools import OUTCOME_HELPERS
from noetl_core.values import Value

Case = dict[tuple[str, ...], "Value | Missing"]

_STATUS = ("outcome", "status")
_ERROR = ("outcome", "error")
_ERROR_FIELDS = [
    "kind",
    "retryable",
    "code",
    "message",
    "source",
    "http_status",
    "retry_after",
    "pg_code",
    "exception_type",
]
_WORD = re.compile(r"'([^'\\]{1,64})'|\"([^\"\\]{1,64})\"")
MOST_KINDS = 12
"""How many error kinds that rules name are told apart."""


@dataclass(frozen=True, slots=True)
class _Policy:
    """A policy with what is known of the outcomes it judges."""

    at: TaskAt
    path: Path
    policy: TaskPolicy
    guards: Guards
    absent: Case
    """The helpers that outcomes of this tool never carry."""

    def matches(self, rule: Rule, case: Case) -> bool | None:
        if rule.when is None:
            return True
        if rule.when is True or rule.when is False:
            return rule.when
        known = self.absent | case
        if case.get(_STATUS) == "error" and not self._looks_inside(rule.when):
            known[_ERROR] = {"kind": "unknown", "message": "…"}
        return self.guards.judge(rule.when, known)

    def _looks_inside(self, when: str) -> bool:
        return any(p[:2] == _ERROR and p != _ERROR for p in self.guards.paths(when))


def check(report: Report) -> None:
    guards = report.guards
    for at in report.tasks:
        path = (*at.path, "spec", "policy")
        if at.task.spec.policy is not None and report.is_whole(path, at.task.spec.policy):
            one = _Policy(at, path, at.task.spec.policy, guards, _absent(report, at))
            _retries(report, one)
            _silent_errors(report, one)
            _stray_settings(report, one)


def _absent(report: Report, at: TaskAt) -> Case:
    tool = report.kinds.get(at.resolved.kind)
    if tool is None or tool.keys is None or tool.name == "workbook":
        return {}
    return {("outcome", helper): MISSING for helper in OUTCOME_HELPERS - tool.helpers}


def _cases() -> list[Case]:
    ok: Case = {_STATUS: "ok"}
    ok |= {(*_ERROR, name): MISSING for name in _ERROR_FIELDS}
    return [*_error_cases(), ok]


def _error_cases() -> list[Case]:
    return [{_STATUS: "error", (*_ERROR, "retryable"): value} for value in (True, False)]


def _retries(report: Report, one: _Policy) -> None:
    for index, rule in enumerate(one.policy.rules):
        if rule.then.do is not Action.RETRY:
            continue
        place = rule_path(one.path, index, rule)
        attempts = report.place((*place, "attempts")).node
        # What could not be read is told elsewhere.
        if isinstance(attempts, ScalarNode) and attempts.value == 1 and rule.then.attempts == 1:
            message = "`attempts: 1` never retries: it counts every run of the task, the first too"
            hint = "write at least 2, or `do: fail`"
            report.warning("A6.retry-never", (*place, "attempts"), message, hint)
        why = _never(one, index)
        if why:
            when = (*one.path, "rules", index)
            report.warning("A6.retry-never", when if rule.when is None else (*when, "when"), *why)


def _never(one: _Policy, index: int) -> tuple[str, str | None] | None:
    """Why a rule can never match, with a hint; None where it can."""
    rule, earlier = one.policy.rules[index], one.policy.rules[:index]
    shadowed = False
    for case in _cases():
        if one.matches(rule, case) is not False:
            if not any(one.matches(e, case) is True for e in earlier):
                return None
            shadowed = True
    if shadowed:
        return "this retry is never reached: the rules above match first", "move it up"
    used = sorted({str(p[1]) for p in one.guards.paths(rule.when) if p[:2] in one.absent})
    if used:
        message = f"this retry never matches: a task of kind `{one.at.resolved.kind}` has no "
        message += " and no ".join(f"`outcome.{helper}`" for helper in used)
        return message, "`outcome.error.kind` and `outcome.error.retryable` are always there"
    return "this retry never matches: its `when` is always false", None


def _silent_errors(report: Report, one: _Policy) -> None:
    policy = one.policy
    if policy.on_unmatched is OnUnmatched.FAIL or any(r.when is None for r in policy.rules):
        return
    if not _can_fail(report, one.at):
        return
    kinds = _named_kinds(one)
    for case in _error_cases():
        for kind in kinds:
            full = case | {(*_ERROR, "kind"): kind} if kind else case
            if not any(one.matches(rule, full) is True for rule in policy.rules):
                message = "an error that no rule matches continues silently"
                hint = "add `- else: {then: {do: fail}}` as the last rule, or `on_unmatched: fail`"
                report.warning("A6.silent-error", (*one.path, "rules"), message, hint)
                return


def _named_kinds(one: _Policy) -> list[str | None]:
    """The error kinds that the rules tell apart, and one that none of them names."""
    if not any((*_ERROR, "kind") in one.guards.paths(rule.when) for rule in one.policy.rules):
        return [None]
    texts = [r.when for r in one.policy.rules if isinstance(r.when, str)]
    words = {m[1] or m[2]: None for text in texts for m in _WORD.finditer(text)}
    return [*list(words)[:MOST_KINDS], "any other kind"]


def _can_fail(report: Report, at: TaskAt) -> bool:
    """A noop fails only where a template of it can."""
    return at.resolved.kind != "noop" or "{{" in str(at.resolved.inputs.get("result", ""))


def _stray_settings(report: Report, one: _Policy) -> None:
    """Settings of another action: `to` belongs to jump, `attempts` to retry, `message` to fail."""
    for index, rule in enumerate(one.policy.rules):
        place = rule_path(one.path, index, rule)
        action_node = report.place((*place, "do")).node
        if not isinstance(action_node, ScalarNode) or action_node.value != rule.then.do.value:
            continue  # `do` could not be read, so no one knows what belongs to it
        for key, code, action in _strays(rule.then):
            message = f"`{key}` has no effect on `do: {rule.then.do}`: it belongs to `do: {action}`"
            report.warning(code, (*place, key), message, f"remove it, or write `do: {action}`")


def _strays(then: Then) -> list[tuple[str, str, Action]]:
    retry: dict[str, Value] = {
        "attempts": then.attempts,
        "backoff": then.backoff,
        "delay": then.delay,
        "max_delay": then.max_delay,
    }
    found = [(key, "D2.no-effect", Action.RETRY) for key, v in retry.items() if v is not None]
    if then.to is not None:
        found.append(("to", "D3.no-effect", Action.JUMP))
    if then.message is not None:
        found.append(("message", "K20.no-effect", Action.FAIL))
    return [stray for stray in found if stray[2] is not then.do]
