"""Where everything of a drawing stands: the second half of a layered drawing.

Each layer's slots keep their order and their distance and come as near as they can to their
neighbours above and below (least squares, exactly, by pooling). Heights follow from the boxes and
labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from noetl_core.graph.layers import Chain, Edge, Layers, Size, Slot, layered

ROUNDS = 30
"""How often positions are balanced, down and up in turn."""
BOX_GAP = 26.0
LINE_GAP = 12.0
LAYER_GAP = 16.0
MOST_GAP = 56.0
MARGIN = 24.0


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Route:
    """An arc's line: points in pairs that a curve joins, from its source to its target."""

    edge: Edge
    points: tuple[Point, ...]
    label_at: Point | None


@dataclass(frozen=True, slots=True)
class Drawing:
    """Middles of the boxes, routes of the arcs, and the size of the sheet."""

    boxes: tuple[Point, ...]
    routes: tuple[Route, ...]
    width: float
    height: float


def draw(
    boxes: Sequence[Size], edges: Sequence[Edge], roots: Sequence[int], last: int | None
) -> Drawing:
    """Places for all boxes and edges between two different boxes."""
    layers = layered(boxes, edges, roots, last)
    xs = _balanced(layers)
    tops, bottoms = _heights(layers, xs)
    middles = [
        Point(xs[i], (tops[s.layer] + bottoms[s.layer]) / 2) for i, s in enumerate(layers.slots)
    ]
    ports = _ports(layers, xs)
    routes = tuple(
        _route(layers.slots, chain, number, xs, (tops, bottoms), middles, ports)
        for number, chain in enumerate(layers.chains)
    )
    right = max(xs[i] + s.size.right for i, s in enumerate(layers.slots))
    return Drawing(tuple(middles[: len(boxes)]), routes, right + MARGIN, bottoms[-1] + MARGIN)


def _balanced(layers: Layers) -> list[float]:
    xs = [0.0] * len(layers.slots)
    for layer in layers.order:
        places = _apart(layers.slots, layer)
        for slot, x in zip(layer, places, strict=True):
            xs[slot] = x - places[-1] / 2
    for turn in range(ROUNDS):
        downwards = turn % 2 == 0
        for layer in layers.order if downwards else reversed(layers.order):
            _settle(layers.slots, layer, xs, downwards, both=turn >= ROUNDS // 3)
    left = min(xs[i] - s.size.left for i, s in enumerate(layers.slots))
    right = max(xs[i] + s.size.right for i, s in enumerate(layers.slots))
    for layer in layers.order:
        if len(layer) == 1 and not layers.slots[layer[0]].up + layers.slots[layer[0]].down:
            xs[layer[0]] = (left + right) / 2
    return [x - left + MARGIN for x in xs]


def _apart(slots: list[Slot], layer: list[int]) -> list[float]:
    """The least distances of a layer's slots from its first."""
    places = [0.0]
    for before, after in pairwise(layer):
        a, b = slots[before], slots[after]
        gap = BOX_GAP if a.is_box and b.is_box else LINE_GAP
        places.append(places[-1] + a.size.right + gap + b.size.left)
    return places[: len(layer)]


def _settle(
    slots: list[Slot], layer: list[int], xs: list[float], downwards: bool, both: bool
) -> None:
    """Move a layer's slots towards their neighbours, order and distances kept."""
    if not layer:
        return
    offsets = _apart(slots, layer)
    wanted: list[float] = []
    weights: list[float] = []
    for slot, offset in zip(layer, offsets, strict=True):
        here = slots[slot]
        near = here.up + here.down if both else (here.up if downwards else here.down)
        pulls = [(xs[n], _pull(here, slots[n])) for n in near]
        weight = sum(p for _, p in pulls)
        x = sum(x * p for x, p in pulls) / weight if weight else xs[slot]
        wanted.append(x - offset)
        weights.append(weight or 0.05)
    for slot, offset, x in zip(layer, offsets, _pooled(wanted, weights), strict=True):
        xs[slot] = x + offset


def _pull(a: Slot, b: Slot) -> float:
    """Lines want to be straight more than boxes want to be above each other."""
    return (1.0, 3.0, 12.0)[(not a.is_box) + (not b.is_box)]


def _pooled(wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The non-decreasing numbers nearest to the wanted ones."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(wanted, weights, strict=True):
        pool = (value, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            v, w, n = pools.pop()
            total = w + pool[1]
            pool = ((v * w + pool[0] * pool[1]) / total, total, n + pool[2])
        pools.append(pool)
    return [value for value, _, count in pools for _ in range(count)]


def _heights(layers: Layers, xs: list[float]) -> tuple[list[float], list[float]]:
    """Top and bottom of every layer; lines that run far sideways get room to bend."""
    tops: list[float] = []
    bottoms: list[float] = []
    y = MARGIN
    for layer in layers.order:
        height = max((layers.slots[s].size.height for s in layer), default=0.0)
        tops.append(y)
        bottoms.append(y + height)
        aside = max((abs(xs[s] - xs[t]) for s in layer for t in layers.slots[s].down), default=0.0)
        y += height + min(MOST_GAP, LAYER_GAP + aside * 0.12)
    return tops, bottoms


def _ports(layers: Layers, xs: list[float]) -> dict[tuple[int, int, bool], float]:
    """Where each chain leaves its upper box and meets its lower: (box, chain, is_lower) → x."""
    ends: dict[tuple[int, bool], list[tuple[float, int]]] = {}
    for number, chain in enumerate(layers.chains):
        upper, lower = _chain_ends(chain)
        first = chain.slots[0] if chain.slots else lower
        last = chain.slots[-1] if chain.slots else upper
        ends.setdefault((upper, False), []).append((xs[first], number))
        ends.setdefault((lower, True), []).append((xs[last], number))
    ports: dict[tuple[int, int, bool], float] = {}
    for (box, is_lower), lines in ends.items():
        half = min(layers.slots[box].size.left, layers.slots[box].size.right) - 10
        step = min(18.0, 2 * half / (len(lines) - 1)) if len(lines) > 1 and half > 0 else 0.0
        for place, (_, number) in enumerate(sorted(lines)):
            ports[box, number, is_lower] = xs[box] + (place - (len(lines) - 1) / 2) * step
    return ports


def _chain_ends(chain: Chain) -> tuple[int, int]:
    edge = chain.edge
    return (edge.target, edge.source) if chain.is_turned else (edge.source, edge.target)


def _route(
    slots: list[Slot],
    chain: Chain,
    number: int,
    xs: list[float],
    heights: tuple[list[float], list[float]],
    middles: list[Point],
    ports: dict[tuple[int, int, bool], float],
) -> Route:
    tops, bottoms = heights
    upper, lower = _chain_ends(chain)
    bottom = middles[upper].y + slots[upper].size.height / 2
    top = middles[lower].y - slots[lower].size.height / 2
    points = [Point(ports[upper, number, False], bottom)]
    if bottom < bottoms[slots[upper].layer] - 0.5:
        points.append(Point(points[0].x, bottoms[slots[upper].layer]))
    for slot in chain.slots:
        layer = slots[slot].layer
        points += [Point(xs[slot], tops[layer]), Point(xs[slot], bottoms[layer])]
    end = ports[lower, number, True]
    if top > tops[slots[lower].layer] + 0.5:
        points.append(Point(end, tops[slots[lower].layer]))
    points.append(Point(end, top))
    if chain.is_turned:
        points.reverse()
    label = middles[chain.label_slot] if chain.label_slot is not None else None
    return Route(chain.edge, tuple(points), label)
