"""One operator of the campaign: the real control plane and ingest, with failpoints around it."""

from __future__ import annotations

import asyncio
import os
import uuid

from e2e.chaos.failpoints import around
from e2e.chaos.load import shapes
from noetl_cli.local.catalogue import Catalogue, LocalChildren
from noetl_operator.control import control_plane
from noetl_operator.ingest.peers import SharedToken
from noetl_operator.ingest.service import Ingest
from noetl_operator.ingest.web import IngestWeb, serving
from noetl_operator.settings import OperatorSettings
from noetl_operator.store.port import StoreError
from noetl_operator.store.postgres import PostgresStore


def arm() -> None:
    """Put failpoints before and after whatever must not be taken for the other."""
    PostgresStore.commit = around(  # type: ignore[method-assign, assignment]
        PostgresStore.commit, "commit.before", "commit.after"
    )
    PostgresStore.lease = around(  # type: ignore[method-assign, assignment]
        PostgresStore.lease, "lease.before", "lease.after"
    )
    Ingest.reports = around(Ingest.reports, None, "ack.before")  # type: ignore[method-assign, assignment]


async def run() -> None:
    settings = OperatorSettings.from_environment(os.environ)
    playbooks = tuple(shape.playbook for shape in shapes().values())
    children = LocalChildren(Catalogue(own=playbooks))
    holder = f"operator-{uuid.uuid4().hex[:8]}"
    async with (
        PostgresStore.connect(os.environ["CHAOS_DSN"]) as store,
        control_plane(store, children, settings, shard=0, holder=holder) as plane,
    ):
        web = IngestWeb(plane.ingest, SharedToken(os.environ["NOETL_TOKEN"]), settings)
        async with serving(web.application(), "127.0.0.1", int(os.environ["CHAOS_PORT"])):
            await asyncio.Event().wait()


def main() -> None:
    import uvloop

    arm()
    while True:
        # A Pod would be restarted as well when its database is away.
        try:
            uvloop.run(run())
        except (StoreError, OSError):
            os.environ["CHAOS_RESTARTED"] = "1"
