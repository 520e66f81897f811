"""The store on Postgres for tests: each test gets a database that is migrated already.

`store_uri` is such a database. The log's partitions are weeks of version 7 ids; ids of tests are
small numbers, so there is one more partition for everything before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import asyncpg
import pytest

from noetl_cli.local.postgres import LocalPostgres
from noetl_operator.store.postgres import PostgresStore
from tests.support.postgres import run_sql

_EARLY = """
DO $$
DECLARE
  low uuid;
BEGIN
  SELECT min((regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \\(''([^'']+)''\\)'))[1])::uuid INTO low
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'noetl.event'::regclass;
  EXECUTE format('CREATE TABLE noetl.event_1999w01 PARTITION OF noetl.event FOR VALUES FROM (MINVALUE) TO (%L)', low);
END $$
"""  # noqa: E501


@pytest.fixture(scope="session")
def store_template(postgres_server: LocalPostgres) -> str:
    """A migrated database to copy."""
    name = f"template_{uuid4().hex}"
    run_sql(postgres_server.uri(), f"CREATE DATABASE {name}")
    run_sql(postgres_server.uri(), "ALTER SYSTEM SET fsync = off")
    run_sql(postgres_server.uri(), "SELECT pg_reload_conf()")
    asyncio.run(_prepare(postgres_server.uri(name)))
    return name


async def _prepare(uri: str) -> None:
    async with PostgresStore.connect(uri, connections=2):
        connection = await asyncpg.connect(uri)
        await connection.execute(_EARLY)
        await connection.close()


@pytest.fixture
def store_uri(postgres_server: LocalPostgres, store_template: str) -> Iterator[str]:
    """A database of its own with the schema of the store; dropped afterwards."""
    name = f"s_{uuid4().hex}"
    made = f"CREATE DATABASE {name} TEMPLATE {store_template} STRATEGY file_copy"
    run_sql(postgres_server.uri(), made)
    try:
        yield postgres_server.uri(name)
    finally:
        run_sql(postgres_server.uri(), f"DROP DATABASE {name} WITH (FORCE)")
