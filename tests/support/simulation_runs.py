"""One seed of the simulation, from the playbook to the comparison: what tests and mutants call."""

from __future__ import annotations

from functools import lru_cache
from random import Random

from tests.support.comparison import compare
from tests.support.generated import Made, made
from tests.support.generated_wild import wild
from tests.support.simulation import Simulation, simulate, simulate_wild

SCHEDULES = 4
"""How many seeds share a playbook: making one takes as long as a schedule."""


@lru_cache(maxsize=4)
def made_of(number: int) -> Made:
    return made(Random(number))


def check_seed(seed: int) -> Simulation:
    """Simulate and compare; what is wrong names the seed to run it again with."""
    found = made_of(seed // SCHEDULES)
    try:
        simulation = simulate(found, seed)
        if seed % SCHEDULES == 0:
            simulation.replay()
        execution = simulation.memory.executions[simulation.execution_id]
        compare(found, execution.state, execution.log)
    except Exception as error:
        again = f"NOETL_SIMULATION_SEED={seed} pytest tests/properties/test_simulation.py"
        raise AssertionError(f"seed {seed} ({again}): {error!r}") from error
    return simulation


@lru_cache(maxsize=4)
def wild_of(number: int) -> Made:
    return wild(Random(number))


def check_wild_seed(seed: int) -> Simulation:
    """Simulate where nothing says how it ends."""
    try:
        simulation = simulate_wild(wild_of(seed // SCHEDULES), seed)
        if seed % SCHEDULES == 0:
            simulation.replay()
    except Exception as error:
        again = f"NOETL_SIMULATION_SEED={seed} pytest tests/properties/test_wild_simulation.py"
        raise AssertionError(f"seed {seed} ({again}): {error!r}") from error
    return simulation
