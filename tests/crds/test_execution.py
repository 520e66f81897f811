"""An Execution's spec as the operator reads it."""

from __future__ import annotations

import pytest

from noetl_core.execution import Cancel, CtxPatch, Phase, PlaybookRef, RerunOf, load_spec
from noetl_core.values import Value


def problems(spec: Value) -> list[tuple[str, str]]:
    loaded = load_spec(spec)
    assert loaded.spec is None
    return [(problem.code, problem.path) for problem in loaded.problems]


def test_a_small_spec_is_read_with_its_defaults() -> None:
    spec = load_spec({"playbookRef": {"name": "hello"}}).spec
    assert spec is not None
    assert spec.playbookRef == PlaybookRef(name="hello")
    assert (spec.playbook, spec.workload, spec.suspend, spec.cancel) == (None, {}, False, None)
    assert (spec.ctxPatches, spec.ttlSecondsAfterFinished) == ((), None)


def test_every_field_is_read() -> None:
    spec = load_spec(
        {
            "playbook": {"workflow": [{"step": "a", "tool": {"kind": "noop"}}]},
            "workload": {"n": None, "text": "yes", "deep": [1.5]},
            "suspend": True,
            "cancel": "Now",
            "activeDeadlineSeconds": 60,
            "ttlSecondsAfterFinished": 0,
            "rerunOf": {"name": "before", "fromStep": "a"},
            "ctxPatches": [{"id": "1", "set": {"ok": True}, "by": "ann"}],
        }
    ).spec
    assert spec is not None
    assert spec.playbook == {"workflow": [{"step": "a", "tool": {"kind": "noop"}}]}
    assert spec.workload == {"n": None, "text": "yes", "deep": [1.5]}
    assert (spec.suspend, spec.cancel, spec.activeDeadlineSeconds) == (True, Cancel.NOW, 60)
    assert spec.ttlSecondsAfterFinished == 0
    assert spec.rerunOf == RerunOf(name="before", fromStep="a")
    assert spec.ctxPatches == (CtxPatch(id="1", set={"ok": True}, by="ann"),)


@pytest.mark.parametrize("spec", [{}, {"playbookRef": {"name": "a"}, "playbook": {"workflow": []}}])
def test_a_playbook_is_named_or_written_out_and_not_both(spec: Value) -> None:
    assert problems(spec) == [("K1.execution-playbook", "spec")]


def test_what_the_api_server_would_refuse_is_a_problem_and_no_exception() -> None:
    assert problems(["no", "mapping"])[0] == ("A2.type", "spec")
    found = problems({"playbookRef": {"name": "a"}, "cancel": "Softly", "odd": 1})
    assert ("K3.cancel", "spec.cancel") in found
    assert ("A4.unknown-key", "spec.odd") in found


def test_final_phases_are_those_that_do_not_change() -> None:
    assert {p.value for p in Phase if p.is_final} == {"Succeeded", "Failed", "Cancelled"}
