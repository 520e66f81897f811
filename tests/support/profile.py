"""How much the property tests do: what `make test` has time for, or a night's worth."""

from __future__ import annotations

import os

IS_NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"

EXAMPLES = 20_000 if IS_NIGHTLY else 320
"""Made playbooks that Hypothesis draws, over all tests of them."""
SEEDS = 200_000 if IS_NIGHTLY else 2_000
"""Schedules of the simulation, over all tests of them."""
WILD_SEEDS = 100_000 if IS_NIGHTLY else 800
"""Schedules of playbooks that nothing foretells the end of."""
ONE_SEED = os.environ.get("NOETL_SIMULATION_SEED")
"""Set to the number that a failed simulation printed, only that one runs."""
