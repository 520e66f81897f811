"""A scratch database: empty, on the embedded server, for one run.

Its user owns it and nothing else: the playbook's SQL can't reach the log of its own execution.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING
from urllib.parse import quote

from noetl_cli.errors import UsageError
from noetl_core.model import KeychainEntry, KeychainKind
from noetl_core.problems import nearest

if TYPE_CHECKING:
    from noetl_cli.local.catalogue import Catalogue
    from noetl_cli.local.postgres import LocalPostgres


def entry_of(catalogue: Catalogue, name: str) -> KeychainEntry:
    """The keychain entry that a scratch database is supplied as."""
    entries = {entry.name: entry for entry in catalogue.keychain()}
    found = entries.get(name)
    if found is None:
        close = nearest(name, entries)
        known = f"it has {', '.join(entries)}" if entries else "its keychain is empty"
        hint = f"did you mean `{close}`?" if close else known
        raise UsageError(f"--scratch-postgres: the playbook has no keychain entry `{name}`", hint)
    if found.kind not in (KeychainKind.POSTGRES, KeychainKind.SECRET):
        raise UsageError(
            f"--scratch-postgres: the keychain entry `{name}` is of kind {found.kind.value}",
            f"a database needs kind {KeychainKind.POSTGRES.value}",
        )
    return found


def new_name() -> str:
    return f"scratch_{secrets.token_hex(5)}"


async def create(server: LocalPostgres, database: str) -> dict[str, str]:
    """Have the database and its user; answers the credential."""
    import asyncpg

    # Only ever shown in the credential: the socket is closed to everybody else.
    password = secrets.token_urlsafe(18)
    admin = await asyncpg.connect(server.uri())
    try:
        if not await admin.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", database):
            await admin.execute(f'CREATE ROLE "{database}" LOGIN')
        await admin.execute(f"ALTER ROLE \"{database}\" PASSWORD '{password}'")
        if not await admin.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", database):
            await admin.execute(f'CREATE DATABASE "{database}" OWNER "{database}"')
    finally:
        await admin.close()
    return {
        "host": str(server.socket_folder),
        "port": "5432",
        "user": database,
        "password": password,
        "dbname": database,
        "uri": address(server, database, password),
    }


def address(server: LocalPostgres, database: str, password: str = "") -> str:
    """How a client reaches it."""
    host = quote(str(server.socket_folder), safe="")
    user = f"{database}:{password}" if password else database
    return f"postgresql://{user}@/{database}?host={host}"


async def drop(server: LocalPostgres, database: str) -> None:
    """Remove the database, whoever is still connected, and its user."""
    import asyncpg

    admin = await asyncpg.connect(server.uri())
    try:
        await admin.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
        await admin.execute(f'DROP ROLE IF EXISTS "{database}"')
    finally:
        await admin.close()
