"""Joins that can never fill (rules A6, C9): which places of a `join: all` can hold a token at once.

There is one first token, and only a router that fires several arcs at one event makes more. So two
places can both be filled only if some router sends one token towards each. The net is taken as if
every token ran every step it reaches, which allows more than the engine does: a join that is
reported here can't fill; one that is not reported may still depend on data. Called by the checker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from noetl_core.net import Net, NetArc

MOST_BITS = 200_000_000
"""Steps × places that are looked at; beyond it nothing is reported."""
MOST_WORK = 400_000
"""Routers' arcs × joins, and pairs of places, that are looked at; beyond it nothing is reported."""
MOST_WAYS = 20
"""Joins for which the ways are written out."""


@dataclass(frozen=True, slots=True)
class DeadPlace:
    """A join with a place that never gets a token."""

    join: int
    arc: NetArc


@dataclass(frozen=True, slots=True)
class Rivals:
    """A join with two places of which one token fills one, and never another the other."""

    join: int
    first: NetArc
    second: NetArc
    fork: int | None
    """The step whose router decides between them."""
    ways: tuple[tuple[int, ...], ...] = ()
    """From the fork to the join, once by each place."""


@dataclass(slots=True)
class _Join:
    step: int
    places: list[NetArc]
    offset: int
    together: list[int] = field(init=False)
    """For each place the set of places that another token can fill."""

    def __post_init__(self) -> None:
        self.together = [1 << place for place in range(len(self.places))]

    @property
    def all(self) -> int:
        return (1 << len(self.places)) - 1

    def rivals(self) -> tuple[NetArc, NetArc] | None:
        for place, together in enumerate(self.together):
            lacking = self.all & ~together
            if lacking:
                other = (lacking & -lacking).bit_length() - 1
                return self.places[place], self.places[other]
        return None


def never_full(net: Net) -> list[DeadPlace | Rivals]:
    """Every join that gets a token and can never get a full set; none inside a cycle."""
    found: list[DeadPlace | Rivals] = []
    joins: list[_Join] = []
    in_cycle, offset = net.in_cycle(), 0
    for step in sorted(net.reached):
        places = net.inbound[step]
        if not net.is_join(step) or step in in_cycle or net.reached[step] is None:
            continue
        dead = [arc for arc in places if not _alive(net, arc)]
        if dead:
            found.append(DeadPlace(step, dead[0]))
            continue
        joins.append(_Join(step, places, offset))
        offset += len(places)
    if joins and len(net.reached) * offset <= MOST_BITS:
        found += _Masks(net, joins).rivals()
    return found


def _alive(net: Net, arc: NetArc) -> bool:
    return arc.can_fire and arc.source in net.reached and arc.source not in net.never_admits


class _Masks:
    """For every step and arc the set of places (as bits) that a token can come to from there."""

    def __init__(self, net: Net, joins: list[_Join]) -> None:
        self._net, self._joins, self._left = net, joins, MOST_WORK
        self._bits = {
            (arc.source, arc.position): 1 << (join.offset + i)
            for join in joins
            for i, arc in enumerate(join.places)
        }
        self._of_step: dict[int, int] = {}
        for part in net.cycles:
            # Sinks come first, so all that a part leads to outside itself is known by now.
            mask = 0
            for step in part:
                for arc in net.live(step):
                    mask |= self._bit(arc) | self._of_step.get(arc.target, 0)
            self._of_step.update(dict.fromkeys(part, mask))

    def rivals(self) -> Iterator[Rivals]:
        if not self._gather():
            return
        for told, join in enumerate(j for j in self._joins if j.rivals()):
            pair = join.rivals()
            assert pair is not None
            if told < MOST_WAYS:
                yield self._with_ways(join, *pair)
            else:
                yield Rivals(join.step, *pair, None)

    def _bit(self, arc: NetArc) -> int:
        return self._bits.get((arc.source, arc.position), 0)

    def _of_arc(self, arc: NetArc) -> int:
        return self._bit(arc) | self._of_step[arc.target]

    def _gather(self) -> bool:
        """Note which places are filled together; False when that is too much work."""
        for step in self._net.reached:
            if not self._net.steps[step].is_inclusive and step not in self._net.open_steps:
                continue
            for event in range(len(self._net.events[step])):
                group = [arc for arc in self._net.live(step) if _fires(arc, event)]
                self._left -= len(group) * len(self._joins)
                if self._left > 0:
                    self._fork([self._of_arc(arc) for arc in group])
        return self._left > 0

    def _fork(self, masks: list[int]) -> None:
        after = [0] * (len(masks) + 1)
        for i in range(len(masks) - 1, -1, -1):
            after[i] = after[i + 1] | masks[i]
        before = 0
        for i, mask in enumerate(masks):
            others = before | after[i + 1]
            if mask and others:
                self._together(mask, others)
            before |= mask

    def _together(self, mask: int, others: int) -> None:
        for join in self._joins:
            mine = mask >> join.offset & join.all
            rest = others >> join.offset & join.all
            while mine and rest and self._left > 0:
                self._left -= 1
                lowest = mine & -mine
                join.together[lowest.bit_length() - 1] |= rest
                mine ^= lowest

    def _with_ways(self, join: _Join, first: NetArc, second: NetArc) -> Rivals:
        fork = self._fork_of(first, second)
        if fork is None:
            return Rivals(join.step, first, second, None)
        step, one, other = fork
        ways = (self._way(step, one, first), self._way(step, other, second))
        return Rivals(join.step, first, second, step, ways)

    def _fork_of(self, first: NetArc, second: NetArc) -> tuple[int, NetArc, NetArc] | None:
        """The last step that leads to both places by different arcs."""
        for step in reversed(self._net.reached):
            arcs = self._net.live(step)
            ones = [arc for arc in arcs if self._of_arc(arc) & self._bit(first)]
            others = [arc for arc in arcs if self._of_arc(arc) & self._bit(second)]
            for one in ones[:2]:
                for other in others[:2]:
                    if one is not other:
                        return step, one, other
        return None

    def _way(self, fork: int, by: NetArc, place: NetArc) -> tuple[int, ...]:
        if by is place:
            return (fork, place.target)
        return (fork, *self._net.way(by.target, place.source), place.target)


def _fires(arc: NetArc, event: int) -> bool:
    return event >= len(arc.fires) or arc.fires[event] is not False
