"""The engine's simulations on Postgres: a smaller number of schedules, each with a store in memory
beside the real one that must agree with it call by call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import pytest

from tests.support import simulation
from tests.support.profile import SEEDS
from tests.support.simulation import Simulation
from tests.support.simulation_runs import check_seed, check_wild_seed
from tests.support.twin import Database, Twin

CHUNKS = 4
EACH = max(6, SEEDS // 400)


@pytest.fixture
def database(store_uri: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    made = Database(store_uri)

    def twin(clock: Callable[[], datetime]) -> Twin:
        return Twin(made, clock)

    monkeypatch.setattr(simulation, "Memory", twin)
    yield made
    made.close()


def check_log(run: Simulation) -> None:
    assert isinstance(run.memory, Twin)
    run.memory.check_log(run.execution_id)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_J_schedules_with_faults_are_the_same_on_postgres(database: Database, chunk: int) -> None:
    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        check_log(check_seed(seed))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_J_wild_schedules_are_the_same_on_postgres(database: Database, chunk: int) -> None:
    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        check_log(check_wild_seed(seed))
