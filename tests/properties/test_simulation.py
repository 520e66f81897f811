"""Thousands of schedules with faults: each keeps every invariant and ends as the reference."""

from __future__ import annotations

import pytest

from tests.support.profile import ONE_SEED, SEEDS
from tests.support.simulation_runs import check_seed

CHUNKS = 16


def seeds(chunk: int) -> range:
    if ONE_SEED is not None:
        return range(int(ONE_SEED), int(ONE_SEED) + 1) if chunk == 0 else range(0)
    size = SEEDS // CHUNKS
    return range(chunk * size, (chunk + 1) * size)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_J_the_log_alone_rebuilds_everything_whatever_fails(chunk: int) -> None:
    for seed in seeds(chunk):
        check_seed(seed)
