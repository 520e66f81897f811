"""A task's outcome, judged by its policy (rules D1–D4, K19–K21).

Judging only finds out what shall happen: everything a rule says is rendered here, before anything
of it is applied. An error inside a rule ends the step over the policy (rule K8).
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from dataclasses import dataclass, replace

from noetl_core.model import Action
from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.pipeline.backoff import BadDelay, wait
from noetl_core.pipeline.plan import CompiledRule, CompiledTask
from noetl_core.pipeline.references import Names, RefCache, Unfetched, resolved
from noetl_core.pipeline.requests import Answer, Request
from noetl_core.pipeline.trees import Entries
from noetl_core.results import canonical
from noetl_core.templates import TemplateError
from noetl_core.templates.compiler import Path
from noetl_core.values import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What follows from an outcome."""

    rule: int | str
    """The index of the rule that matched, `else`, `none`, or `default` without a policy."""
    action: Action
    """What is done: of a retry that is used up, `fail`."""
    to: str | None = None
    delay: float | None = None
    set_iter: dict[str, Value] | None = None
    set_ctx: dict[str, Value] | None = None
    failure: TaskError | None = None
    """With `fail`: the error that the pipeline ends with."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One task run, with what its rules may read."""

    task: CompiledTask
    outcome: Outcome
    attempt: int
    scope: Names
    """Without the keychain."""
    keychain: Names
    holders: Collection[str]
    cache: RefCache

    def judge(self) -> Generator[Request, Answer, Judgement]:
        if self.task.rules is None:
            return self._default("default", fails=not self.outcome.ok)
        scope = {**self.scope, "outcome": self.outcome.as_json(self.attempt)}
        for rule in self.task.rules:
            try:
                if rule.when is None or (yield from self._holds(rule, scope)):
                    return (yield from self._matched(rule, scope))
            except _Broken as broken:
                return Judgement(rule=rule.name, action=Action.FAIL, failure=broken.error)
        return self._default("none", fails=self.task.fails_unmatched)

    def _default(self, rule: str, fails: bool) -> Judgement:
        if not fails:
            return Judgement(rule=rule, action=Action.CONTINUE)
        why = "no rule of its policy matched"
        return Judgement(rule=rule, action=Action.FAIL, failure=self._failure("POLICY_FAIL", why))

    def _holds(self, rule: CompiledRule, scope: Names) -> Generator[Request, Answer, bool]:
        assert rule.when is not None
        view = yield from self._view(rule, "when", scope, rule.when.paths)
        try:
            return rule.when.truth(view)
        except TemplateError as error:
            raise _Broken(rule, "when", error) from None

    def _matched(self, rule: CompiledRule, scope: Names) -> Generator[Request, Answer, Judgement]:
        # Both are rendered against the scopes as they stand, before either is applied (K19).
        set_iter = yield from self._entries(rule, "set_iter", rule.set_iter, scope)
        set_ctx = yield from self._entries(rule, "set_ctx", rule.set_ctx, scope)
        found = Judgement(
            rule=rule.name, action=rule.action, to=rule.to, set_iter=set_iter, set_ctx=set_ctx
        )
        match rule.action:
            case Action.RETRY if self.attempt < rule.attempts:
                return replace(found, delay=(yield from self._delay(rule, scope)))
            case Action.RETRY:
                why = f"it was run {self.attempt} times and its policy still says retry"
                failure = self._failure("RETRY_EXHAUSTED", why)
                return replace(found, action=Action.FAIL, failure=failure)
            case Action.FAIL:
                failure = yield from self._failed(rule, scope)
                return replace(found, failure=failure)
            case _:
                return found

    def _delay(self, rule: CompiledRule, scope: Names) -> Generator[Request, Answer, float]:
        error = self.outcome.error
        view = yield from self._view(
            rule, "delay", {**scope, "keychain": self.keychain}, rule.delay.paths
        )
        try:
            delay = rule.delay.render(view)
            after = error.retry_after if error else None
            return wait(rule.backoff, delay, self.attempt, rule.max_delay, after)
        except (TemplateError, BadDelay) as broken:
            raise _Broken(rule, "delay", broken) from None

    def _failed(self, rule: CompiledRule, scope: Names) -> Generator[Request, Answer, TaskError]:
        if rule.message is None:
            return self._failure("POLICY_FAIL", f"its policy says so (rule {rule.name})")
        view = yield from self._view(rule, "message", scope, rule.message.paths)
        try:
            text = rule.message.render(view)
        except TemplateError as error:
            raise _Broken(rule, "message", error) from None
        message = text if isinstance(text, str) else canonical(text).decode("utf-8", "replace")
        return replace(self._failure("POLICY_FAIL", ""), message=message)

    def _failure(self, code: str, why: str) -> TaskError:
        """The outcome's own error; an ok outcome that fails does so by policy (rule K20)."""
        if self.outcome.error is not None:
            return self.outcome.error
        message = f"{self.task.label} ended ok, but {why}"
        return TaskError(kind=ErrorKind.POLICY, code=code, message=message, source="policy")

    def _entries(
        self, rule: CompiledRule, part: str, entries: Entries | None, scope: Names
    ) -> Generator[Request, Answer, dict[str, Value] | None]:
        if entries is None:
            return None
        view = yield from self._view(rule, part, scope, entries.paths)
        try:
            return entries.render(view)
        except TemplateError as error:
            raise _Broken(rule, part, error) from None

    def _view(
        self, rule: CompiledRule, part: str, scope: Names, paths: tuple[Path, ...]
    ) -> Generator[Request, Answer, Names]:
        try:
            return (yield from resolved(scope, paths, self.holders, self.cache))
        except Unfetched as unfetched:
            raise _Broken(rule, part, unfetched) from None


class _Broken(Exception):
    """Something inside a rule cannot be evaluated."""

    def __init__(self, rule: CompiledRule, part: str, cause: Exception) -> None:
        where = "else" if rule.name == "else" else f"rule {rule.name}"
        message = f"policy {where}, {part}: {cause}"
        super().__init__(message)
        if isinstance(cause, Unfetched):
            self.error = replace(cause.error, message=message)
        else:
            code = cause.code if isinstance(cause, TemplateError) else "K21.delay"
            self.error = TaskError(
                kind=ErrorKind.TEMPLATE, code=code, message=message, source="policy"
            )
