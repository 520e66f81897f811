"""Which execution a command means: an id, the start of one, or `latest`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from noetl_cli.errors import UsageError
from noetl_cli.local import opening
from noetl_cli.local.data import DataFolder

if TYPE_CHECKING:
    from noetl_operator.store.reading import Reading

LATEST = "latest"
_ID = re.compile(r"[0-9a-f-]{1,36}")


@contextlib.asynccontextmanager
async def found(data: DataFolder, given: str) -> AsyncIterator[tuple[Reading, str]]:
    """The open store and the id of the execution that is meant."""
    if not data.is_used:
        raise unknown(given, data)
    async with opening.opened(data) as reading:
        yield reading, await find(reading, given, data)


async def find(reading: Reading, given: str, data: DataFolder) -> str:
    if given == LATEST:
        latest = await reading.latest()
        if latest is None:
            raise unknown(given, data)
        return latest
    prefix = given.strip().lower()
    ids = await reading.find(prefix) if _ID.fullmatch(prefix) else []
    if not ids:
        raise unknown(given, data)
    if len(ids) > 1:
        raise UsageError(
            f"several executions begin with `{given}`", "give more of the id; `noetl list --local`"
        )
    return ids[0]


def unknown(given: str, data: DataFolder) -> UsageError:
    hint = f"`noetl list --local{data.option}` shows what there is"
    if given == LATEST:
        return UsageError("nothing was run here yet", hint)
    return UsageError(f"there is no execution `{given}`", hint)


async def leader(reading: Reading, data: DataFolder, execution_id: str) -> str | None:
    """The process that leads an execution; the claim of a dead one is lifted."""
    shard, holder = await reading.holder(execution_id)
    if holder is None or data.is_alive(holder):
        return holder
    await reading.store.release_shard(shard, holder)
    return None
