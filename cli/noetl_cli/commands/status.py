"""`noetl status`: the steps of an execution as a tree."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from noetl_cli import output
from noetl_cli.errors import Exit
from noetl_cli.group import NoetlCommand
from noetl_cli.local import options

if TYPE_CHECKING:
    from noetl_cli.local.data import DataFolder
    from noetl_cli.local.outline import Tree

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl status latest --local
noetl status 01a1ee81 --local -o json
"""


@app.command(cls=NoetlCommand, epilog=EXAMPLES)
def status(
    ctx: typer.Context,
    execution: options.Execution,
    local: options.Local = False,
    data: options.Data = None,
) -> int:
    """Show how far an execution is: steps, tasks, attempts, loops, durations, errors, children."""
    from noetl_cli.local import opening
    from noetl_cli.local.data import DataFolder
    from noetl_cli.local.display import Lines
    from noetl_cli.local.outline import rendered

    options.require_local(local, "status")
    out = output.current(ctx)
    tree, hints = opening.run(_read(DataFolder(data), execution))
    if out.is_json:
        entry = tree.entry
        out.document({**entry.as_json(), "message": entry.message, "tree": tree.as_json()})
        return Exit.OK
    for line in rendered(tree, Lines(sys.stdout)):
        out.line(line)
    for hint in hints:
        out.note(hint)
    return Exit.OK


async def _read(data: DataFolder, execution: str) -> tuple[Tree, list[str]]:
    from noetl_cli.local import finding
    from noetl_cli.local.hints import approval
    from noetl_cli.local.outline import outline
    from noetl_operator.live import program_of

    async with finding.found(data, execution) as (reading, execution_id):
        tree = await outline(reading, execution_id)
        hints: list[str] = []
        if tree.entry.phase == "Waiting":
            snapshot = await reading.store.load(execution_id)
            assert snapshot is not None
            hints = approval(program_of(snapshot), snapshot.state, data)
        led = await finding.leader(reading, data, execution_id) is not None
        if tree.entry.finished_at is None and not led:
            command = f"noetl resume {execution_id} --local{data.option}"
            hints.append(f"nobody runs it at the moment; `{command}` goes on with it")
        return tree, hints
