"""The steps of a playbook as a net: which arcs can fire, what can be reached, what goes in circles.

Built from a playbook alone, by the checker (rule A6). It says only what is certain: where a guard
depends on data, the arc may fire. Everything here is linear in steps and arcs. The joins have a
room of their own, `net_joins`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from noetl_core.guards import Guards
from noetl_core.model import Admit, Arc, OnDeny, Playbook, Step
from noetl_core.templates import MISSING, Missing
from noetl_core.values import Value

DONE, FAILED, LOOP_DONE = "step.done", "step.failed", "loop.done"

Facts = dict[tuple[str, ...], "Value | Missing"]


@dataclass(frozen=True, slots=True)
class NetArc:
    """An arc between two steps by their places in the workflow."""

    source: int
    position: int
    """Among the arcs of its step."""
    target: int
    holds: tuple[bool | None, ...]
    """Whether its guard holds, by event of the source; None where that depends."""
    fires: tuple[bool | None, ...]
    """The same, with the arcs before it taken into account (rule C4)."""

    @property
    def can_fire(self) -> bool:
        return any(fires is not False for fires in self.fires)


@dataclass(slots=True)
class Net:
    """The graph of a workflow."""

    steps: tuple[Step, ...]
    entry: int | None
    final: int | None
    events: list[tuple[str, ...]]
    """The boundary events a step can end with, the good one first."""
    arcs: list[list[NetArc]]
    """Every arc, by its source."""
    inbound: list[list[NetArc]]
    """Every arc, by its target: each is a place of a `join: all`."""
    never_admits: frozenset[int]
    open_steps: frozenset[int]
    """Steps that could not be read whole; they may end or lead on in ways not seen here."""
    reached: dict[int, NetArc | None] = field(init=False)
    """The steps that can get a token, nearest first, each with the arc it comes by."""
    cycles: list[list[int]] = field(init=False)
    """The strongly connected parts of what is reached, sinks first."""

    _live: list[list[NetArc]] = field(init=False)

    def __post_init__(self) -> None:
        self._live = [
            [] if step in self.never_admits else [arc for arc in arcs if arc.can_fire]
            for step, arcs in enumerate(self.arcs)
        ]
        self.reached = self._reach()
        self.cycles = _components(self.reached, self.live_targets)

    def live(self, step: int) -> list[NetArc]:
        """The arcs of a step that can fire."""
        return self._live[step]

    def live_targets(self, step: int) -> list[int]:
        return [arc.target for arc in self._live[step]]

    def in_cycle(self) -> frozenset[int]:
        """The steps that can lead back to themselves."""
        large = (part for part in self.cycles if len(part) > 1)
        alone = (s for s in self.reached if s in self.live_targets(s))
        return frozenset(step for part in large for step in part) | frozenset(alone)

    def can_end(self, step: int) -> bool:
        """Whether a token may end here: no arc is sure to fire, or admission may deny it."""
        if step in self.open_steps or self.is_join(step) or _may_skip(self.steps[step]):
            return True
        return not any(arc.fires[0] is True for arc in self.arcs[step])

    def is_join(self, step: int) -> bool:
        return self.steps[step].spec.join is not None and len(self.inbound[step]) > 1

    def trapped(self) -> list[int]:
        """The steps that can get a token and from which no end is reachable."""
        sources: dict[int, list[int]] = {step: [] for step in self.reached}
        for step in self.reached:
            for target in self.live_targets(step):
                sources[target].append(step)
        ends = [step for step in self.reached if self.can_end(step)]
        saved = set(ends)
        todo = deque(ends)
        while todo:
            for source in sources[todo.popleft()]:
                if source not in saved:
                    saved.add(source)
                    todo.append(source)
        return [step for step in self.reached if step not in saved]

    def way(self, start: int, end: int) -> list[int]:
        """The shortest way from one step to another, both included; empty where there is none."""
        before: dict[int, int] = {start: start}
        todo = deque([start])
        while todo and end not in before:
            step = todo.popleft()
            for target in self.live_targets(step):
                if target not in before:
                    before[target] = step
                    todo.append(target)
        if end not in before:
            return []
        path = [end]
        while path[-1] != start:
            path.append(before[path[-1]])
        return path[::-1]

    def _reach(self) -> dict[int, NetArc | None]:
        reached: dict[int, NetArc | None] = {}
        if self.entry is None:
            return reached
        reached[self.entry] = None
        todo = deque([self.entry])
        while todo:
            for arc in self.live(todo.popleft()):
                if arc.target not in reached:
                    reached[arc.target] = arc
                    todo.append(arc.target)
        return reached


def _nobody(name: str) -> str | None:
    return None


def build(
    playbook: Playbook,
    guards: Guards | None = None,
    meant: Callable[[str], str | None] = _nobody,
    others: Mapping[int, Iterable[str]] | None = None,
) -> Net:
    """The net of a playbook.

    `meant` says which step an arc to an unknown one was meant for; `others` holds, for steps that
    could not be read whole, the names they may still lead to.
    """
    steps = playbook.workflow
    index = {step.step: i for i, step in reversed(list(enumerate(steps)))}
    router = _Router(playbook, guards or Guards(), index, meant)
    arcs = [router.arcs(i, step) for i, step in enumerate(steps)]
    for i, names in (others or {}).items():
        for position, name in enumerate(names, len(steps[i].arcs)):
            if name in index:
                arcs[i].append(NetArc(i, position, index[name], (None,), (None,)))
    inbound: list[list[NetArc]] = [[] for _ in steps]
    for arc in (arc for of_step in arcs for arc in of_step):
        inbound[arc.target].append(arc)
    final = playbook.executor.spec.final_step
    denied = frozenset(i for i, step in enumerate(steps) if router.never_admits(step))
    return Net(
        steps,
        index.get(playbook.entry_step) if steps else None,
        index.get(final) if final else None,
        [possible_events(playbook, step) for step in steps],
        arcs,
        inbound,
        denied,
        frozenset(others or {}),
    )


def possible_events(playbook: Playbook, step: Step) -> tuple[str, ...]:
    """The boundary events a step can end with (rules C5, K13, K17)."""
    done = LOOP_DONE if step.loop is not None else DONE
    return (done, FAILED) if _can_fail(playbook, step) else (done,)


def _can_fail(playbook: Playbook, step: Step) -> bool:
    """A step that only routes fails when time runs out, and not otherwise."""
    policy = step.spec.policy
    timed = policy.lifecycle.timeout_s or policy.lifecycle.deadline_s
    gated = policy.admit is not None and policy.admit.deadline_s
    default = playbook.executor.spec.policy.defaults.timeouts.step
    return bool(step.tool or step.loop or timed or gated or default)


class _Router:
    """Judges arcs and admission before anything runs."""

    def __init__(
        self,
        playbook: Playbook,
        guards: Guards,
        index: Mapping[str, int],
        meant: Callable[[str], str | None],
    ) -> None:
        self._playbook, self._guards, self._index, self._meant = playbook, guards, index, meant
        self._answers: dict[tuple[str, str, bool], bool | None] = {}

    def arcs(self, source: int, step: Step) -> list[NetArc]:
        events = possible_events(self._playbook, step)
        taken = [False] * len(events)
        made: list[NetArc] = []
        for position, arc in enumerate(step.arcs):
            holds = tuple(self._holds(arc, step, event) for event in events)
            fires = tuple(False if t else h for t, h in zip(taken, holds, strict=True))
            if not step.is_inclusive:
                taken = [t or h is True for t, h in zip(taken, holds, strict=True)]
            target = self._index.get(arc.step)
            if target is None:
                target = self._index.get(self._meant(arc.step) or "")
            if target is not None:
                made.append(NetArc(source, position, target, holds, fires))
        return made

    def _holds(self, arc: Arc, step: Step, event: str) -> bool | None:
        if arc.when is None:
            return event != FAILED
        if isinstance(arc.when, bool):
            return arc.when
        question = (arc.when, event, step.loop is not None)
        if ("event", "step") in self._guards.paths(arc.when):
            facts = event_facts(step, event) | {("event", "step"): step.step}
            return self._guards.judge(arc.when, facts)
        if question not in self._answers:
            self._answers[question] = self._guards.judge(arc.when, event_facts(step, event))
        return self._answers[question]

    def never_admits(self, step: Step) -> bool:
        """Whether admission denies every token, whatever it holds."""
        admit = step.spec.policy.admit
        if admit is None or not admit.rules or admit.on_deny is OnDeny.WAIT:
            return False
        for rule in admit.rules:
            holds = True if rule.when is None else self._guards.judge(rule.when, {})
            if rule.allow and holds is not False:
                return False
            if holds is True:
                return True
        return True


def event_facts(step: Step, event: str) -> Facts:
    """What is known of a step's boundary event before it happens (rule C12)."""
    facts: Facts = {("event", "name"): event}
    if event == FAILED:
        facts[("event", "status")] = "error"
    if event == DONE:
        facts |= {("event", "status"): "ok", ("event", "error"): MISSING}
    if step.loop is None:
        facts[("event", "loop")] = MISSING
    return facts


def _may_skip(step: Step) -> bool:
    admit: Admit | None = step.spec.policy.admit
    if admit is None or admit.on_deny is OnDeny.WAIT:
        return False
    return bool(admit.rules) and not (admit.rules[0].when in (None, True) and admit.rules[0].allow)


def _components(nodes: Iterable[int], targets: Callable[[int], Sequence[int]]) -> list[list[int]]:
    """Strongly connected components, sinks first (Tarjan, without recursion)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in nodes:
        if root in order:
            continue
        work = [(root, iter(targets(root)))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in order:
                    order[target] = low[target] = len(order)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(targets(target))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], order[target])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == order[node]:
                    found.append(_popped(stack, on_stack, node))
    return found


def _popped(stack: list[int], on_stack: set[int], node: int) -> list[int]:
    part: list[int] = []
    while not part or part[-1] != node:
        part.append(stack.pop())
        on_stack.discard(part[-1])
    return part
