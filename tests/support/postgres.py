"""One embedded Postgres for a run of the tests, and a database of its own for each test.

`postgres_server` is the server, `postgres_uri` a fresh empty database in it.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from noetl_cli.local.postgres import LocalPostgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[LocalPostgres]:
    """The server of this process; its folder is short, for the sake of the socket's path."""
    folder = Path(tempfile.mkdtemp(prefix="noetl-pg-"))
    folder.chmod(0o755)
    try:
        with LocalPostgres(folder) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_uri(postgres_server: LocalPostgres) -> Iterator[str]:
    """A database that nothing was ever done in; it is dropped afterwards."""
    name = f"t_{uuid4().hex}"
    run_sql(postgres_server.uri(), f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY file_copy")
    try:
        yield postgres_server.uri(name)
    finally:
        run_sql(postgres_server.uri(), f"DROP DATABASE {name} WITH (FORCE)")


def run_sql(uri: str, text: str) -> list[asyncpg.Record]:
    """Run something from outside of an event loop."""

    async def run() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(uri)
        try:
            return list(await connection.fetch(text))
        finally:
            await connection.close()

    with asyncio.Runner() as runner:
        return runner.run(run())
