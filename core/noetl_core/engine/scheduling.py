"""How step-runs begin: `step.scheduled`, and a command for a worker where there is work."""

from __future__ import annotations

from noetl_core.engine import loops, runs
from noetl_core.engine.clock import later
from noetl_core.engine.draft import Draft
from noetl_core.engine.ending import fail
from noetl_core.engine.events import Source, StepScheduled
from noetl_core.engine.program import StepPlan
from noetl_core.engine.state import Reason, Token
from noetl_core.engine.triggers import Enqueue
from noetl_core.values import Value


def start(draft: Draft, token: Token) -> None:
    """A token was admitted: it becomes a run, unless there were too many (rules C10, K18)."""
    limit = draft.program.limits.max_step_runs
    if draft.state.steps.total >= limit:
        message = f"step {token.step}: the execution has had {limit:,} step-runs (max_step_runs)"
        fail(draft, Reason.LIMIT_EXCEEDED, message)
        return
    plan = draft.program.steps[token.step]
    run(draft, plan, token.id, token.args, token.arrived_at)


def run(
    draft: Draft,
    plan: StepPlan,
    run_id: str,
    args: dict[str, Value],
    arrived_at: str,
    *,
    final: bool = False,
) -> None:
    """Schedule a run of a step; the deadline counts from the token's arrival (rule D9)."""
    limit = plan.lifecycle.deadline_s
    deadline_at = None if limit is None else later(arrived_at, limit)
    fact = StepScheduled(
        step=plan.name, run_id=run_id, args=args, final=final, deadline_at=deadline_at
    )
    draft.emit(fact, f"{run_id}/scheduled")
    if plan.loop is not None:
        loops.begin(draft, run_id)
    elif plan.works:
        draft.effect(
            Enqueue(
                lease_id=run_id,
                run_id=run_id,
                step=plan.name,
                args=args,
                deadline_at=deadline_at,
                timeout_s=plan.timeout_s,
            )
        )
    else:
        # A step that only routes is run here and now (rule K13).
        runs.done(draft, run_id, None, Source.CONTROL)
