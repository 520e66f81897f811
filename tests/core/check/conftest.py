"""How the tests of the checker say what they expect: a file with a mark at the problem."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noetl_core.check import Checked, check_text
from noetl_core.problems import Problem

MARK = "‸"

Expect = Callable[..., Problem]


def check(text: str) -> Checked:
    (checked,) = check_text(text.replace(MARK, ""))
    return checked


@pytest.fixture
def expect() -> Expect:
    """Assert that a file has exactly one problem of a code, at its mark; gives the problem."""

    def expected(text: str, code: str, severity: str, path: str) -> Problem:
        line = text[: text.index(MARK)].count("\n") + 1
        column = text.index(MARK) - (text.rfind("\n", 0, text.index(MARK)) + 1) + 1
        checked = check(text)
        found = [p for p in checked.problems if p.code == code]
        assert len(found) == 1, [(p.code, p.path, p.message) for p in checked.problems]
        problem = found[0]
        place = (problem.severity.value, problem.path, problem.line, problem.column)
        assert place == (severity, path, line, column), problem
        assert checked.valid is not any(p.severity == "error" for p in checked.problems)
        assert (checked.playbook is None) is (checked.digest is None) is (not checked.valid)
        return problem

    return expected


@pytest.fixture
def codes() -> Callable[[str], list[str]]:
    """The codes of all problems of a file, in its order."""
    return lambda text: [p.code for p in check(text).problems]
