"""What the operator's tests share: databases with the schema of the store."""

from __future__ import annotations

from tests.support.postgres import postgres_server
from tests.support.stores import store_template, store_uri

__all__ = ["postgres_server", "store_template", "store_uri"]
