"""Admission: whether a token may enter its step, and what becomes of one that may not (C2, C3)."""

from __future__ import annotations

from noetl_core.engine import scheduling
from noetl_core.engine.clock import earliest, later
from noetl_core.engine.draft import Draft
from noetl_core.engine.ending import fail_template
from noetl_core.engine.events import AdmitEvaluated, StepSkipped
from noetl_core.engine.program import AdmitPlan, StepPlan
from noetl_core.engine.state import Token
from noetl_core.model import OnDeny
from noetl_core.templates import TemplateError
from noetl_core.values import Value


def admit_tokens(draft: Draft) -> None:
    """Judge every token that arrived, and every one at a gate that saw an older `ctx`.

    Tokens that come up meanwhile (steps that only route are run at once) follow in their turn.
    """
    state = draft.state
    while state.ending is None and not state.suspended:
        stale = [t for t in state.waiting.values() if t.ctx_version < state.ctx_version]
        round_ = [*state.pending.values(), *stale]
        if not round_:
            return
        for token in round_:
            if state.ending is not None:
                return
            if not draft.may_start():
                return
            judge(draft, token)


def judge(draft: Draft, token: Token) -> None:
    plan = draft.program.steps[token.step]
    if plan.admit is None or evaluate(draft, plan, plan.admit, token):
        scheduling.start(draft, token)


def evaluate(draft: Draft, plan: StepPlan, admit: AdmitPlan, token: Token) -> bool:
    """Rules top to bottom, first match wins; where none matches the answer is no."""
    try:
        rule, allow = _decide(admit, draft.scope(token.args, token.event))
    except _Bad as bad:
        fail_template(draft, f"step {plan.name}, admission rule {bad.rule}", bad.error)
        return False
    waits = not allow and admit.on_deny is OnDeny.WAIT
    fact = AdmitEvaluated(
        step=plan.name,
        run_id=token.id,
        allow=allow,
        rule=rule,
        waits=waits,
        deadline_at=wait_ends_at(plan, admit, token) if waits else None,
    )
    draft.emit(fact, f"{token.id}/admit/{token.judged}")
    if not allow and not waits:
        reason = f"admission denied it (rule {rule})"
        draft.emit(
            StepSkipped(step=plan.name, run_id=token.id, reason=reason), f"{token.id}/skipped"
        )
    return allow


class _Bad(Exception):
    def __init__(self, rule: int, error: TemplateError) -> None:
        super().__init__(rule)
        self.rule = rule
        self.error = error


def _decide(admit: AdmitPlan, scope: dict[str, Value]) -> tuple[int | str, bool]:
    for index, (guard, allow) in enumerate(admit.rules):
        if guard is None:
            return "else", allow
        try:
            matches = guard.truth(scope)
        except TemplateError as error:
            raise _Bad(index, error) from None
        if matches:
            return index, allow
    return "none", not admit.rules


def wait_ends_at(plan: StepPlan, admit: AdmitPlan, token: Token) -> str | None:
    """When a wait at a gate is over: by its own deadline, or by that of the step."""
    limits = (admit.deadline_s, plan.lifecycle.deadline_s)
    return earliest(None if limit is None else later(token.arrived_at, limit) for limit in limits)
