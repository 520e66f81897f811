"""The deliberate bugs: what each breaks, and the text that it changes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    module: str
    search: str
    replace: str


STORE = "noetl_operator.store.memory"
OPERATOR = "tests.support.simulation_operator"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "skip-the-version-check",
        STORE,
        "if execution.state.seq != transition.expected:",
        "if False:",
    ),
    Mutant(
        "skip-the-lease-fence",
        STORE,
        "if row is None or not row.is_held(fence.epoch):",
        "if row is None:",
    ),
)
