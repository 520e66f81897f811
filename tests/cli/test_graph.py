"""`noetl graph`: every format shows the whole net and survives hostile names and guards."""

from __future__ import annotations

import re
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from noetl_core.check import check_text
from noetl_core.graph import Net, NetArc, net_of
from noetl_core.graph.dot import dot
from noetl_core.graph.layers import Edge, Size, layered
from noetl_core.graph.layout import draw
from noetl_core.graph.mermaid import mermaid
from noetl_core.graph.svg import svg
from tests.cli.conftest import VALID, Noetl

Write = Callable[[str, str], str]
FORMATS = ["mermaid", "dot", "svg"]
SVG = "{http://www.w3.org/2000/svg}"

NET = """\
metadata: {name: net}
executor: {kind: pool, spec: {final_step: report}}
workload: {orders: [1]}
workflow:
  - step: start
    next:
      spec: {mode: inclusive}
      arcs:
        - {step: orders}
        - {step: gate, when: "{{ workload.orders }}"}
  - step: orders
    loop: {in: "{{ workload.orders }}", iterator: order, spec: {mode: parallel, max_in_flight: 5}}
    tool:
      - {name: fetch, kind: http, url: "http://x"}
      - {name: keep, kind: python, code: "result = 1"}
    next:
      arcs:
        - {step: balance, when: "{{ event.name == 'loop.done' }}"}
        - {step: start, when: "{{ event.name == 'step.failed' }}"}
  - step: gate
    spec:
      policy:
        admit: {on_deny: wait, rules: [{when: "{{ ctx.approved }}", then: {allow: true}}]}
    tool: {kind: noop}
    next:
      arcs:
        - {step: gate, when: "{{ event.result.again }}"}
        - {step: balance}
  - step: balance
    spec: {join: {mode: all, at_end: fire}}
    tool: {kind: noop}
  - step: report
    tool: {kind: noop}
"""


def net(text: str = NET) -> Net:
    playbook = check_text(text)[0].playbook
    assert playbook is not None
    return net_of(playbook)


def hostile(guard: str) -> Net:
    made = net()
    arcs = tuple(NetArc(a.source, a.target, guard, None) for a in made.arcs)
    return Net(guard, made.steps, arcs, made.entry, made.final)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_format_shows_steps_guards_joins_loops_entry_and_final(
    noetl: Noetl, file: Write, kind: str
) -> None:
    result = noetl("graph", file("n.yaml", NET), "--format", kind)
    assert (result.code, result.err) == (0, "")
    for word in ("start", "orders", "gate", "balance", "report"):
        assert word in result.out
    for words in ("loop.done", "for each order: parallel, 5 at once", "join: all, at end: fire"):
        assert words in result.out
    assert "final: runs once" in result.out
    assert "gate: waits" in result.out


def test_mermaid_is_the_default(noetl: Noetl, valid: str) -> None:
    assert noetl("graph", valid).out.startswith("flowchart TD\n")


def test_json_is_the_net_as_data(noetl: Noetl, file: Write) -> None:
    data = noetl("graph", file("n.yaml", NET), "-o", "json").json
    assert (data["entry"], data["final"]) == ("start", "report")
    assert {"from": "gate", "to": "balance", "when": None, "order": 2} in data["arcs"]
    assert [s["join"] for s in data["steps"] if s["name"] == "balance"] == [
        {"mode": "all", "at_end": "fire"}
    ]


def test_an_invalid_playbook_is_exit_1(noetl: Noetl, file: Write) -> None:
    text = VALID + "    next: {arcs: [{step: nowhere}]}\n"
    result = noetl("graph", file("w.yaml", text))
    assert (result.code, result.out) == (1, "")
    assert "nowhere" in result.err


def test_one_of_several_playbooks_is_chosen_by_name(noetl: Noetl, file: Write) -> None:
    name = file("two.yaml", VALID + "---\n" + NET)
    result = noetl("graph", name)
    assert result.code == 2
    assert "small, net" in result.err
    assert "orders" in noetl("graph", name, "--playbook", "net").out


HOSTILE = (
    "\"]; <script>alert('x')</script> & ]]> --> | \\ `a` {{}} #quot; \x1b\ud800\u202e %% \n end"
)


def test_svg_escapes_everything_and_is_well_formed() -> None:
    drawn = svg(hostile(HOSTILE))
    root = ET.fromstring(drawn)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "title", "desc", "style", "rect", "path", "polygon", "circle", "g", "text",
    }  # fmt: skip
    assert "\x1b" not in drawn


def test_mermaid_leaves_nothing_of_a_guard_unescaped() -> None:
    for line in mermaid(hostile(HOSTILE)).splitlines():
        label = re.search(r'-->\|"(.*)"\| s\d+$', line)
        if label:
            text = re.sub(r"#\d+;", "", label[1])
            assert not set('"<>&|`{}[];%\\') & set(text)


def test_mermaid_shows_no_markdown_list_or_emphasis() -> None:
    drawn = mermaid(hostile("_private * 2"))
    assert '"#95;private #42; 2"' in drawn
    assert re.search(r'\|"\d+\.', mermaid(net())) is None


def test_dot_quotes_backslashes_and_quotes() -> None:
    drawn = dot(hostile('a"b\\'))
    assert '[label="a\\"b\\\\"]' in drawn


def boxes_of(drawn: str) -> list[tuple[float, float, float, float]]:
    found = []
    for rect in ET.fromstring(drawn).iter(f"{SVG}rect"):
        if rect.get("class", "").split()[0] in ("box", "under"):
            x, y, w, h = (float(rect.get(k, "0")) for k in ("x", "y", "width", "height"))
            found.append((x, y, x + w, y + h))
    return found


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "examples").glob("*.yaml")), ids=lambda p: p.stem
)
def test_svg_boxes_and_labels_of_the_examples_do_not_overlap(path: Path) -> None:
    assert_apart(svg(net(path.read_text())))


def assert_apart(drawn: str) -> None:
    boxes = boxes_of(drawn)
    for index, (ax, ay, bx, by) in enumerate(boxes):
        for cx, cy, dx, dy in boxes[index + 1 :]:
            assert bx <= cx + 0.2 or dx <= ax + 0.2 or by <= cy + 0.2 or dy <= ay + 0.2


def test_svg_boxes_and_labels_of_a_tangle_do_not_overlap() -> None:
    assert_apart(svg(net()))
    assert_apart(svg(hostile("a long guard " * 12)))


def test_svg_stays_inside_its_sheet() -> None:
    root = ET.fromstring(svg(net()))
    wide, high = float(root.get("width", "0")), float(root.get("height", "0"))
    for left, top, right, bottom in boxes_of(ET.tostring(root, encoding="unicode")):
        assert 0 <= left < right <= wide
        assert 0 <= top < bottom <= high


def test_lines_keep_clear_of_boxes_they_do_not_belong_to() -> None:
    size = Size(40, 40, 30)
    edges = [Edge(0, 1), Edge(1, 2), Edge(2, 3), Edge(0, 3), Edge(3, 0), Edge(0, 2)]
    drawing = draw([size] * 4, edges, [0], None)
    for route in drawing.routes:
        for number, box in enumerate(drawing.boxes):
            if number in (route.edge.source, route.edge.target):
                continue
            for a, b in zip(route.points, route.points[1:], strict=False):
                level = abs(a.x - b.x) < 0.5 and min(a.y, b.y) < box.y < max(a.y, b.y)
                assert not (level and abs(a.x - box.x) < size.left)


def test_crossings_that_can_be_undone_are() -> None:
    size = Size(10, 10, 10)
    made = layered([size] * 6, [Edge(0, 4), Edge(1, 3), Edge(0, 5), Edge(1, 2)], [0, 1], None)
    place = {slot: i for layer in made.order for i, slot in enumerate(layer)}
    assert (place[0] < place[1]) == (max(place[4], place[5]) < min(place[2], place[3]))


def big(steps: int, arcs: Callable[[int], list[int]]) -> str:
    lines = ["metadata: {name: big}", "workflow:"]
    for i in range(steps):
        lines.append(f"  - step: s{i}\n    tool: {{kind: noop}}\n    next:")
        lines.append("      spec: {mode: inclusive}\n      arcs:")
        lines += [
            f'        - {{step: s{t % steps}, when: "{{{{ ctx.x{t % 7} }}}}"}}' for t in arcs(i)
        ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "arcs",
    [
        lambda i: [i + 1, i + 5],
        lambda i: [i + 1, 999],
        lambda i: [j for j in range(1, 1000, 7)] if i == 0 else [0],
    ],
    ids=["chain", "all-to-the-end", "fan-and-back"],
)
def test_a_thousand_steps_are_drawn_in_seconds(arcs: Callable[[int], list[int]]) -> None:
    made = net(big(1000, arcs))
    start = time.process_time()
    drawn = svg(made)
    assert time.process_time() - start < 8
    assert len(drawn) < 8_000_000
