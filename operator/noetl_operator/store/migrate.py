"""Brings a database to the schema of this version, whoever else starts at the same moment.

Migrations are numbered and only ever added; each leaves a schema that the version before it can
work on as well, so that old and new replicas run side by side during an upgrade.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetl_operator.store.queries import migrations

if TYPE_CHECKING:
    import asyncpg

LOCK = 0x6E6F65746C
"""The advisory lock that only one migrating process holds ("noetl")."""

_BEGIN = """
CREATE SCHEMA IF NOT EXISTS noetl;
CREATE TABLE IF NOT EXISTS noetl.schema_version (
  version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp());
"""
_THERE = "SELECT to_regclass('noetl.schema_version') IS NOT NULL"
_VERSION = "SELECT coalesce(max(version), 0) FROM noetl.schema_version"
# The engine works under a role that can add to the log and never change it. Not every database user
# may make roles; without one the trigger on the log is the only guard.
_ROLE = """
DO $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'noetl_engine') THEN
    CREATE ROLE noetl_engine NOLOGIN;
  END IF;
  EXECUTE format('GRANT noetl_engine TO %I', current_user);
  GRANT USAGE ON SCHEMA noetl TO noetl_engine;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA noetl TO noetl_engine;
  REVOKE UPDATE, DELETE, TRUNCATE ON noetl.event FROM noetl_engine;
  REVOKE INSERT, UPDATE, DELETE ON noetl.schema_version, noetl.secret FROM noetl_engine;
EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN NULL;
END $$
"""


async def migrate(pool: asyncpg.Pool[asyncpg.Record]) -> int:
    """Apply what is missing; answers the version the schema has now."""
    newest = max(number for number, _ in migrations())
    async with pool.acquire() as connection:
        if await connection.fetchval(_THERE) and await connection.fetchval(_VERSION) >= newest:
            return newest
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
            await connection.execute(_BEGIN)
            done = await connection.fetchval(_VERSION)
            for number, text in migrations():
                if number > done:
                    await connection.execute(text)
                    await connection.execute(
                        "INSERT INTO noetl.schema_version (version) VALUES ($1)", number
                    )
            await connection.execute(_ROLE)
    return newest
