"""What may go wrong in a simulation, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.support.generated import Made


@dataclass(frozen=True)
class Faults:
    """In percent of the steps where each may happen."""

    steps: int = 0
    """How many steps the faults last."""
    lost_post: int = 0
    lost_answer: int = 0
    double_post: int = 0
    worker: int = 0
    """Crash, pause (a zombie later) or hand back."""
    operator: int = 0
    """Crash at any point, or a takeover while the old leader still works."""
    suspend: int = 0
    cancel: int = 0
    most_losses: int = 3
    """Leases of one command that may be lost; with more the rules say that it fails."""


CALM = Faults()


def faults_of(random: Random, made: Made) -> Faults:
    """Some schedules are only shuffled, most have faults of one kind, the rest of all."""
    steps = random.choice([30, 80, 200])
    kind = random.randrange(6)
    posts = Faults(steps=steps, lost_post=10, lost_answer=15, double_post=15)
    worker = 8 if made.repeats else 0
    match kind:
        case 0:
            return Faults(steps=steps)
        case 1:
            return posts
        case 2:
            return Faults(steps=steps, worker=worker, double_post=10)
        case 3:
            return Faults(steps=steps, operator=8, lost_answer=5)
        case _:
            return Faults(
                steps=steps, lost_post=8, lost_answer=10, double_post=10,
                worker=worker, operator=5, suspend=random.choice([0, 3]),
            )  # fmt: skip


def wild_faults(random: Random) -> Faults:
    """Everything at once, without regard for how it ends."""
    return Faults(
        steps=random.choice([50, 200]),
        lost_post=5,
        lost_answer=8,
        double_post=8,
        worker=10,
        operator=4,
        suspend=2,
        cancel=random.choice([0, 0, 1, 4]),
        most_losses=99,
    )
