"""The program as real processes on one data folder per test session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from noetl_cli.local.postgres import LocalPostgres
from tests.support.processes import Cli


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder whose server stays up for all tests."""
    folder = tmp_path_factory.mktemp("data")
    with LocalPostgres(folder):
        yield folder


@pytest.fixture
def cli(tmp_path: Path, data: Path) -> Iterator[Cli]:
    made = Cli(tmp_path, data)
    yield made
    made.end()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Cli]:
    """On a data folder of its own."""
    (tmp_path / "files").mkdir()
    made = Cli(tmp_path / "files", tmp_path / "own data")
    yield made
    made.end()
