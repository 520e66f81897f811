"""The examples of the source documents: the canonical ones load as they are, the old ones get a
mapping."""

from __future__ import annotations

import pytest

from noetl_core.check import check_text
from noetl_core.problems import Severity
from tests.support import seeds

CANONICAL = [(source, name) for source in ("000", "001", "004") for name in seeds.names(source)]
OLD = {
    "basic": {"case", "pipe", "catch", "finally", "query"},
    "continue": {"catch"},
    "fail": {"catch"},
    "finally": {"pipe", "catch", "finally", "vars"},
    "heavy_payload": {"pipe", "catch", "query", "output-select"},
    "jump": {"catch"},
    "jump_example": {"pipe", "catch"},
    "pagination": {"case", "pipe", "catch", "finally", "query", "credential", "set-prev"},
    "retry": {"catch", "from"},
    "skip": {"catch", "set-prev"},
}


@pytest.mark.parametrize(("source", "name"), CANONICAL)
def test_A3_canonical_examples_load_as_they_are(source: str, name: str) -> None:
    (checked,) = check_text(seeds.playbook_around(seeds.example(source, name)))
    assert checked.valid, checked.problems
    assert {p.code for p in checked.problems} <= {"A3.labelled-task", "B4.bare-name"}
    assert checked.playbook is not None


def test_A3_every_example_is_there() -> None:
    assert len(CANONICAL) == 10
    assert sorted(OLD) == seeds.names("003")


@pytest.mark.parametrize("name", OLD)
def test_A5_old_examples_are_refused_with_a_mapping_for_each_word(name: str) -> None:
    (checked,) = check_text(seeds.playbook_around(seeds.example("003", name)))
    told = [p for p in checked.problems if p.code.startswith("A5.legacy-")]
    assert {p.code.removeprefix("A5.legacy-") for p in told} == OLD[name]
    for problem in told:
        assert problem.severity is Severity.ERROR
        assert ":\n  " in (problem.hint or ""), problem
