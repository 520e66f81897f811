"""Two deliberate bugs that the campaign has to catch; the zygote applies one when it is told to."""

from __future__ import annotations

import os
import sys

from tests.mutants.catalogue import Mutant
from tests.mutants.run import _Changed

MUTANTS = (
    Mutant(
        "ack-before-commit",
        "noetl_operator.router",
        "        try:\n            await self._commit([job for job in jobs",
        "        _hand_over([job for job in jobs if job.transition is not None])\n"
        "        for job in jobs:\n            self._settle(job)\n"
        "        try:\n            await asyncio.sleep(0.02)\n"
        "            await self._commit([job for job in jobs",
    ),
    Mutant(
        "enqueue-in-a-second-transaction",
        "noetl_operator.store.postgres",
        "            await self._pool.execute(STATEMENT, *batch.arguments())\n",
        "            given = batch.arguments()\n"
        "            first = [[] if 31 <= at <= 36 else one for at, one in enumerate(given)]\n"
        "            await self._pool.execute(STATEMENT, *first)\n"
        "            await asyncio.sleep(0.01)\n"
        "            for row in zip(*given[31:37], strict=True):\n"
        "                await self._pool.execute(\n"
        "                    'INSERT INTO noetl.step_run (lease_id, execution_id, pool, command,'\n"
        "                    ' epoch, owner, lease_until) VALUES ($1, $2, $3, $4, $5, $6,'\n"
        "                    ' clock_timestamp() + make_interval(secs => $7))',\n"
        "                    row[0], row[1], 'default', row[3], int(row[4] is not None),\n"
        "                    row[4], row[5])\n",
    ),
)


def apply_from_environment() -> None:
    """Before anything is imported: change the module that the mutant is about."""
    name = os.environ.get("CHAOS_MUTANT")
    if name:
        sys.meta_path.insert(0, _Changed(next(one for one in MUTANTS if one.name == name)))
