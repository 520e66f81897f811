"""Runs the kill campaign and prints what happened.

    python -m e2e.chaos --seconds 60 [--seed N] [--mutants]

Ends with 1 where anything is wrong. `--mutants` runs the deliberate bugs instead: each has to be
caught.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from e2e.chaos import campaign
from e2e.chaos.mutants import MUTANTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m e2e.chaos")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--mutants", action="store_true")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    return mutants(seed, given.seconds) if given.mutants else one(seed, given.seconds)


def one(seed: int, seconds: float) -> int:
    begun = time.monotonic()
    report = campaign.run(seed, seconds)
    took = time.monotonic() - begun
    print(f"kill campaign: {seconds:g} s of faults, {took:.0f} s in all, seed {seed}")
    for name, count in [*sorted(report.faults.items()), *report.findings.counts.items()]:
        print(f"  {name:24} {count:9,}")
    wrong = report.findings.wrong
    print(f"  {'wrong':24} {len(wrong):9,}")
    for line in wrong[:20]:
        print(f"  - {line}")
    if wrong:
        print(f"  the logs are in {report.folder}")
    return 1 if wrong else 0


def mutants(seed: int, seconds: float) -> int:
    """Each deliberate bug, until something is wrong or its time is up."""
    survived = 0
    for mutant in MUTANTS:
        report = campaign.run(seed, seconds, mutant.name)
        wrong = report.findings.wrong
        word = "caught" if wrong else "SURVIVED"
        print(f"{mutant.name:36} {word:9} {wrong[0][:100] if wrong else ''}", flush=True)
        survived += not wrong
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
