"""The checker and files at large: good, broken and hostile ones."""

from __future__ import annotations

import pathlib
import time

import pytest
from hypothesis import HealthCheck, given, settings

from noetl_core.check import check_text
from tests.support import playbooks, seeds

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_A6_the_examples_have_no_problem_at_all(path: pathlib.Path) -> None:
    for checked in check_text(path.read_bytes()):
        assert checked.problems == ()
        assert checked.digest


@pytest.mark.parametrize("source", ["000", "001", "004"])
def test_A3_the_canonical_examples_have_no_warning_but_those_of_their_form(source: str) -> None:
    names = seeds.names(source)
    assert names
    for name in names:
        (checked,) = check_text(seeds.playbook_around(seeds.example(source, name)))
        assert {p.code for p in checked.problems} <= {"A3.labelled-task", "B4.bare-name"}
        assert checked.valid


@settings(deadline=None, suppress_health_check=SLOW)
@given(playbooks.broken())
def test_A4_a_broken_file_gets_problems_with_places_and_never_an_exception(data: bytes) -> None:
    for checked in check_text(data):
        lines = data.count(b"\n") + 2
        for problem in checked.problems:
            assert 1 <= problem.line <= lines
            assert problem.column >= 1
            assert problem.message
            assert "." in problem.code
        assert checked.valid is (checked.playbook is not None)
        places = [(p.line, p.column) for p in checked.problems]
        assert places == sorted(places)


def _chain(size: int) -> str:
    steps = [
        f"""  - step: s{i}
    tool:
      - name: fetch
        kind: python
        args: {{n: "{{{{ args.n{i} }}}}"}}
        code: result = n
        spec:
          policy:
            rules:
              - {{when: "{{{{ outcome.error.code == 'E{i}' }}}}", then: {{do: retry}}}}
              - else: {{then: {{do: fail}}}}
    next: {{arcs: [{{step: s{min(i + 1, size - 1)}, when: "{{{{ ctx.k{i} > {i} }}}}"}}]}}
"""
        for i in range(size)
    ]
    return "metadata: {name: x}\nworkflow:\n" + "".join(steps)


def _seconds(text: str) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        check_text(text)
        best = min(best, time.process_time() - start)
    return best


def test_A6_the_cost_is_linear_in_the_steps() -> None:
    assert _seconds(_chain(1_000)) <= 2.6 * _seconds(_chain(500))


def _net(size: int, degree: int, mode: str, *, join: bool = True) -> str:
    spec = "    spec: {join: all}\n" if join else ""
    lines = ["metadata: {name: x}\nworkflow:\n"]
    for i in range(size):
        arcs = ", ".join(f"{{step: s{(i + d) % size}}}" for d in range(1, degree + 1))
        lines.append(
            f"  - step: s{i}\n{spec}    next: {{spec: {{mode: {mode}}}, arcs: [{arcs}]}}\n"
        )
    return "".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        _net(150, 140, "inclusive"),
        _net(4_000, 2, "exclusive"),
        _net(4_000, 1, "inclusive", join=False),
        _net(1_000, 10, "inclusive").replace("step: s", "step: t", 1),
    ],
    ids=["dense", "long", "ring", "broken"],
)
def test_A6_hostile_nets_cost_no_more_than_reading_them(text: str) -> None:
    start = time.process_time()
    (checked,) = check_text(text)
    assert time.process_time() - start < 8
    assert len(checked.problems) <= text.count("\n") * 3
