"""Every deliberate bug is caught, and the unchanged code is not."""

from __future__ import annotations

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.run import CAUGHT, run_apart


def test_there_are_enough_mutants_with_names_of_their_own() -> None:
    names = {mutant.name for mutant in MUTANTS}
    assert len(names) == len(MUTANTS) >= 15


@pytest.mark.parametrize("name", [mutant.name for mutant in MUTANTS])
def test_a_deliberate_bug_is_caught(name: str) -> None:
    code, said = run_apart(name)
    assert code == CAUGHT, said
