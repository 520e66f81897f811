"""What several events do to a state: take a token, drop a run, write `ctx`, list a failure.

Called by `evolve` and `evolve_loops` only.
"""

from __future__ import annotations

from noetl_core.engine import ids
from noetl_core.engine.events import Fact
from noetl_core.engine.state import MAX_FAILURES, Boundary, Lease, Run, State
from noetl_core.results import canonical
from noetl_core.values import Value


def take_token(state: State, token_id: str | None) -> None:
    """A token becomes something else: a run, a skip, a failure. (`final_step` has none.)"""
    if token_id is not None and state.pending.pop(token_id, None) is None:
        state.waiting.pop(token_id, None)


def drop_run(state: State, run_id: str | None) -> Run:
    """A run is over; so are its leases, and nobody can ask again for children that are through."""
    assert run_id is not None
    run = state.runs.pop(run_id)
    if run.loop is not None:
        for lease_id in run.leases:
            state.leases.pop(lease_id, None)
    if state.children:
        forget_children(state, run_id, None)
    return run


def forget_children(state: State, run_id: str, iteration: str | None) -> None:
    """Children of a run, or of one leased iteration, that are finished.

    Not before the lease ends: whoever gets it next asks for the same ones again.
    """
    inside = "" if iteration is None else f"{iteration}."
    over = [
        child_id
        for child_id, child in state.children.items()
        if child.finished and child.run_id == run_id and f"{child.iteration}.".startswith(inside)
    ]
    for child_id in over:
        del state.children[child_id]


def lease_of(state: State, fact: Fact) -> tuple[str, Lease] | None:
    """The lease that a fact is about, by its run and iteration."""
    run_id = fact.run_id
    run = None if run_id is None else state.runs.get(run_id)
    if run is None or run_id is None:
        if state.keychain is None:
            return None
        return ids.keychain_run(state.execution_id), state.keychain
    lease_id = run_id
    if run.loop is not None and run.loop.leased:
        if fact.iteration is None:
            return None
        lease_id = ids.iteration_lease(run_id, ids.outer(fact.iteration, run.loop.leased))
    lease = run.leases.get(lease_id)
    return None if lease is None else (lease_id, lease)


def set_lease(state: State, lease_id: str, lease: Lease) -> None:
    run_id = lease_id if lease_id in state.runs else state.leases.get(lease_id)
    if run_id is None:
        state.keychain = lease
        return
    run = state.runs[run_id]
    state.runs[run_id] = with_leases(run, {**run.leases, lease_id: lease})


def with_leases(run: Run, leases: dict[str, Lease]) -> Run:
    return Run(
        run.step,
        run.args,
        run.scheduled_at,
        leases,
        run.loop,
        run.deadline_at,
        run.final,
        run.cancelling,
    )


def write_ctx(state: State, values: dict[str, Value]) -> None:
    state.ctx_size = size_after(state, values)
    state.ctx.update(values)
    state.ctx_version += 1


def size_after(state: State, values: dict[str, Value]) -> int:
    """Bytes of `ctx` once these were written."""
    size = state.ctx_size
    for key, value in values.items():
        if key in state.ctx:
            size -= _entry_size(key, state.ctx[key])
        size += _entry_size(key, value)
    return size


def _entry_size(key: str, value: Value) -> int:
    return len(canonical(key)) + len(canonical(value)) + 2


def add_failure(state: State, step: str | None, error: Value, handled: bool) -> None:
    """Failures are listed up to a limit and counted beyond (rule K16)."""
    if len(state.failures) >= MAX_FAILURES:
        state.unlisted += 1
        return
    known = error if isinstance(error, dict) else {}
    listed: Value = {
        "step": step,
        "task": known.get("task"),
        "iteration": known.get("iteration"),
        "handled": handled,
        "error": error,
    }
    state.failures = (*state.failures, listed)


def failure_text(step: str | None, error: Value) -> str:
    """A failure in a sentence that says where and what."""
    known = error if isinstance(error, dict) else {}
    task, iteration = known.get("task"), known.get("iteration")
    where = f"step {step}"
    if iteration is not None:
        where += f", iteration {iteration}"
    if task is not None:
        where += f", task {task}"
    return f"{where} failed: {known.get('message') or 'no reason was given'}"


def boundary_of(event: Value) -> Boundary:
    """A boundary event from its JSON form."""
    assert isinstance(event, dict)

    def text(name: str) -> str | None:
        value = event.get(name)
        return value if isinstance(value, str) else None

    return Boundary(
        text("name") or "",
        text("step"),
        text("run_id"),
        text("status"),
        event.get("result"),
        event.get("error"),
        event.get("loop"),
        event.get("args"),
    )
