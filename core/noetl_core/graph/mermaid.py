"""A net as a Mermaid flowchart, for Markdown pages that draw it."""

from __future__ import annotations

import re

from noetl_core.graph import Net, NetStep, shortened

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -.,:=+!?/'()→…")
_LONGEST = 120


def mermaid(net: Net) -> str:
    """The flowchart. Node ids are ours; all of an author's text is escaped inside quotes."""
    ids = {step.name: f"s{index}" for index, step in enumerate(net.steps)}
    lines = ["flowchart TD", '  start(("start"))', f"  start --> {ids[net.entry]}"]
    lines += [f"  {ids[step.name]}{_box(step)}" for step in net.steps]
    for arc in net.arcs:
        label = f'|"{escaped(shortened(arc.label, _LONGEST))}"|' if arc.label else ""
        lines.append(f"  {ids[arc.source]} -->{label} {ids[arc.target]}")
    lines += _classes(net, ids)
    return "\n".join(lines) + "\n"


def _box(step: NetStep) -> str:
    rows = [step.name, *step.details]
    text = "<br/>".join(escaped(shortened(row, _LONGEST)) for row in rows)
    if step.is_final:
        return f'[["{text}"]]'
    if step.join_at_end:
        return f'{{{{"{text}"}}}}'
    return f'("{text}")' if step.tasks else f'{{"{text}"}}'


def _classes(net: Net, ids: dict[str, str]) -> list[str]:
    named = {
        "entry": [ids[s.name] for s in net.steps if s.is_entry],
        "final": [ids[s.name] for s in net.steps if s.is_final],
        "gate": [ids[s.name] for s in net.steps if s.admission == "wait"],
    }
    styles = {
        "entry": "stroke:#1a7f37,stroke-width:2px",
        "final": "stroke:#8250df,stroke-width:2px",
        "gate": "stroke:#bf8700,stroke-width:2px,stroke-dasharray:4",
    }
    lines: list[str] = []
    for name, members in named.items():
        if members:
            lines.append(f"  classDef {name} {styles[name]}")
            lines.append(f"  class {','.join(members)} {name}")
    return lines


def escaped(text: str) -> str:
    """Text that Mermaid shows as it is: everything unusual as a character code."""
    shown = "".join(c if c in _PLAIN or c == "_" or _is_letter(c) else _code(c) for c in text)
    # Underscores inside a word are text; at its ends they would be emphasis.
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", "#95;", shown)


def _is_letter(char: str) -> bool:
    return not char.isascii() and char.isalnum()


def _code(char: str) -> str:
    return f"#{ord(char)};" if char.isprintable() else "#65533;"
