"""What the campaign runs: playbooks of every shape, and how many effects each must have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from noetl_core.load import load
from noetl_core.model import Playbook
from noetl_core.values import Value

_LIFE = "{policy: {lifecycle: {max_redeliveries: 1000}}}"


@dataclass(frozen=True, slots=True)
class Shape:
    """A playbook and what it must come to."""

    name: str
    playbook: Playbook
    effects: int
    """Different effects of one execution, its children aside."""
    result: Value
    children: int = 0
    """Child executions, each of the shape `child`."""


def _chain(length: int) -> str:
    steps = []
    for n in range(length):
        arc = f"next: {{arcs: [{{step: s{n + 1}}}]}}" if n + 1 < length else ""
        before = f"'{{{{ ctx.seen_{n - 1} + 1 }}}}'" if n else "1"
        steps.append(
            f"""
  - step: s{n}
    spec: {_LIFE}
    tool:
      - name: one
        kind: noop
        result: {n}
        spec: {{policy: {{rules: [{{else: {{then: {{do: continue, set_ctx: {{seen_{n}: {before}}}}}}}}}]}}}}
    {arc}"""  # noqa: E501
        )
    result = f"{{{{ ctx.seen_{length - 1} }}}}"
    return f"""
metadata: {{name: chain}}
executor: {{spec: {{result: "{result}"}}}}
workflow:{"".join(steps)}
"""


_FAN = f"""
metadata: {{name: fan}}
executor: {{spec: {{result: "{{{{ ctx.joined }}}}"}}}}
workflow:
  - step: begin
    spec: {_LIFE}
    tool: {{kind: noop}}
    next:
      spec: {{mode: inclusive}}
      arcs: [{{step: a}}, {{step: b}}, {{step: c}}]
  - {{step: a, spec: {_LIFE}, tool: {{kind: noop}}, next: {{arcs: [{{step: end, args: {{a: 1}}}}]}}}}
  - {{step: b, spec: {_LIFE}, tool: {{kind: noop}}, next: {{arcs: [{{step: end, args: {{b: 2}}}}]}}}}
  - {{step: c, spec: {_LIFE}, tool: {{kind: noop}}, next: {{arcs: [{{step: end, args: {{c: 3}}}}]}}}}
  - step: end
    spec: {{policy: {{lifecycle: {{max_redeliveries: 1000}}}}, join: {{mode: all}}}}
    tool:
      - name: one
        kind: noop
        spec:
          policy:
            rules:
              - else: {{then: {{do: continue, set_ctx: {{joined: "{{{{ args.a + args.b + args.c }}}}"}}}}}}
"""  # noqa: E501

_SPREAD = f"""
metadata: {{name: spread}}
executor: {{spec: {{result: "{{{{ event.result | sum }}}}"}}}}
workflow:
  - step: each
    spec: {_LIFE}
    loop:
      in: {list(range(30))}
      iterator: n
      spec: {{mode: parallel, max_in_flight: 8, policy: {{exec: distributed}}}}
    tool: {{kind: noop, result: "{{{{ iter.n }}}}"}}
"""

_LOCAL = f"""
metadata: {{name: local}}
executor: {{spec: {{result: "{{{{ event.result | sum }}}}"}}}}
workflow:
  - step: each
    spec: {_LIFE}
    loop:
      in: {list(range(20))}
      iterator: n
      spec: {{mode: sequential}}
    tool: {{kind: noop, result: "{{{{ iter.n }}}}"}}
"""

_RETRY = f"""
metadata: {{name: retry}}
executor: {{spec: {{result: "{{{{ event.result }}}}"}}}}
workflow:
  - step: again
    spec: {_LIFE}
    tool:
      - name: one
        kind: noop
        result: "{{{{ _attempt }}}}"
        spec:
          policy:
            rules:
              - when: "{{{{ _attempt < 4 }}}}"
                then: {{do: retry, attempts: 4, delay: 0.02}}
              - else: {{then: {{do: continue}}}}
"""

_PARENT = f"""
metadata: {{name: parent}}
executor: {{spec: {{result: "{{{{ event.result }}}}"}}}}
workflow:
  - step: ask
    spec: {_LIFE}
    tool: {{kind: playbook, playbook: child}}
    next: {{arcs: [{{step: tell, args: {{got: "{{{{ event.result }}}}"}}}}]}}
  - step: tell
    spec: {_LIFE}
    tool: {{kind: noop, result: "{{{{ args.got + 1 }}}}"}}
"""

_CHILD = f"""
metadata: {{name: child}}
executor: {{spec: {{result: 41}}}}
workflow:
  - {{step: first, spec: {_LIFE}, tool: {{kind: noop}}, next: {{arcs: [{{step: second}}]}}}}
  - {{step: second, spec: {_LIFE}, tool: {{kind: noop}}}}
"""


def _shape(text: str, effects: int, result: Value, children: int = 0) -> Shape:
    (found,) = load(text)
    assert found.playbook is not None, found.problems
    name = found.playbook.metadata.name
    return Shape(name, found.playbook, effects, result, children)


def shapes() -> dict[str, Shape]:
    made: tuple[Callable[[], Shape], ...] = (
        lambda: _shape(_chain(6), 6, 6),
        lambda: _shape(_FAN, 5, 6),
        lambda: _shape(_SPREAD, 30, sum(range(30))),
        lambda: _shape(_LOCAL, 20, sum(range(20))),
        lambda: _shape(_RETRY, 4, 4),
        lambda: _shape(_PARENT, 1, 42, children=1),
        lambda: _shape(_CHILD, 2, 41),
    )
    return {shape.name: shape for shape in (make() for make in made)}
