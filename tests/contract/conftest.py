"""The stores that the contract holds for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from noetl_operator.store.memory import MemoryStore
from noetl_operator.store.port import EventStore
from noetl_operator.store.postgres import PostgresStore
from tests.support.postgres import postgres_server
from tests.support.stores import store_template, store_uri

__all__ = ["postgres_server", "store_template", "store_uri"]


@pytest.fixture(params=["memory", "postgres"])
def place(request: pytest.FixtureRequest) -> str | None:
    """Where a store is: a database, or nowhere."""
    if request.param == "memory":
        return None
    found: str = request.getfixturevalue("store_uri")
    return found


@pytest.fixture
async def store(place: str | None) -> AsyncIterator[EventStore]:
    """A fresh store; each place is one implementation of the port."""
    if place is None:
        yield MemoryStore()
        return
    async with PostgresStore.connect(place) as found:
        yield found
