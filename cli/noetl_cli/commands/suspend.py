"""`noetl suspend`: start nothing new until `resume`; what runs goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from noetl_cli import output
from noetl_cli.errors import Exit
from noetl_cli.group import NoetlCommand
from noetl_cli.local import options

if TYPE_CHECKING:
    from noetl_cli.local.data import DataFolder
    from noetl_operator.store.reading import Entry

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl suspend latest --local
noetl suspend 01a1ee81 --local --reason "maintenance"
"""


@app.command(cls=NoetlCommand, epilog=EXAMPLES)
def suspend(
    ctx: typer.Context,
    execution: options.Execution,
    reason: options.Reason = None,
    local: options.Local = False,
    data: options.Data = None,
) -> int:
    """Suspend an execution: no step and no iteration is started until it is resumed."""
    from noetl_cli.local import opening, telling
    from noetl_cli.local.data import DataFolder

    options.require_local(local, "suspend")
    entry = opening.run(_suspend(DataFolder(data), execution, reason))
    telling.tell(output.current(ctx), entry, "suspended")
    return Exit.OK


async def _suspend(data: DataFolder, execution: str, reason: str | None) -> Entry:
    from noetl_cli.local import asking, finding, wishes

    async with finding.found(data, execution) as (reading, execution_id):
        await asking.refuse_finished(reading, execution_id)
        body = wishes.body("suspend", reason=reason)
        await asking.apply(data, reading, execution_id, body)
        return await reading.entry(execution_id)
