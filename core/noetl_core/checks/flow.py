"""How tokens go through the workflow (rules A6, C2, C4): arcs that never fire, steps that no token
reaches or leaves, joins that never fill.

`net` and `net_joins` find out; this room says it to the author, with the way that shows it. Steps
that could not be read whole may lead to any step they mention: one mistake is not told twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from noetl_core.checks.report import Report
from noetl_core.model import AtEnd
from noetl_core.net import DONE, FAILED, LOOP_DONE, Net, NetArc, build
from noetl_core.net_joins import DeadPlace, Rivals, never_full
from noetl_core.problems import Path, Severity, path_text
from noetl_core.source import MappingNode, Node, ScalarNode, SequenceNode

LONGEST_WAY = 8
"""Steps of a way that are written out."""

_STEP_PATH = re.compile(r"(?:spec\.)?workflow\[(\d+)\](?:\.(\w+))?")
_READ_APART = frozenset({"tool", "loop", "spec", "desc"})
"""Keys of a step whose mistakes do not change where it leads."""


def check(report: Report) -> None:
    names = [step.step for step in report.playbook.workflow]
    if not any(names):
        return
    open_steps = {i: _mentioned(report, i, set(names)) for i in _unread(report)}
    net = build(
        report.playbook, report.guards, lambda name: report.nearest(name, names), open_steps
    )
    _arcs(report, net)
    _never_admits(report, net)
    if _entry_is_known(report, net):
        _unreachable(report, net)
        _trapped(report, net)
        _joins(report, net)
    _lone_joins(report, net)


def _entry_is_known(report: Report, net: Net) -> bool:
    return net.entry is not None and bool(net.steps[net.entry].step)


def _unread(report: Report) -> set[int]:
    """The steps of which something that routes could not be read."""
    unread: set[int] = set()
    for problem in report.loaded.problems:
        found = _STEP_PATH.match(problem.path)
        if found and problem.severity is Severity.ERROR and found[2] not in _READ_APART:
            index = int(found[1])
            if index < len(report.playbook.workflow):
                unread.add(index)
    return unread


def _mentioned(report: Report, index: int, names: set[str]) -> list[str]:
    """The steps that a step's text names anywhere but as its own name."""
    node = report.place(("workflow", index)).node
    if isinstance(node, MappingNode):
        inner = [entry.node for key, entry in node.entries.items() if key != "step"]
        return sorted({text for one in inner for text in _texts(one)} & names)
    return []


def _texts(node: Node) -> Iterator[str]:
    match node:
        case ScalarNode(value=str() as text):
            yield text
        case SequenceNode():
            for item in node.items:
                yield from _texts(item)
        case MappingNode():
            for entry in node.entries.values():
                yield from _texts(entry.node)


def _arc_path(arc: NetArc) -> Path:
    return ("workflow", arc.source, "next", "arcs", arc.position)


def _arcs(report: Report, net: Net) -> None:
    for index, step in enumerate(net.steps):
        for arc in net.arcs[index] if index not in net.open_steps else ():
            if arc.can_fire:
                continue
            when = step.arcs[arc.position].when
            if any(holds is not False for holds in arc.holds):
                message = "this arc never fires: an arc above it always does, and one is enough"
                hint = "`next.spec.mode: inclusive` fires both; or give the arc above a `when`"
                report.warning("C4.arc-shadowed", _arc_path(arc), message, hint)
            elif isinstance(when, str):
                why = _why_never(net, index, when)
                report.warning("C4.arc-never", (*_arc_path(arc), "when"), *why)


def _why_never(net: Net, index: int, when: str) -> tuple[str, str | None]:
    """A guard that asks for an event this step never has is the common case."""
    events, good = net.events[index], net.events[index][0]
    if good == DONE and LOOP_DONE in when:
        return "this arc never fires: the step has no loop", f"it ends with `{DONE}`"
    if good == LOOP_DONE and DONE in when:
        return f"this arc never fires: a loop ends with `{LOOP_DONE}`, never `{DONE}`", (
            f"write event.name == '{LOOP_DONE}'"
        )
    if FAILED not in events and FAILED in when:
        return "this arc never fires: a step that only routes does not fail", None
    return "this arc never fires: its `when` is always false", None


def _never_admits(report: Report, net: Net) -> None:
    for index in sorted(net.never_admits - {net.final}):
        place = ("workflow", index, "spec", "policy", "admit")
        message = f"step `{net.steps[index].step}` admits no token: every rule denies"
        report.warning("C2.never-admits", place, message)


def _unreachable(report: Report, net: Net) -> None:
    assert net.entry is not None
    entry = net.steps[net.entry].step
    reached = {net.steps[index].step for index in net.reached}
    for index, step in enumerate(net.steps):
        if index in net.reached or index == net.final or not step.step or step.step in reached:
            continue
        message = f"step `{step.step}` is never reached from `{entry}`"
        hint = "no arc leads to it"
        if net.inbound[index]:
            sources = dict.fromkeys(net.steps[arc.source].step for arc in net.inbound[index])
            hint = "only arcs that get no token lead to it, from " + ", ".join(list(sources)[:4])
        report.warning("A6.unreachable", ("workflow", index, "step"), message, hint)


def _trapped(report: Report, net: Net) -> None:
    for index in net.trapped():
        if index == net.final:
            continue
        message = f"no end is reachable from step `{net.steps[index].step}`: {_circle(net, index)}"
        hint = "give an arc of the circle a `when`, or add one that leads out"
        report.warning("A6.no-end", ("workflow", index, "step"), message, hint)


def _circle(net: Net, start: int) -> str:
    """The way a token takes from here, until it comes back to where it was."""
    way = [start]
    while len(way) <= LONGEST_WAY:
        targets = net.live_targets(way[-1])
        if not targets:
            break
        way.append(targets[0])
        if targets[0] in way[:-1]:
            break
    return _way_text(net, way)


def _way_text(net: Net, way: list[int] | tuple[int, ...]) -> str:
    shown = [net.steps[index].step for index in way]
    if len(shown) > LONGEST_WAY + 1:
        shown = [*shown[: LONGEST_WAY // 2], "…", *shown[-LONGEST_WAY // 2 :]]
    return " → ".join(shown)


def _joins(report: Report, net: Net) -> None:
    for found in never_full(net):
        if found.join == net.final:
            continue
        match found:
            case DeadPlace():
                message, hint = _dead_place(net, found)
            case Rivals():
                message, hint = _rivals(net, found)
        step = net.steps[found.join]
        tell = report.warning
        if step.spec.join is not None and step.spec.join.at_end is AtEnd.FAIL:
            tell = report.error
        place = ("workflow", found.join, "spec", "join")
        tell("A6.join-never-fills", place, f"`join` of `{step.step}` never fills: {message}", hint)


def _dead_place(net: Net, found: DeadPlace) -> tuple[str, str]:
    source = net.steps[found.arc.source].step
    join = net.steps[found.join].step
    if found.arc.source not in net.reached:
        return f"the arc {source} → {join} gets no token, since `{source}` is never reached", (
            f"add an arc to `{source}`, or remove the one from it"
        )
    return f"the arc {source} → {join} never fires", "remove that arc, or change its `when`"


def _rivals(net: Net, found: Rivals) -> tuple[str, str]:
    hint = "without `join` every token runs the step; `at_end: fire` runs it with what is there"
    if found.fork is None:
        one, other = (net.steps[arc.source].step for arc in (found.first, found.second))
        return f"no token comes from `{one}` when one comes from `{other}`", hint
    fork = net.steps[found.fork]
    ways = " or ".join(_way_text(net, way) for way in found.ways)
    message = f"a token goes {ways}, never both ways"
    if not fork.is_inclusive:
        hint = f"`next.spec.mode: inclusive` of `{fork.step}` sends a token each way; " + hint
    return message, hint


def _lone_joins(report: Report, net: Net) -> None:
    wrong = {p.path for p in report.loaded.problems if p.severity is Severity.ERROR}
    for index, step in enumerate(net.steps):
        arcs = net.inbound[index]
        if step.spec.join is None or len(arcs) > 1 or index == net.final:
            continue
        join = report.place(("workflow", index, "spec", "join"))
        if {path_text(join.written), path_text((*join.written, "mode"))} & wrong:
            continue
        count = "one arc leads" if arcs else "no arc leads"
        message = f"`join: all` of `{step.step}` has nothing to wait for: {count} to it"
        report.warning(
            "A6.join-arcs", ("workflow", index, "spec", "join"), message, "remove `join`"
        )
