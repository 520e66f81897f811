"""The deliberate bugs: what each breaks, and the text that it changes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    module: str
    search: str
    replace: str
    first: int = 0
    """The seed to begin with, where it is known which one catches it; all others follow."""


ENGINE = "noetl_core.engine"
STORE = "noetl_operator.store.memory"

MUTANTS: tuple[Mutant, ...] = (
    # What a store or a router may forget.
    Mutant(
        "skip-the-version-check",
        STORE,
        "if execution.state.seq != transition.expected:",
        "if False:",
    ),
    Mutant(
        "ack-before-commit",
        "tests.support.simulation",
        "operator.decide(post.trigger, lambda verdict: self.answer(post, verdict), post.number)",
        "operator.decide(post.trigger, lambda verdict: None, post.number)\n"
        "        self.answer(post, operator.works[-1].decision.verdict)",
    ),
    Mutant(
        "lose-a-lost-worker",
        STORE,
        "            row.owner, row.until, row.stop = None, None, False",
        "            row.until = None",
    ),
    # Reports of workers.
    Mutant(
        "drop-the-dedup",
        f"{ENGINE}.reports",
        "fresh = report.facts[known - report.first :]",
        "fresh = report.facts",
    ),
    Mutant(
        "listen-to-zombies",
        f"{ENGINE}.leases",
        "if lease is None or epoch != lease.epoch + 1:\n        return None\n    return Held",
        "if lease is None:\n        return None\n    return Held",
    ),
    Mutant(
        "let-iterations-overwrite-ctx",
        f"{ENGINE}.reports",
        "if old is not None and old.by != by and not same(old.value, value):",
        "if False:",
    ),
    Mutant(
        "keep-the-count-of-a-lost-lease",
        f"{ENGINE}.evolve",
        "Lease(old.iteration, fact.epoch, redeliveries, total=known))",
        "replace(old, epoch=fact.epoch, redeliveries=redeliveries, total=known))",
    ),
    Mutant(
        "forget-to-requeue",
        f"{ENGINE}.lost",
        "    draft.effect(Requeue(lost.lease_id, lost.epoch))",
        "    pass",
    ),
    Mutant(
        "count-a-redelivered-loop-twice",
        f"{ENGINE}.evolve",
        "known = loops.forget(state, fact.run_id, old)",
        "known = old.total",
        first=192,
    ),
    # Admission, arcs, joins.
    Mutant(
        "forget-a-waiting-token",
        f"{ENGINE}.admission",
        "if t.ctx_version < state.ctx_version]",
        "if False]",
    ),
    Mutant(
        "admit-what-is-denied",
        f"{ENGINE}.admission",
        'return "none", not admit.rules',
        'return "none", True',
    ),
    Mutant(
        "fire-an-arc-twice",
        f"{ENGINE}.routing",
        "        routed.fired.append(arc)",
        "        routed.fired.extend([arc, arc])\n        routed.args.append({})",
    ),
    Mutant(
        "fire-every-match-of-an-exclusive-router",
        f"{ENGINE}.routing",
        "        if not plan.inclusive:\n            break",
        "",
    ),
    Mutant(
        "fire-a-plain-arc-on-failure",
        f"{ENGINE}.routing",
        'return event.status == "ok"',
        "return True",
    ),
    Mutant(
        "join-with-any-token",
        f"{ENGINE}.joins",
        "if all(place in places for place in plan.places):",
        "if any(place in places for place in plan.places):",
    ),
    Mutant(
        "merge-join-args-backwards",
        f"{ENGINE}.joins",
        "    for token in tokens:\n        args.update(token.args)",
        "    for token in reversed(tokens):\n        args.update(token.args)",
        first=772,
    ),
    # Loops.
    Mutant(
        "ignore-the-window",
        f"{ENGINE}.loops",
        "if frame.next >= frame.total or frame.open >= frame.window:",
        "if frame.next >= frame.total:",
    ),
    Mutant(
        "leave-an-empty-loop-open",
        f"{ENGINE}.loops",
        "    if not opened.items:\n        gather.complete(draft, run_id)",
        "    if not opened.items:\n        pass",
    ),
    Mutant(
        "reduce-in-order-of-arrival",
        f"{ENGINE}.gather",
        "for path in in_order if path in ends]",
        "for path in ends]",
    ),
    Mutant(
        "go-on-after-a-failed-iteration",
        f"{ENGINE}.evolve_loops",
        "if depth == loop.leased and not loop.best_effort and loop.stopping is None:",
        "if False:",
    ),
    # The end.
    Mutant(
        "stop-others-in-best-effort",
        f"{ENGINE}.runs",
        "    if not plan.best_effort:\n        fail(",
        "    if True:\n        fail(",
        first=536,
    ),
    Mutant(
        "begin-while-suspended",
        f"{ENGINE}.admission",
        "while state.ending is None and not state.suspended:",
        "while state.ending is None:",
    ),
    Mutant(
        "skip-the-final-step",
        f"{ENGINE}.finishing",
        "if state.final_run is None and _wants_final_step(draft):",
        "if False:",
    ),
    Mutant(
        "leave-workers-working",
        f"{ENGINE}.cancelling",
        "            draft.effect(Stop(lease_id))",
        "            pass",
    ),
    # The pipeline.
    Mutant(
        "reset-no-retry-counter",
        "noetl_core.pipeline.run",
        "self._tell.task, self._tell.attempt = task.label, 1",
        "self._tell.task = task.label",
        first=520,
    ),
    Mutant(
        "retry-once-more",
        "noetl_core.pipeline.judging",
        "case Action.RETRY if self.attempt < rule.attempts:",
        "case Action.RETRY if self.attempt <= rule.attempts:",
    ),
    Mutant(
        "forget-leases-in-a-snapshot",
        f"{ENGINE}.codec",
        "_run = _one(Run, leases=_by_key(_lease), loop=_loop)",
        "_run = _one(Run, leases=lambda value: {}, loop=_loop)",
    ),
)
