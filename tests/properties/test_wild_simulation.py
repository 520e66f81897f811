"""Schedules without bounds: cancelled, out of time, workers lost for good. Every log holds."""

from __future__ import annotations

import pytest

from tests.support.profile import ONE_SEED, WILD_SEEDS
from tests.support.simulation_runs import check_wild_seed

CHUNKS = 4


def seeds(chunk: int) -> range:
    if ONE_SEED is not None:
        return range(int(ONE_SEED), int(ONE_SEED) + 1) if chunk == 0 else range(0)
    size = WILD_SEEDS // CHUNKS
    return range(chunk * size, (chunk + 1) * size)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_J_K13_K41_every_token_run_and_iteration_is_accounted_for(chunk: int) -> None:
    for seed in seeds(chunk):
        check_wild_seed(seed)
