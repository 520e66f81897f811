"""A large playbook loads in time, and the time grows with its size and no faster."""

from __future__ import annotations

import time

from noetl_core.load import load

STEP = """\
- step: s{i}
  tool:
  - name: fetch
    kind: http
    url: "{{{{ workload.api }}}}/items/{i}"
    spec:
      policy:
        rules:
        - when: "{{{{ outcome.status == 'error' and outcome.error.retryable }}}}"
          then: {{do: retry, attempts: 5}}
        - else: {{then: {{do: continue, set_ctx: {{k{i}: "{{{{ outcome.result.data }}}}"}}}}}}
  - {{name: store, kind: postgres, auth: pg, command: "INSERT INTO t VALUES ({{{{ _prev.id }}}})"}}
  next: {{arcs: [{{step: s{i}, when: "{{{{ event.name == 'step.done' and ctx.k{i} }}}}"}}]}}
"""


def seconds(steps: int) -> float:
    text = "metadata: {name: p}\nworkflow:\n" + "".join(STEP.format(i=i) for i in range(steps))
    began = time.process_time()
    (loaded,) = load(text)
    took = time.process_time() - began
    assert loaded.problems == []
    return took


def test_A1_a_thousand_steps_load_within_a_second_and_linearly() -> None:
    seconds(100)
    once = min(seconds(1000) for _ in range(3))
    twice = min(seconds(2000) for _ in range(3))
    assert once < 1
    assert twice < 2.3 * once
