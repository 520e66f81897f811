"""The first decision of an execution: what was asked for, whether it can run, how it begins."""

from __future__ import annotations

from noetl_core.engine import keychain
from noetl_core.engine.clock import normal
from noetl_core.engine.draft import Draft
from noetl_core.engine.ending import fail
from noetl_core.engine.events import ExecutionRequested, RequestEvaluated, StepsAdopted
from noetl_core.engine.program import ENGINE_VERSION
from noetl_core.engine.state import Reason
from noetl_core.engine.triggers import Start
from noetl_core.results import INLINE_MAX_BYTES
from noetl_core.values import Value


def start(draft: Draft, wish: Start) -> None:
    program = draft.program
    fact = ExecutionRequested(
        playbook=program.name,
        digest=program.digest,
        engine_version=ENGINE_VERSION,
        execution=program.execution,
        workload=draft.kept(program.workload, INLINE_MAX_BYTES),
        parent=wish.parent,
        rerun_of=wish.rerun_of,
        deadline_at=normal(wish.deadline_at) if wish.deadline_at else None,
        depth=wish.depth,
    )
    draft.emit(fact, "requested")
    if wish.problems or program.playbook is None:
        _refuse(draft, list(wish.problems))
        return
    if wish.adopted is not None and wish.adopted.from_step not in program.steps:
        _refuse(draft, [f"there is no step {wish.adopted.from_step} to go on from"])
        return
    entries = keychain.entries(draft)
    draft.emit(RequestEvaluated(valid=True, keychain=entries or None), "evaluated")
    if wish.adopted is not None:
        adopted = StepsAdopted(
            step=wish.adopted.from_step,
            steps=list(wish.adopted.steps),
            ctx=wish.adopted.ctx,
            args=wish.adopted.args,
            event=wish.adopted.event.as_json(),
        )
        draft.emit(adopted, "adopted")
    if entries:
        keychain.request(draft)
    else:
        keychain.start_workflow(draft)


def _refuse(draft: Draft, problems: list[Value]) -> None:
    draft.emit(RequestEvaluated(valid=False, problems=problems), "evaluated")
    first = problems[0] if problems else None
    known = first if isinstance(first, dict) else {}
    text = known.get("message") or first or "the playbook cannot be read"
    where = f"{known['path']}: " if known.get("path") else ""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    fail(draft, Reason.INVALID_PLAYBOOK, f"{where}{text}{more}")
