"""A net in Graphviz' DOT language."""

from __future__ import annotations

from noetl_core.graph import Net, NetArc, NetStep, shortened

_LONGEST = 120


def dot(net: Net) -> str:
    """The digraph; every text of an author stands in a quoted string."""
    lines = [
        f"digraph {string(net.name)} {{",
        "  rankdir=TB;",
        '  node [shape=box, style=rounded, fontname="monospace", fontsize=11];',
        '  edge [fontname="monospace", fontsize=9];',
        '  "start:" [shape=circle, label="", style=filled, fillcolor=black, width=0.15];',
        f'  "start:" -> {string(net.entry)};',
    ]
    lines += [f"  {string(step.name)} [{_attributes(step)}];" for step in net.steps]
    lines += [f"  {_arc(arc)};" for arc in net.arcs]
    return "\n".join([*lines, "}"]) + "\n"


def _attributes(step: NetStep) -> str:
    rows = [step.name, *step.details]
    label = "\\n".join(_inside(shortened(row, _LONGEST)) for row in rows)
    given = {"label": f'"{label}"'}
    if step.is_entry:
        given["color"] = '"#1a7f37"'
    if step.is_final:
        given |= {"color": '"#8250df"', "peripheries": "2"}
    if step.admission == "wait":
        given |= {"color": '"#bf8700"', "style": '"rounded,dashed"'}
    if step.join_at_end:
        given["shape"] = "house"
    return ", ".join(f"{key}={value}" for key, value in given.items())


def _arc(arc: NetArc) -> str:
    label = f" [label={string(shortened(arc.label, _LONGEST))}]" if arc.label else ""
    return f"{string(arc.source)} -> {string(arc.target)}{label}"


def string(text: str) -> str:
    """A quoted string of DOT."""
    return f'"{_inside(text)}"'


def _inside(text: str) -> str:
    shown = "".join(c if c.isprintable() else "�" for c in text)
    return shown.replace("\\", "\\\\").replace('"', '\\"')
