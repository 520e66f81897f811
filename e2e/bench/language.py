"""How fast the language is: loading and checking, a cached `when`, the program's own start.

`make bench` runs this. Each row says what was measured, its bar, and whether it was met; the exit
code is 1 when one was not. Times are the best of several runs, since the machine does other things
too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from noetl_core.check import check_text
from noetl_core.graph import net_of
from noetl_core.graph.svg import svg
from noetl_core.templates import compile_when
from noetl_core.values import Value

BIN = Path(sys.executable).parent
EXAMPLE = Path(__file__).parents[2] / "examples" / "hello.yaml"


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement and its bar; `unit` scales both for the eye."""

    what: str
    measured: float
    bar: float | None
    unit: str = "s"

    @property
    def met(self) -> bool:
        return self.bar is None or self.measured <= self.bar

    def text(self) -> str:
        factor = {"s": 1.0, "µs": 1e6, "×": 1.0}[self.unit]
        bar = "" if self.bar is None else f"≤ {self.bar * factor:g} {self.unit}"
        shown = f"{self.measured * factor:.3f} {self.unit}"
        return f"{self.what:<48} {shown:>12}   {bar:<10} {'ok' if self.met else 'MISSED'}"


def playbook(steps: int) -> str:
    """A chain of realistic steps: a request with a policy, code, arcs with guards."""
    lines = [
        "metadata: {name: bench}",
        "workload: {url: 'http://x'}",
        "workflow:",
    ]
    for i in range(steps):
        lines += [
            f"  - step: s{i}",
            "    tool:",
            "      - name: fetch",
            "        kind: http",
            f'        url: "{{{{ workload.url }}}}/{i}"',
            "        spec:",
            "          policy:",
            "            rules:",
            "              - when: \"{{ outcome.status == 'error' and outcome.error.retryable }}\"",
            "                then: {do: retry, attempts: 5, backoff: exponential}",
            "              - when: \"{{ outcome.status == 'error' }}\"",
            "                then: {do: fail}",
            "              - else: {then: {do: continue}}",
            "      - name: keep",
            "        kind: python",
            '        args: {data: "{{ fetch.data }}"}',
            f"        code: result = {i}",
        ]
        if i + 1 < steps:
            guard = f"{{{{ event.name == 'step.done' and event.result != {i} }}}}"
            lines += ["    next:", f'      arcs: [{{step: s{i + 1}, when: "{guard}"}}]']
    return "\n".join(lines) + "\n"


def best(work: Callable[[], object], runs: int) -> float:
    """The shortest of several runs."""
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def language_rows() -> list[Row]:
    small, large = playbook(1000), playbook(2000)
    one = best(lambda: check_text(small), 3)
    two = best(lambda: check_text(large), 3)
    checked = check_text(small)[0].playbook
    assert checked is not None
    net = net_of(checked)
    return [
        Row("load and check 1,000 steps", one, 1.0),
        Row("load and check 2,000 steps", two, None),
        Row("2,000 steps against 1,000", two / one, 2.3, "×"),
        Row("draw 1,000 steps as SVG", best(lambda: svg(net), 1), None),
    ]


def template_rows() -> list[Row]:
    condition = "{{ outcome.status == 'error' and outcome.error.retryable and iter.page < 10 }}"
    scope: dict[str, Value] = {
        "outcome": {"status": "error", "error": {"retryable": True}},
        "iter": {"page": 3},
    }
    compiled = compile_when(condition)
    assert compiled.truth(scope)

    def thousand() -> None:
        for _ in range(1000):
            compiled.truth(scope)

    return [Row("a cached `when`", best(thousand, 20) / 1000, 15e-6, "µs")]


def process_rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def noetl(*args: str) -> Callable[[], object]:
            command = [str(BIN / "noetl"), *args]
            return lambda: subprocess.run(
                command, check=True, env=environment, stdout=subprocess.DEVNULL
            )

        return [
            Row("`noetl --help`, whole process", best(noetl("--help"), 10), 0.25),
            Row("`noetl check` of a small file", best(noetl("check", str(EXAMPLE)), 10), 0.6),
        ]


def main() -> int:
    """Measure everything and print the table."""
    rows = [*language_rows(), *template_rows(), *process_rows()]
    for row in rows:
        print(row.text())
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
