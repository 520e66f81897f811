"""`noetl watch`: follow an execution that another process runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from noetl_cli import output
from noetl_cli.errors import UsageError
from noetl_cli.group import NoetlCommand
from noetl_cli.local import options

if TYPE_CHECKING:
    from noetl_cli.local.data import DataFolder
    from noetl_cli.local.display import Display
    from noetl_operator.store.reading import Entry

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl watch latest --local
"""
LOOK_S = 0.2


@app.command(cls=NoetlCommand, epilog=EXAMPLES)
def watch(
    ctx: typer.Context,
    execution: options.Execution,
    local: options.Local = False,
    data: options.Data = None,
) -> int:
    """Show the progress of an execution until it ends; the exit code is that of `run`."""
    from noetl_cli.local import opening, telling
    from noetl_cli.local.data import DataFolder
    from noetl_cli.local.display import display_for
    from noetl_cli.local.documents import exit_code

    options.require_local(local, "watch")
    out = output.current(ctx)
    entry = opening.run(_watch(DataFolder(data), execution, display_for(out.quiet)))
    telling.tell(out, entry, entry.phase)
    return exit_code(entry.phase)


async def _watch(data: DataFolder, execution: str, display: Display) -> Entry:
    from noetl_cli.local import finding

    async with finding.found(data, execution) as (reading, execution_id):
        after = 0
        while True:
            leader = await finding.leader(reading, data, execution_id)
            entry = await reading.entry(execution_id)
            async for event in reading.matching(execution_id, after):
                display.take(event, root=True)
                after = event.seq
            now = await reading.store.now()
            if entry.finished_at is not None:
                display.end(now)
                return entry
            display.tick(now)
            if leader is None:
                display.end(now)
                raise UsageError(
                    f"nobody runs the execution: it is {entry.phase}",
                    f"`noetl resume {execution_id} --local{data.option}` goes on with it",
                )
            await asyncio.sleep(LOOK_S)
