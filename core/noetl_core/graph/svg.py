"""A net as an SVG drawing, made here: no other program, no script, no font to load.

Readable on light and dark pages alike. Sizes are reckoned for a monospaced font, so that text fits
its box wherever the drawing is shown. Whatever an author wrote is escaped, and its full text is a
tooltip.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from noetl_core.graph import Net, NetArc, NetStep, cells, shortened
from noetl_core.graph.layers import Edge, Size
from noetl_core.graph.layout import Drawing, Point, Route, draw

NAME_PX = 13.0
DETAIL_PX = 11.0
LABEL_PX = 10.5
EM = 0.61
"""Width of a monospaced character, in parts of its size."""
LINE = 1.4
PAD = 12.0
MOST_CELLS = 44
LABEL_CELLS = 34
LABEL_LINES = 3
START = Size(6, 6, 12)
SELF = 30.0
"""How far the line of an arc from a step to itself reaches."""

_STYLE = """
.sheet{fill:#ffffff}
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.name{font-size:13px;font-weight:600;fill:#1f2328}
.detail{font-size:11px;fill:#59636e}
.loop{fill:#0969da}.join{fill:#bc4c00}.gate{fill:#9a6700}.end{fill:#8250df}
.box{fill:#f6f8fa;stroke:#818b98;stroke-width:1.2}
.box.entry{stroke:#1a7f37;stroke-width:2}
.box.final{stroke:#8250df;stroke-width:2}
.box.waits{stroke:#9a6700;stroke-width:2;stroke-dasharray:5 3}
.inner{fill:none;stroke:#8250df;stroke-width:1}
.bar{fill:#bc4c00}
.again{fill:#f6f8fa;stroke:#0969da;stroke-width:1}
.start{fill:#1a7f37}
.arc{fill:none;stroke:#6e7781;stroke-width:1.4}
.back{stroke:#0969da}
.head{fill:#6e7781}
.head.back{fill:#0969da;stroke:none}
.label{font-size:10.5px;fill:#24292f}
.under{fill:#ffffff;fill-opacity:.92}
@media (prefers-color-scheme:dark){
.sheet{fill:#0d1117}
.name{fill:#f0f6fc}.detail{fill:#9198a1}
.loop{fill:#58a6ff}.join{fill:#f0883e}.gate{fill:#d29922}.end{fill:#bc8cff}
.box{fill:#161b22;stroke:#656c76}
.box.entry{stroke:#3fb950}.box.final{stroke:#bc8cff}.box.waits{stroke:#d29922}
.inner{stroke:#bc8cff}.bar{fill:#f0883e}.again{fill:#161b22;stroke:#58a6ff}.start{fill:#3fb950}
.arc{stroke:#8b949e}.back{stroke:#58a6ff}.head{fill:#8b949e}.head.back{fill:#58a6ff}
.label{fill:#e6edf3}.under{fill:#0d1117}
}
"""


def svg(net: Net) -> str:
    """The drawing of a whole net."""
    numbers = {step.name: index for index, step in enumerate(net.steps, 1)}
    loops = _self_arcs(net)
    sizes = [START, *(_size(step, loops.get(step.name)) for step in net.steps)]
    between = [arc for arc in net.arcs if arc.source != arc.target]
    edges = [Edge(0, numbers[net.entry])]
    edges += [Edge(numbers[a.source], numbers[a.target], _label_size(a)) for a in between]
    last = numbers.get(net.final) if net.final else None
    drawing = draw(sizes, edges, [0, numbers[net.entry]], last)
    parts = _head(net, drawing)
    parts += [_line(route) for route in drawing.routes]
    parts += [_start(drawing.boxes[0])]
    for step, size, at in zip(net.steps, sizes[1:], drawing.boxes[1:], strict=True):
        parts += _box(step, size, at, loops.get(step.name))
    for arc, route in zip([None, *between], drawing.routes, strict=True):
        if arc is not None and route.label_at is not None:
            parts += _label(arc, route.label_at)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _self_arcs(net: Net) -> dict[str, NetArc]:
    """The arcs from a step to itself, drawn as one line each step."""
    found: dict[str, NetArc] = {}
    for arc in net.arcs:
        if arc.source == arc.target:
            other = found.get(arc.source)
            label = " or ".join(a.label for a in (other, arc) if a and a.label)
            found[arc.source] = NetArc(arc.source, arc.target, label, None)
    return found


def _head(net: Net, drawing: Drawing) -> list[str]:
    wide, high = _n(drawing.width), _n(drawing.height)
    count = f"{len(net.steps)} steps, {len(net.arcs)} arcs"
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}"'
        f' viewBox="0 0 {wide} {high}" role="img">',
        f"<title>{escaped(net.name)}</title>",
        f"<desc>{count}; starts at {escaped(net.entry)}</desc>",
        f"<style>{_STYLE}</style>",
        f'<rect class="sheet" width="{wide}" height="{high}"/>',
    ]


def _size(step: NetStep, own: NetArc | None) -> Size:
    name = cells(shortened(step.name, MOST_CELLS)) * NAME_PX * EM
    details = [cells(shortened(text, MOST_CELLS)) * DETAIL_PX * EM for text in step.details]
    half = max([name, *details, 60.0]) / 2 + PAD
    height = NAME_PX * LINE + len(details) * DETAIL_PX * LINE + 2 * PAD - 6
    right = half
    if own is not None:
        label = _label_size(own)
        right += SELF + (label.left + label.right + 4 if label else 0)
    return Size(half, right, height)


def _label_size(arc: NetArc) -> Size | None:
    lines = _label_lines(arc)
    if not lines:
        return None
    half = max(cells(line) for line in lines) * LABEL_PX * EM / 2 + 5
    return Size(half, half, len(lines) * LABEL_PX * LINE + 4)


def _label_lines(arc: NetArc) -> list[str]:
    """A guard broken into a few short lines, at blanks where there are any."""
    lines: list[str] = []
    rest = arc.label
    while rest and len(lines) < LABEL_LINES:
        if cells(rest) <= LABEL_CELLS:
            lines.append(rest)
            return lines
        if len(lines) == LABEL_LINES - 1:
            lines.append(shortened(rest, LABEL_CELLS))
            return lines
        cut = len(shortened(rest, LABEL_CELLS + 1)) - 1
        blank = rest.rfind(" ", LABEL_CELLS // 3, cut + 1)
        cut = blank if blank > 0 else cut
        lines.append(rest[:cut].strip())
        rest = rest[cut:].strip()
    return lines


def _start(at: Point) -> str:
    return (
        f'<circle class="start" cx="{_n(at.x)}" cy="{_n(at.y)}" r="6"><title>start</title></circle>'
    )


def _box(step: NetStep, size: Size, at: Point, own: NetArc | None) -> list[str]:
    left, top, wide = at.x - size.left, at.y - size.height / 2, 2 * size.left
    classes = " ".join(["box", *_marks(step)])
    parts = [f"<g><title>{escaped(_tooltip(step))}</title>"]
    if step.loops:
        parts += [_rect("again", left + 4, top + 4, wide, size.height)]
    parts.append(_rect(classes, left, top, wide, size.height))
    if step.is_final:
        parts.append(_rect("inner", left + 3, top + 3, wide - 6, size.height - 6))
    if step.join_at_end:
        bar = f'x="{_n(left)}" y="{_n(top - 3)}" width="{_n(wide)}" height="5"'
        parts.append(f'<rect class="bar" {bar} rx="2"/>')
    y = top + PAD - 3 + NAME_PX
    parts.append(_text("name", at.x, y, shortened(step.name, MOST_CELLS)))
    for line in step.details:
        y += DETAIL_PX * LINE
        parts.append(_text(_detail_class(line), at.x, y, shortened(line, MOST_CELLS)))
    if own is not None:
        parts += _self_line(own, Point(at.x + size.left, at.y))
    return [*parts, "</g>"]


def _marks(step: NetStep) -> list[str]:
    marks = {"entry": step.is_entry, "final": step.is_final, "waits": step.admission == "wait"}
    return [name for name, given in marks.items() if given]


def _detail_class(line: str) -> str:
    words = {"for each ": "loop", "join: ": "join", "gate: ": "gate", "final: ": "end"}
    found = next((name for word, name in words.items() if line.startswith(word)), None)
    return f"detail {found}" if found else "detail"


def _tooltip(step: NetStep) -> str:
    tasks = [f"{name} ({kind})" for name, kind in step.tasks]
    return "\n".join([step.name, *([step.desc] if step.desc else []), *tasks])


def _self_line(arc: NetArc, at: Point) -> list[str]:
    x, y = at.x, at.y
    out = _n(x + SELF)
    path = f"M{_n(x)} {_n(y - 9)}C{out} {_n(y - 22)} {out} {_n(y + 22)} {_n(x + 7)} {_n(y + 9)}"
    parts = [
        f'<path class="arc back" d="{path}"/>',
        _arrow(Point(x, y + 7), Point(x + 7, y + 9.5), "back"),
    ]
    size = _label_size(arc)
    if size:
        parts += _label(arc, Point(x + SELF + size.left - 2, y))
    return parts


def _line(route: Route) -> str:
    points = route.points
    back = " back" if points[0].y > points[-1].y else ""
    end, before = points[-1], points[-2]
    sign = 1 if end.y > before.y else -1
    tip = Point(end.x, end.y - sign * 1)
    shaft = Point(end.x, end.y - sign * 7)
    path = _path([*points[:-1], shaft])
    return f'<path class="arc{back}" d="{path}"/>' + _arrow(tip, shaft, "back" if back else "")


def _path(points: Sequence[Point]) -> str:
    path = f"M{_n(points[0].x)} {_n(points[0].y)}"
    for a, b in pairwise(points):
        if abs(a.x - b.x) < 0.5:
            path += f"L{_n(b.x)} {_n(b.y)}"
        else:
            middle = (a.y + b.y) / 2
            path += f"C{_n(a.x)} {_n(middle)} {_n(b.x)} {_n(middle)} {_n(b.x)} {_n(b.y)}"
    return path


def _arrow(tip: Point, base: Point, extra: str) -> str:
    """A filled triangle from the line's end to the tip."""
    dx, dy = tip.x - base.x, tip.y - base.y
    length = max((dx * dx + dy * dy) ** 0.5, 0.01)
    nx, ny = -dy / length * 4, dx / length * 4
    corners = (tip, Point(base.x + nx, base.y + ny), Point(base.x - nx, base.y - ny))
    shape = " ".join(f"{_n(p.x)},{_n(p.y)}" for p in corners)
    return f'<polygon class="{f"head {extra}".strip()}" points="{shape}"/>'


def _label(arc: NetArc, at: Point) -> list[str]:
    lines, size = _label_lines(arc), _label_size(arc)
    if size is None:
        return []
    top = at.y - size.height / 2
    parts = [f"<g><title>{escaped(arc.label)}</title>"]
    parts.append(_rect("under", at.x - size.left, top, size.left + size.right, size.height))
    for index, line in enumerate(lines):
        parts.append(_text("label", at.x, top + 1 + (index + 0.78) * LABEL_PX * LINE, line))
    return [*parts, "</g>"]


def _rect(classes: str, x: float, y: float, wide: float, high: float) -> str:
    place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(wide)}" height="{_n(high)}"'
    return f'<rect class="{classes}" {place} rx="6"/>'


def _text(classes: str, x: float, y: float, text: str) -> str:
    place = f'x="{_n(x)}" y="{_n(y)}" text-anchor="middle"'
    return f'<text class="{classes}" {place} xml:space="preserve">{escaped(text)}</text>'


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """Text inside an element or attribute; what XML can't hold becomes a replacement character."""
    text = _NOT_XML.sub("�", text)
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(char, entity)
    return text
