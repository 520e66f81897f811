"""Joins that the checker reports, against every way a small net can go (rules A6, C9).

The simulator plays tokens as rule C9 says, with every answer of every open guard. A join it fills
must never be reported; without cycles, one it can't fill must be.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from noetl_core.check import check_text

GUARDS = {
    "none": "",
    "open": ', when: "{{ ctx.x }}"',
    "done": ", when: \"{{ event.name == 'step.done' }}\"",
    "failed": ", when: \"{{ event.name == 'step.failed' }}\"",
}
Arc = tuple[int, str]
Steps = list[tuple[bool, list[Arc]]]
State = tuple[tuple[int, ...], tuple[int, ...]]
MOST_STATES = 3_000
MOST_TOKENS = 5


@st.composite
def nets(draw: st.DrawFn, *, cyclic: bool) -> Steps:
    size = draw(st.integers(3, 6))
    steps: Steps = []
    for index in range(size):
        targets = range(size - 1) if cyclic else range(index + 1, size)
        if cyclic and index < size - 1:
            targets = range(size)
        arcs = st.tuples(st.sampled_from(list(targets) or [0]), st.sampled_from(list(GUARDS)))
        count = 0 if index == size - 1 else 3
        steps.append((draw(st.booleans()), draw(st.lists(arcs, max_size=count))))
    return steps


def text_of(steps: Steps) -> str:
    lines = ["metadata: {name: x}", "workflow:"]
    last = len(steps) - 1
    for index, (inclusive, arcs) in enumerate(steps):
        lines.append(f"  - step: s{index}\n    tool: {{kind: noop}}")
        if index == last:
            lines.append("    spec: {join: all}")
        if arcs:
            mode = "inclusive" if inclusive else "exclusive"
            written = ", ".join(f"{{step: s{t}{GUARDS[g]}}}" for t, g in arcs)
            lines.append(f"    next: {{spec: {{mode: {mode}}}, arcs: [{written}]}}")
    return "\n".join(lines)


def choices(inclusive: bool, arcs: list[Arc]) -> Iterator[list[int]]:
    """Every set of arcs that one run of a step may fire."""
    for event in ("done", "failed"):
        answers = []
        for _, guard in arcs:
            fixed = event == "done" if guard == "none" else guard == event
            answers.append((True, False) if guard == "open" else (fixed,))
        for answer in product(*answers):
            fired = [i for i, holds in enumerate(answer) if holds]
            yield fired if inclusive else fired[:1]


def fills(steps: Steps) -> tuple[bool, bool, bool]:
    """Whether the last step's join fills, whether it gets a token, whether all ways were seen."""
    last = len(steps) - 1
    places = [
        (s, a) for s, (_, arcs) in enumerate(steps) for a, (t, _) in enumerate(arcs) if t == last
    ]
    todo: list[State] = [((0,), (0,) * len(places))]
    seen = set(todo)
    complete, touched = True, False
    while todo:
        tokens, marking = todo.pop()
        touched = touched or any(marking)
        if places and all(marking):
            return True, True, complete
        for step in set(tokens):
            rest = list(tokens)
            rest.remove(step)
            for fired in choices(*steps[step]):
                after, marks = list(rest), list(marking)
                for arc in fired:
                    target = steps[step][1][arc][0]
                    if target == last:
                        marks[places.index((step, arc))] = 1
                    else:
                        after.append(target)
                state = (tuple(sorted(after)), tuple(marks))
                if len(after) > MOST_TOKENS or len(seen) > MOST_STATES:
                    complete = False
                elif state not in seen:
                    seen.add(state)
                    todo.append(state)
    return False, touched, complete


def reported(steps: Steps) -> bool:
    (checked,) = check_text(text_of(steps))
    return any(p.code == "A6.join-never-fills" for p in checked.problems)


@settings(max_examples=150, deadline=None)
@given(nets(cyclic=False))
def test_A6_without_cycles_two_place_joins_are_reported_exactly_when_they_never_fill(
    steps: Steps,
) -> None:
    last = len(steps) - 1
    inbound = sum(1 for _, arcs in steps for target, _ in arcs if target == last)
    can_fill, touched, complete = fills(steps)
    if can_fill:
        assert not reported(steps)
    elif complete and touched and inbound == 2:
        assert reported(steps)


@settings(max_examples=150, deadline=None)
@given(nets(cyclic=True))
def test_A6_a_join_that_can_fill_is_never_reported(steps: Steps) -> None:
    can_fill, _, _ = fills(steps)
    assert not (can_fill and reported(steps))
