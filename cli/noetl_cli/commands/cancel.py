"""`noetl cancel`: end an execution, well or at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from noetl_cli import output
from noetl_cli.errors import Exit
from noetl_cli.group import NoetlCommand
from noetl_cli.local import options

if TYPE_CHECKING:
    from noetl_cli.local.data import DataFolder
    from noetl_core.values import Value
    from noetl_operator.store.port import Snapshot
    from noetl_operator.store.reading import Entry

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl cancel latest --local
noetl cancel 01a1ee81 --local --now --reason "wrong input"
"""


@app.command(cls=NoetlCommand, epilog=EXAMPLES)
def cancel(
    ctx: typer.Context,
    execution: options.Execution,
    now: Annotated[
        bool, typer.Option("--now", help="At once: nothing is waited for, final_step does not run.")
    ] = False,
    reason: options.Reason = None,
    local: options.Local = False,
    data: options.Data = None,
) -> int:
    """Cancel an execution: what runs is told to stop, then final_step runs."""
    from noetl_cli.local import opening, telling, wishes
    from noetl_cli.local.data import DataFolder

    options.require_local(local, "cancel")
    out = output.current(ctx)
    folder = DataFolder(data)
    body = wishes.body("cancel", mode="now" if now else "graceful", reason=reason)
    with opening.held(folder):
        entry, orphan = opening.run(_cancel(folder, execution, body))
        if orphan is not None:
            _cancel_here(out, folder, orphan, body)
            entry = opening.run(_entry(folder, entry.execution_id))
    words = "cancelled" if entry.finished_at else "told to end"
    telling.tell(out, entry, words)
    return Exit.OK


async def _cancel(
    data: DataFolder, execution: str, body: dict[str, Value]
) -> tuple[Entry, Snapshot | None]:
    """Cancel through the leader; an execution that nobody leads is given back."""
    from noetl_cli.local import asking, finding

    async with finding.found(data, execution) as (reading, execution_id):
        entry = await reading.entry(execution_id)
        if entry.phase == "Cancelled":
            return entry, None
        await asking.refuse_finished(reading, execution_id)
        if await finding.leader(reading, data, execution_id) is None:
            return entry, await reading.store.load(execution_id)
        await asking.apply(data, reading, execution_id, body)
        return await reading.entry(execution_id), None


async def _entry(data: DataFolder, execution_id: str) -> Entry:
    from noetl_cli.local import opening

    async with opening.opened(data) as reading:
        return await reading.entry(execution_id)


def _cancel_here(
    out: output.Output, folder: DataFolder, snapshot: Snapshot, body: dict[str, Value]
) -> None:
    """Nobody runs it: its end, with `final_step`, is run here."""
    from noetl_cli.local import starting

    given = starting.Given(data=folder, workers=1)
    prepared, begin = starting.cancelled(given, snapshot, body)
    starting.run_foreground(out, given, prepared, begin)
