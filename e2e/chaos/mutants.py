"""Two deliberate bugs that the campaign has to catch; the zygote applies one when it is told to."""

from __future__ import annotations

import os
import sys

from tests.mutants.catalogue import Mutant
from tests.mutants.run import _Changed

_COMMIT = """\
        try:
            await self._commit([job for job in jobs if job.transition is not None])
        except (port.NotLeader, port.Unavailable) as error:
            # Whether it stands is not known: everything is read again, and the log tells.
            self._live.clear()
            for item in (item for job in jobs for item in job.items):
                _fail(item, error)
        except Exception as error:
            await self._one_by_one(jobs, error)
"""
_ANSWER = """\
        else:
            for job in jobs:
                self._settle(job)
"""
_WAIT_THEN_ANSWER = _COMMIT + _ANSWER
_ANSWER_THEN_WAIT = f"""\
        _hand_over([job for job in jobs if job.transition is not None])
        for job in jobs:
            self._settle(job)
        await asyncio.sleep(0.02)
{_COMMIT}"""

MUTANTS = (
    Mutant(
        "ack-before-commit",
        "noetl_operator.router",
        _WAIT_THEN_ANSWER,
        _ANSWER_THEN_WAIT,
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
