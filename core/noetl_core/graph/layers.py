"""Which layer every box stands in, and in which order: the first half of a layered drawing.

Cycles are broken by turning round the arcs that close them; boxes take the layer of their longest
path from the start; long arcs get a slot in every layer they cross, so that no line runs through a
box; sweeps by the mean of the neighbours' places take crossings away. Labels are slots of their
own, between two layers of boxes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

SWEEPS = 12
"""How often the order of all layers is improved."""
MAX_SLOTS = 20_000
"""Above so many slots, a long arc takes only its first and last: the drawing stays bounded."""


@dataclass(frozen=True, slots=True)
class Size:
    """Half widths left and right of the middle, and the height."""

    left: float
    right: float
    height: float


@dataclass(frozen=True, slots=True)
class Edge:
    """An arc between boxes, by their numbers; the label's size is None where there is none."""

    source: int
    target: int
    label: Size | None = None


@dataclass(slots=True)
class Slot:
    """A box, a label, or a place where a line crosses a layer."""

    layer: int
    size: Size
    is_box: bool
    up: list[int] = field(default_factory=list)
    down: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Chain:
    """An edge's way from the upper box to the lower: the slots between, one with its label."""

    edge: Edge
    is_turned: bool
    slots: list[int]
    label_slot: int | None


@dataclass(slots=True)
class Layers:
    """Slots in their layers, in order from left to right."""

    slots: list[Slot]
    chains: list[Chain]
    order: list[list[int]]


_LINE = Size(7, 7, 0)


def layered(
    boxes: Sequence[Size], edges: Sequence[Edge], roots: Sequence[int], last: int | None
) -> Layers:
    """Boxes and edges put into ordered layers. `roots` come first, `last` below everything."""
    own = [e for e in edges if e.source != e.target]
    turned = _closing(len(boxes), own, roots)
    ranks = _ranks(len(boxes), own, turned)
    if last is not None and all(e.target != last for e in own):
        ranks[last] = max(ranks) + (1 if len(boxes) > 1 else 0)
    slots = [Slot(2 * rank, size, True) for rank, size in zip(ranks, boxes, strict=True)]
    chains = _chains(slots, own, turned)
    order = _first_order(slots, roots)
    _reduce_crossings(slots, order)
    return Layers(slots, chains, order)


def _closing(count: int, edges: Sequence[Edge], roots: Sequence[int]) -> set[int]:
    """The edges that close a cycle, found depth first without recursion."""
    out: list[list[int]] = [[] for _ in range(count)]
    for index, edge in enumerate(edges):
        out[edge.source].append(index)
    state = [0] * count
    closing: set[int] = set()
    for root in [*roots, *range(count)]:
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(out[root]))]
        while stack:
            node, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                state[node] = 2
                stack.pop()
                continue
            target = edges[following].target
            if state[target] == 1:
                closing.add(following)
            elif state[target] == 0:
                state[target] = 1
                stack.append((target, iter(out[target])))
    return closing


def _ranks(count: int, edges: Sequence[Edge], turned: set[int]) -> list[int]:
    """The longest path to each box once the closing edges are turned round."""
    below: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for index, edge in enumerate(edges):
        upper, lower = _ends(edge, index in turned)
        below[upper].append(lower)
        waits[lower] += 1
    ranks = [0] * count
    ready = [node for node in range(count) if not waits[node]]
    while ready:
        node = ready.pop()
        for lower in below[node]:
            ranks[lower] = max(ranks[lower], ranks[node] + 1)
            waits[lower] -= 1
            if not waits[lower]:
                ready.append(lower)
    return ranks


def _ends(edge: Edge, is_turned: bool) -> tuple[int, int]:
    return (edge.target, edge.source) if is_turned else (edge.source, edge.target)


def _chains(slots: list[Slot], edges: Sequence[Edge], turned: set[int]) -> list[Chain]:
    spans = [abs(slots[e.source].layer - slots[e.target].layer) - 1 for e in edges]
    short = sum(spans) > MAX_SLOTS
    made: list[Chain] = []
    for index, edge in enumerate(edges):
        upper, lower = _ends(edge, index in turned)
        first, last = slots[upper].layer + 1, slots[lower].layer - 1
        layers = range(first, last + 1) if not short else sorted({first, last})
        label_layer = last if index in turned else first
        chain = Chain(edge, index in turned, [], None)
        before = upper
        for layer in layers:
            is_label = layer == label_layer and edge.label is not None
            size = edge.label if is_label and edge.label is not None else _LINE
            slots.append(Slot(layer, size, False))
            here = len(slots) - 1
            chain.slots.append(here)
            chain.label_slot = here if is_label else chain.label_slot
            _link(slots, before, here)
            before = here
        _link(slots, before, lower)
        made.append(chain)
    return made


def _link(slots: list[Slot], upper: int, lower: int) -> None:
    slots[upper].down.append(lower)
    slots[lower].up.append(upper)


def _first_order(slots: list[Slot], roots: Sequence[int]) -> list[list[int]]:
    """Layers filled depth first, so that branches start out beside each other."""
    order: list[list[int]] = [[] for _ in range(max(s.layer for s in slots) + 1)]
    seen = [False] * len(slots)
    for root in [*roots, *range(len(slots))]:
        stack = [root]
        while stack:
            here = stack.pop()
            if seen[here]:
                continue
            seen[here] = True
            order[slots[here].layer].append(here)
            stack += [s for s in reversed(slots[here].down) if not seen[s]]
    return order


def _reduce_crossings(slots: list[Slot], order: list[list[int]]) -> None:
    best, best_order = _crossings(slots, order), [list(layer) for layer in order]
    for sweep in range(SWEEPS):
        if best == 0:
            break
        downwards = sweep % 2 == 0
        place = {s: float(i) for layer in order for i, s in enumerate(layer)}
        for layer in order if downwards else reversed(order):
            _sort_layer(slots, layer, place, downwards)
        count = _crossings(slots, order)
        if count < best:
            best, best_order = count, [list(layer) for layer in order]
    order[:] = best_order


def _sort_layer(
    slots: list[Slot], layer: list[int], place: dict[int, float], downwards: bool
) -> None:
    def wanted(slot: int) -> float:
        near = slots[slot].up if downwards else slots[slot].down
        return sum(place[n] for n in near) / len(near) if near else place[slot]

    layer.sort(key=wanted)
    for index, slot in enumerate(layer):
        place[slot] = float(index)


def _crossings(slots: list[Slot], order: list[list[int]]) -> int:
    """How many pairs of lines cross, layer by layer."""
    place = {s: i for layer in order for i, s in enumerate(layer)}
    total = 0
    for layer in order:
        ends: list[int] = []
        for slot in layer:
            targets = sorted(place[t] for t in slots[slot].down)
            total += sum(len(ends) - bisect_left(ends, t + 1) for t in targets)
            for target in targets:
                insort(ends, target)
    return total
