"""A playbook's net as data (steps, arcs with their guards), as text and as a drawing.

`noetl graph` calls this. `mermaid` and `dot` are for other programs; `svg` draws by itself
(`layout` says where). Names and guards are authors' text: each format escapes all of it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from noetl_core.model import Loop, OnDeny, Playbook, Step
from noetl_core.values import Value


@dataclass(frozen=True, slots=True)
class NetLoop:
    """A loop around a step's pipeline; outer loops come first."""

    iterator: str
    mode: str
    max_in_flight: str | None
    """None for a sequential loop; else a number or a template."""
    exec: str

    @property
    def text(self) -> str:
        many = f", {self.max_in_flight} at once" if self.max_in_flight else ""
        return f"for each {self.iterator}: {self.mode}{many}"


@dataclass(frozen=True, slots=True)
class NetStep:
    """A step as a picture shows it."""

    name: str
    desc: str | None
    tasks: tuple[tuple[str, str], ...]
    """Label and tool kind of each task."""
    loops: tuple[NetLoop, ...]
    join_at_end: str | None
    """What a `join: all` does when it can't fill; None for a step that is no join."""
    admission: str | None
    """`rules`, or `wait` for a gate where tokens wait."""
    is_inclusive: bool
    is_entry: bool
    is_final: bool

    @property
    def details(self) -> list[str]:
        """What stands below the name."""
        kinds = [kind for _, kind in self.tasks]
        shown = " → ".join(kinds[:4]) + (f" → +{len(kinds) - 4}" if len(kinds) > 4 else "")
        lines = [shown or "routes only", *(loop.text for loop in self.loops)]
        if self.join_at_end:
            lines.append("join: all" + _unless(self.join_at_end, "fail", ", at end: "))
        if self.admission:
            lines.append("gate: waits" if self.admission == "wait" else "admission rules")
        if self.is_inclusive:
            lines.append("every matching arc")
        if self.is_final:
            lines.append("final: runs once at the end")
        return lines


@dataclass(frozen=True, slots=True)
class NetArc:
    """An arc; `order` is its place in an exclusive router of several arcs, else None."""

    source: str
    target: str
    guard: str | None
    order: int | None

    @property
    def label(self) -> str:
        if not self.order:
            return self.guard or ""
        # Not `1.`: Mermaid reads that as a list.
        return f"{self.order}: {self.guard}" if self.guard else f"{self.order}"


@dataclass(frozen=True, slots=True)
class Net:
    """The whole picture."""

    name: str
    steps: tuple[NetStep, ...]
    arcs: tuple[NetArc, ...]
    entry: str
    final: str | None

    def as_json(self) -> dict[str, Value]:
        return {
            "playbook": self.name,
            "entry": self.entry,
            "final": self.final,
            "steps": [_step_json(step) for step in self.steps],
            "arcs": [
                {"from": a.source, "to": a.target, "when": a.guard, "order": a.order}
                for a in self.arcs
            ],
        }


def net_of(playbook: Playbook) -> Net:
    """The net of a valid playbook."""
    entry, final = playbook.entry_step, playbook.executor.spec.final_step
    return Net(
        name=playbook.metadata.name,
        steps=tuple(_step(step, entry, final) for step in playbook.workflow),
        arcs=tuple(arc for step in playbook.workflow for arc in _arcs(step)),
        entry=entry,
        final=final,
    )


def _step(step: Step, entry: str, final: str | None) -> NetStep:
    admit = step.spec.policy.admit
    waits = admit is not None and admit.on_deny is OnDeny.WAIT
    admission = ("wait" if waits else "rules") if admit is not None and admit.rules else None
    return NetStep(
        name=step.step,
        desc=step.desc,
        tasks=tuple((task.name, task.kind) for task in step.tool),
        loops=tuple(_loops(step.loop)),
        join_at_end=step.spec.join.at_end.value if step.spec.join else None,
        admission=admission,
        is_inclusive=step.is_inclusive and len(step.arcs) > 1,
        is_entry=step.step == entry,
        is_final=step.step == final,
    )


def _loops(loop: Loop | None) -> Iterator[NetLoop]:
    while loop is not None:
        most = None if loop.mode.value == "sequential" else _bare(str(loop.max_in_flight))
        yield NetLoop(loop.iterator, loop.mode.value, most, loop.exec.value)
        loop = loop.loop


def _arcs(step: Step) -> Iterator[NetArc]:
    ordered = not step.is_inclusive and len(step.arcs) > 1
    for index, arc in enumerate(step.arcs, 1):
        yield NetArc(step.step, arc.step, _guard(arc.when), index if ordered else None)


def _guard(when: str | bool | None) -> str | None:
    match when:
        case None:
            return None
        case bool():
            return "always" if when else "never"
        case _:
            return _bare(when)


def _bare(template: str) -> str:
    """An expression without its braces, on one line."""
    text = " ".join(template.split())
    if text.startswith("{{") and text.endswith("}}") and text.count("{{") == 1:
        text = text[2:-2].strip("- ")
    return text


def _unless(value: str, usual: str, before: str) -> str:
    return "" if value == usual else before + value


def _step_json(step: NetStep) -> dict[str, Value]:
    return {
        "name": step.name,
        "desc": step.desc,
        "tasks": [{"name": name, "kind": kind} for name, kind in step.tasks],
        "loops": [
            {
                "iterator": loop.iterator,
                "mode": loop.mode,
                "max_in_flight": loop.max_in_flight,
                "exec": loop.exec,
            }
            for loop in step.loops
        ],
        "join": {"mode": "all", "at_end": step.join_at_end} if step.join_at_end else None,
        "admission": step.admission,
        "mode": "inclusive" if step.is_inclusive else "exclusive",
    }


def cells(text: str) -> int:
    """How many columns a monospaced font needs for a text."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def shortened(text: str, most: int) -> str:
    """Text cut to so many columns."""
    if cells(text) <= most:
        return text
    cut = text[:most]
    while cells(cut) > most - 1:
        cut = cut[:-1]
    return cut + "…"
