"""Reports of workers: facts in order, and at last how the run ended.

Nothing is taken on trust: a report must come from the current lease, go on where the last one ended
and speak of its own run. Writes to `ctx` are judged here, because only here all of them meet.
"""

from __future__ import annotations

from dataclasses import replace

from noetl_core.engine import events as ev
from noetl_core.engine import gather, ids, keychain, leases, loops, runs
from noetl_core.engine.cancelling import cancel_iteration, cancel_run
from noetl_core.engine.draft import Draft
from noetl_core.engine.evolve_parts import size_after
from noetl_core.engine.leases import Held
from noetl_core.engine.sizes import larger_than
from noetl_core.engine.state import LoopState, Run
from noetl_core.engine.triggers import EndStatus, Reported, RunEnd, Verdict
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.results import CTX_MAX_BYTES
from noetl_core.values import Value

_REPORTED = (
    ev.StepStarted,
    ev.TaskStarted,
    ev.TaskAttemptFailed,
    ev.TaskDone,
    ev.TaskFailed,
    ev.TaskPolicyEvaluated,
    ev.CtxPatched,
    ev.IterPatched,
    ev.IterationStarted,
    ev.IterationDone,
    ev.IterationFailed,
    ev.LoopOpened,
    ev.ResultStored,
)
"""What a worker may say about a run; how the run ends is `end`."""


def reported(draft: Draft, report: Reported) -> None:
    lease = leases.keychain_held(draft, report.lease_id, report.epoch)
    if lease is not None:
        keychain.reported(draft, report, lease)
        return
    held = leases.held(draft, report.lease_id, report.epoch)
    if held is None:
        draft.answer(Verdict.GONE, "the run is over or in other hands")
        return
    known = held.lease.reported
    if report.first > known:
        draft.answer(Verdict.AHEAD, f"facts from number {known} on are missing", known)
        return
    fresh = report.facts[known - report.first :]
    if not fresh and report.end is None:
        if report.facts:
            draft.answer(Verdict.DUPLICATE)
        return
    taken = _take(draft, held, fresh)
    if report.end is not None and taken:
        _end(draft, held, report.end)


def _take(draft: Draft, held: Held, facts: tuple[ev.Fact, ...]) -> bool:
    """Append facts one by one; the first that cannot be taken ends it, with an answer that says so.

    A retried report that was half taken is met by `first`: what is in the log is not taken again.
    """
    ordinal = held.lease.reported
    for fact in facts:
        if isinstance(fact, ev.CtxPatched):
            fact = _with_deferred(draft, held, fact)
        refusal = _refusal(draft, held, fact)
        if refusal is not None:
            draft.answer(*refusal, expected=ordinal)
            return False
        key = f"{held.lease_id}/{held.lease.epoch + 1}/{ordinal}"
        draft.emit(fact, key, ev.Source.WORKER)
        ordinal += 1
    return True


def _refusal(draft: Draft, held: Held, fact: ev.Fact) -> tuple[Verdict, str] | None:
    foreign = _foreign(held, fact)
    if foreign is not None:
        return Verdict.REFUSED, foreign
    limit = draft.program.limits.max_payload_bytes
    if larger_than(fact.payload(), limit):
        message = f"{fact.name} is larger than max_payload_bytes ({limit:,})"
        return Verdict.TOO_LARGE, message
    if isinstance(fact, ev.CtxPatched):
        return _ctx_refusal(draft, held, fact)
    return None


def _foreign(held: Held, fact: ev.Fact) -> str | None:
    """What a worker may not say under this lease, if the fact is that."""
    if not isinstance(fact, _REPORTED):
        return f"{fact.name} is not for a worker to report"
    if fact.run_id != held.run_id or fact.step != held.run.step:
        return f"{fact.name} is about another run"
    own, loop = held.lease.iteration, held.run.loop
    path = fact.iteration
    if path is not None and (loop is None or not all(p.isdecimal() for p in path.split("."))):
        return f"{fact.name} names iteration {path!r}, which this run does not have"
    if own is not None and path != own and not (path or "").startswith(f"{own}."):
        return f"{fact.name} is about another iteration"
    if isinstance(fact, ev.IterationDone | ev.IterationFailed | ev.LoopOpened):
        deepest = loop.levels if loop else 0
        if path is None or path == own or ids.parts(path) > deepest:
            return f"{fact.name} of iteration {path} is not for a worker to report"
    return None


def _with_deferred(draft: Draft, held: Held, fact: ev.CtxPatched) -> ev.CtxPatched:
    """Keys with a reducer are taken in at the end of the loop, whatever the worker says."""
    plan = draft.program.steps[held.run.step].loop
    deferred = [key for key in fact.set if plan and key in plan.reducers]
    if deferred == (fact.deferred or []) and fact.patch_id is None:
        return fact
    return replace(fact, deferred=deferred or None, patch_id=None)


def _ctx_refusal(draft: Draft, held: Held, fact: ev.CtxPatched) -> tuple[Verdict, str] | None:
    values = {k: v for k, v in fact.set.items() if k not in (fact.deferred or ())}
    loop = draft.state.runs[held.run_id].loop
    if loop is not None and loop.parallel and fact.iteration is not None:
        by = ids.outer(fact.iteration, loop.parallel)
        for key, value in values.items():
            old = loop.writes.get(key)
            if old is not None and old.by != by and not same(old.value, value):
                other = f"iteration {old.by}" if old.by else "other iterations"
                message = f"ctx.{key} was written by {other} of this loop with another value"
                return Verdict.CONFLICT, message
    if size_after(draft.state, values) > CTX_MAX_BYTES:
        return Verdict.TOO_LARGE, f"ctx would be larger than {CTX_MAX_BYTES:,} bytes"
    return None


def same(one: Value, other: Value) -> bool:
    """Equal as JSON: `true` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(v, other[k]) for k, v in one.items())
    return one == other


def _end(draft: Draft, held: Held, end: RunEnd) -> None:
    end = _bounded(draft, end)
    if held.lease.iteration is not None:
        _iteration_end(draft, held, held.lease.iteration, end)
        return
    run = draft.state.runs[held.run_id]
    if end.status is EndStatus.CANCELLED and run.cancelling is not None:
        cancel_run(draft, held.run_id, run.cancelling)
    elif end.status is not EndStatus.OK:
        error = _error_of(end).as_json()
        place: dict[str, Value] = {"task": end.task}
        if end.iteration is not None:
            place["iteration"] = end.iteration
        runs.failed(draft, held.run_id, {**error, **place}, ev.Source.WORKER)
    elif run.loop is not None:
        gather.complete(draft, held.run_id)
    else:
        runs.done(draft, held.run_id, end.result, ev.Source.WORKER)


def _iteration_end(draft: Draft, held: Held, path: str, end: RunEnd) -> None:
    run = draft.state.runs[held.run_id]
    assert run.loop is not None
    stops = run.cancelling or (run.loop.stopping is not None and "another iteration failed")
    if end.status is EndStatus.CANCELLED and stops:
        cancel_iteration(draft, held.run_id, path, stops)
        loops.if_stopped(draft, held.run_id)
        return
    if end.status is EndStatus.OK:
        done = ev.IterationDone(
            step=run.step, run_id=held.run_id, iteration=path, result=end.result, writes=end.writes
        )
        draft.emit(done, f"{held.run_id}/{path}/end", ev.Source.WORKER)
        loops.iteration_ended(draft, held.run_id, path)
        return
    error = _timed(run, _error_of(end))
    if run.cancelling is None and _fails_the_step(run.loop, error):
        loops.fail(draft, held.run_id, error, end.iteration or path)
    else:
        fail_iteration(draft, held, error, end, ev.Source.WORKER)


def _timed(run: Run, error: TaskError) -> TaskError:
    """A worker knows one deadline of an iteration: it may be the `timeout_s` of its loop that is
    over (rule K22)."""
    assert run.loop is not None
    ends_at = run.loop.deadline_at
    if error.code != "STEP_DEADLINE" or ends_at is None:
        return error
    if run.deadline_at is not None and run.deadline_at < ends_at:
        return error
    return replace(error, code="STEP_TIMEOUT", message="the step ran longer than its timeout_s")


def _fails_the_step(loop: LoopState, error: TaskError) -> bool:
    """What even a best-effort loop does not survive: the time of the step is up (rule K22), or a
    list inside the lease cannot be gone through (rules E1, K18)."""
    if not loop.best_effort:
        return False
    return loop.levels > loop.leased or error.code in ("STEP_TIMEOUT", "STEP_DEADLINE")


def fail_iteration(
    draft: Draft, held: Held, error: TaskError, end: RunEnd, source: ev.Source
) -> None:
    """`loop.iteration.failed`, and what follows for its loop."""
    path = held.lease.iteration
    assert path is not None
    known = error.as_json()
    if end.iteration is not None and end.iteration != path:
        known["iteration"] = end.iteration
    fact = ev.IterationFailed(
        step=held.run.step,
        run_id=held.run_id,
        iteration=path,
        task=end.task,
        error=known,
        writes=end.writes,
    )
    draft.emit(fact, f"{held.run_id}/{path}/end", source)
    loops.iteration_ended(draft, held.run_id, path)


def _error_of(end: RunEnd) -> TaskError:
    if end.error is not None:
        return end.error
    kind = ErrorKind.CANCELLED if end.status is EndStatus.CANCELLED else ErrorKind.UNKNOWN
    return TaskError(kind=kind, message="the worker gave no reason", source="worker")


def _bounded(draft: Draft, end: RunEnd) -> RunEnd:
    """An end that is too large for an event is a failure (rule K33)."""
    limit = draft.program.limits.max_payload_bytes
    carried: Value = [end.result, end.writes, end.error.as_json() if end.error else None]
    if not larger_than(carried, limit):
        return end
    message = f"the result is larger than max_payload_bytes ({limit:,})"
    error = TaskError(kind=ErrorKind.LIMIT, code="PAYLOAD_SIZE", message=message, source="control")
    return RunEnd(status=EndStatus.ERROR, error=error, task=end.task, iteration=end.iteration)
