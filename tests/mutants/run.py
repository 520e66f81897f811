"""Applies deliberate bugs one by one; each has to be caught by the simulation.

    python -m tests.mutants            all of them, with a table
    python -m tests.mutants NAME …     some of them

A mutant is a change of a module's source text, made while the module is imported in a process of
its own; nothing on disk changes. A text that is not found exactly once is an error: the code has
moved on, and the mutant with it.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from time import monotonic
from types import ModuleType

from tests.mutants.catalogue import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
SEEDS = 1200
"""How many schedules a mutant may survive before it counts as not caught."""

CAUGHT, SURVIVED, MISFIT = 0, 3, 4


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module with its text changed."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.origin = ""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.mutant.module:
            return None
        sys.meta_path.remove(self)
        found = importlib.util.find_spec(name)
        sys.meta_path.insert(0, self)
        assert found is not None
        assert found.origin is not None
        self.origin = found.origin
        return importlib.util.spec_from_loader(name, self, origin=found.origin)

    def exec_module(self, module: ModuleType) -> None:
        text = Path(self.origin).read_text(encoding="utf-8")
        count = text.count(self.mutant.search)
        if count != 1:
            print(f"{self.mutant.name}: its text stands {count} times in {self.mutant.module}")
            sys.stdout.flush()
            # Past every `except`: nothing may take this for a caught bug.
            os._exit(MISFIT)
        changed = text.replace(self.mutant.search, self.mutant.replace)
        exec(compile(changed, self.origin, "exec"), vars(module))


def run_here(name: str) -> int:
    """In a process of its own: change the module, then simulate until something is wrong."""
    mutant = next(one for one in MUTANTS if one.name == name)
    sys.meta_path.insert(0, _Changed(mutant))
    from tests.support.simulation_runs import check_seed, check_wild_seed

    if mutant.module not in sys.modules:
        print(f"{name}: nothing imports {mutant.module}")
        return MISFIT
    for seed in (*range(mutant.first, SEEDS), *range(mutant.first)):
        try:
            check_seed(seed)
            check_wild_seed(seed)
        except AssertionError as error:
            print(f"seed {seed}: {str(error)[:300]}")
            # Code that does not even run is no bug that a test could take credit for.
            is_nonsense = isinstance(error.__cause__, NameError | ImportError | AttributeError)
            return MISFIT if is_nonsense else CAUGHT
    print(f"survived {SEEDS} schedules")
    return SURVIVED


def run_apart(name: str) -> tuple[int, str]:
    """The same as a child process: its exit code and what it says."""
    command = [sys.executable, "-m", "tests.mutants", "--here", name]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    said = ended.stdout.strip() or ended.stderr.strip()[-600:]
    return ended.returncode, said


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--here"]:
        return run_here(arguments[1])
    wrong = 0
    for mutant in MUTANTS:
        if arguments and mutant.name not in arguments:
            continue
        begun = monotonic()
        code, said = run_apart(mutant.name)
        word = {CAUGHT: "caught", SURVIVED: "SURVIVED", MISFIT: "MISFIT"}.get(code, "BROKEN")
        print(f"{mutant.name:36} {word:9} {monotonic() - begun:5.1f} s  {said[:110]}", flush=True)
        wrong += code != CAUGHT
    return 1 if wrong else 0
