"""Recorded executions, decided again: the same events and the same state in every build."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.golden import read, replay

LOGS = sorted((Path(__file__).resolve().parents[1] / "golden" / "logs").glob("*.jsonl"))


def test_there_are_golden_logs() -> None:
    assert len(LOGS) >= 14


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_J_a_golden_log_is_decided_as_it_was(path: Path) -> None:
    lines = read(path)
    state = replay(lines)
    last = lines[-1]["events"][-1]  # type: ignore[index,call-overload]
    assert last["name"] == "workflow.finished"  # type: ignore[index,call-overload]
    assert state.phase.is_final
