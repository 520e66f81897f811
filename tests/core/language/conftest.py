"""Short ways to load a playbook and to look at its problems."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noetl_core.load import Loaded, load
from noetl_core.problems import Problem

HEAD = "metadata: {name: p}\n"


@pytest.fixture
def one() -> Callable[[str | bytes], Loaded]:
    """The only document of a file."""

    def read(text: str | bytes) -> Loaded:
        (loaded,) = load(text)
        return loaded

    return read


@pytest.fixture
def of_step() -> Callable[[str], Loaded]:
    """A playbook of one step, given what stands under `step: s`."""

    def read(body: str) -> Loaded:
        lines = "".join(f"  {line}\n" for line in body.strip("\n").split("\n"))
        (loaded,) = load(f"{HEAD}workflow:\n- step: s\n{lines}")
        return loaded

    return read


@pytest.fixture
def problem() -> Callable[[Loaded, str], Problem]:
    """The only problem of a code."""

    def find(loaded: Loaded, code: str) -> Problem:
        found = [p for p in loaded.problems if p.code == code]
        assert len(found) == 1, [(p.code, p.path, p.message) for p in loaded.problems]
        return found[0]

    return find
