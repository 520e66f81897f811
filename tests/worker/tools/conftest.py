"""A bench to run tools on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.tools import Bench


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    found = Bench(tmp_path)
    yield found
    await found.pools.close()
