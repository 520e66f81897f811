"""Several transitions of one execution as one, so that a busy execution costs one commit."""

from __future__ import annotations

from noetl_core.engine.transition import Fence, Transition


def merged(first: Transition, then: Transition) -> Transition:
    """Both, in order. A lease that the first only held and the second ends is fenced once."""
    ended = {fence.lease_id for fence in (*first.ended, *then.ended)}
    ended |= {again.lease_id for again in then.requeue}
    revoked = frozenset(then.revoke)
    return Transition(
        execution_id=first.execution_id,
        expected=first.expected,
        events=first.events + then.events,
        dedup_keys=first.dedup_keys + then.dedup_keys,
        state=then.state,
        due_at=then.due_at,
        held=_held(first.held + then.held, ended),
        ended=first.ended + then.ended,
        # A command that is taken back before it was ever written needs no writing.
        enqueue=tuple(one for one in first.enqueue if one.lease_id not in revoked) + then.enqueue,
        requeue=first.requeue + then.requeue,
        revoke=first.revoke + then.revoke,
        stop=first.stop + then.stop,
        store=first.store + then.store,
        outbox=first.outbox + then.outbox,
        again=first.again or then.again,
    )


def _held(fences: tuple[Fence, ...], ended: set[str]) -> tuple[Fence, ...]:
    return tuple({one.lease_id: one for one in fences if one.lease_id not in ended}.values())
