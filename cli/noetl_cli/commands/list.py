"""`noetl list`: executions, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from noetl_cli import output
from noetl_cli.errors import Exit
from noetl_cli.group import NoetlCommand
from noetl_cli.local import options

if TYPE_CHECKING:
    from noetl_cli.local.data import DataFolder
    from noetl_cli.output import Output
    from noetl_operator.store.reading import Entry

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl list --local
noetl list --local --limit 5 -o json
"""


@app.command("list", cls=NoetlCommand, epilog=EXAMPLES)
def list_(
    ctx: typer.Context,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="No more than so many.")
    ] = None,
    local: options.Local = False,
    data: options.Data = None,
) -> int:
    """Show executions, newest first; children stand beside their parents."""
    from noetl_cli.local import opening
    from noetl_cli.local.data import DataFolder

    options.require_local(local, "list")
    out = output.current(ctx)
    folder = DataFolder(data)
    entries = opening.run(_entries(folder, limit)) if folder.is_used else []
    if out.is_json:
        out.document([entry.as_json() for entry in entries])
    elif entries:
        _print(out, entries)
    else:
        out.note("nothing was run here yet")
    return Exit.OK


async def _entries(folder: DataFolder, limit: int | None) -> list[Entry]:
    from noetl_cli.local import opening

    async with opening.opened(folder) as reading:
        return await reading.executions(limit=limit)


def _print(out: Output, entries: list[Entry]) -> None:
    from noetl_cli.local.display import seconds_text
    from noetl_cli.local.progress import between
    from noetl_cli.terminal import printable, width

    rows = [("ID", "PLAYBOOK", "PHASE", "STEPS", "STARTED", "TOOK")]
    for one in entries:
        took = ""
        if one.started_at and one.finished_at:
            took = seconds_text(between(one.started_at, one.finished_at))
        steps = f"{one.steps.get('done', 0)}/{one.steps.get('total', 0)}"
        started = (one.started_at or one.created_at)[:19].replace("T", " ")
        name = printable(one.playbook)
        rows.append((one.execution_id, name, one.phase, steps, started, took))
    widths = [max(width(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [cell + " " * (w - width(cell)) for cell, w in zip(row, widths, strict=True)]
        out.line("  ".join(cells).rstrip())
