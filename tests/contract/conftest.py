"""The stores that the contract holds for."""

from __future__ import annotations

import pytest

from noetl_operator.store.memory import MemoryStore
from noetl_operator.store.port import EventStore


@pytest.fixture(params=["memory"])
async def store(request: pytest.FixtureRequest) -> EventStore:
    """A fresh store; each parameter is one implementation of the port."""
    assert request.param == "memory"
    return MemoryStore()
