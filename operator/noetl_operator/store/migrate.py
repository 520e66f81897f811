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
# may make roles; without one the trigger on the log is the only guard. A role belongs to the whole
# server: another database may have made it, or be making it at this moment.
_ROLE = """
DO $$
DECLARE
  part regclass;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'noetl_engine') THEN
    CREATE ROLE noetl_engine NOLOGIN;
  END IF;
  EXECUTE format('GRANT noetl_engine TO %I', current_user);
  GRANT USAGE ON SCHEMA noetl TO noetl_engine;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA noetl TO noetl_engine;
  FOR part IN SELECT relid FROM pg_partition_tree('noetl.event') LOOP
    EXECUTE format('REVOKE UPDATE, DELETE, TRUNCATE ON %s FROM noetl_engine', part);
  END LOOP;
  REVOKE INSERT, UPDATE, DELETE ON noetl.schema_version, noetl.secret FROM noetl_engine;
EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN NULL;
END $$
"""
_MAY_BE_ENGINE = """
SELECT count(*) > 0 FROM pg_roles r
WHERE rolname = 'noetl_engine' AND pg_has_role(r.oid, 'MEMBER')
  AND has_schema_privilege(r.oid, 'noetl', 'USAGE')
  AND has_table_privilege(r.oid, 'noetl.event', 'INSERT')
"""
AS_ENGINE = "SET ROLE noetl_engine"


async def migrate(connection: asyncpg.Connection[asyncpg.Record]) -> bool:
    """Apply what is missing; answers whether the engine's role can be taken on."""
    newest = max(number for number, _ in migrations())
    is_new = await connection.fetchval(_THERE) and await connection.fetchval(_VERSION) >= newest
    if not is_new:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
            await _apply(connection)
    return bool(await connection.fetchval(_MAY_BE_ENGINE))


async def _apply(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    await connection.execute(_BEGIN)
    done = await connection.fetchval(_VERSION)
    for number, text in migrations():
        if number > done:
            await connection.execute(text)
            await connection.execute(
                "INSERT INTO noetl.schema_version (version) VALUES ($1)", number
            )
    await connection.execute(_ROLE)
