"""Apply a wish to an execution: through its leader, or right here where nobody leads it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from noetl_cli.errors import CliError, UsageError
from noetl_cli.local import finding, wishes
from noetl_cli.local.catalogue import Catalogue, LocalChildren
from noetl_cli.local.data import DataFolder
from noetl_cli.local.wishes import Asked

if TYPE_CHECKING:
    from noetl_core.values import Value
    from noetl_operator.store.reading import Entry, Reading

_FINE = ("accepted", "duplicate")


async def refuse_finished(reading: Reading, execution_id: str) -> Entry:
    """An execution that something can still be asked of."""
    entry = await reading.entry(execution_id)
    if entry.finished_at is not None:
        raise UsageError(f"the execution has finished: it is {entry.phase}")
    return entry


async def apply(
    data: DataFolder, reading: Reading, execution_id: str, body: dict[str, Value]
) -> bool:
    """Have a wish applied; answers whether somebody runs the execution."""
    led = await finding.leader(reading, data, execution_id) is not None
    if led:
        asked = await wishes.ask(reading, execution_id, body)
    else:
        asked = await _apply_here(data, reading, execution_id, body)
    if asked.verdict not in _FINE:
        raise CliError(f"the execution refuses: {asked.message or asked.verdict}")
    return led


async def _apply_here(
    data: DataFolder, reading: Reading, execution_id: str, body: dict[str, Value]
) -> Asked:
    """Lead the execution for a moment, without workers: what follows waits for `resume`."""
    from noetl_cli.local.engine import take_shard
    from noetl_operator.control import control_plane
    from noetl_operator.settings import OperatorSettings

    with data.process() as holder:
        shard = await take_shard(reading.store, holder)
        await reading.adopt(execution_id, shard, f"local/{holder}")
        children = LocalChildren(Catalogue())
        settings = OperatorSettings()
        async with control_plane(
            reading.store, children, settings, shard=shard, holder=holder
        ) as plane:
            await plane.sweeper.led.wait()
            trigger = wishes.trigger_of(str(uuid.uuid4()), body)
            decision = await plane.router.apply(execution_id, trigger)
    return Asked(decision.verdict.value, decision.message)
