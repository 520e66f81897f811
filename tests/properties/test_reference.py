"""Playbooks that Hypothesis makes, under schedules it draws: the engine ends as the reference."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.comparison import compare
from tests.support.generated import made
from tests.support.profile import EXAMPLES
from tests.support.simulation import simulate

CHUNKS = 4
SETTINGS = settings(
    max_examples=EXAMPLES // CHUNKS,
    deadline=None,
    print_blob=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_C4_C7_C8_C9_C10_D1_D2_D3_E2_E4_E5_E6_the_engine_ends_as_the_reference_in_any_order(
    chunk: int,
) -> None:
    @SETTINGS
    @given(random=st.randoms(use_true_random=False), seed=st.integers(0, 2**32))
    def check(random: Random, seed: int) -> None:
        found = made(random)
        simulation = simulate(found, seed)
        execution = simulation.memory.executions[simulation.execution_id]
        compare(found, execution.state, execution.log)

    check()
