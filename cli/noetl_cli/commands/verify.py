"""`noetl verify`: replay a log, compare with the stored state, check sequence and hash chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from noetl_cli import output
from noetl_cli.errors import Exit
from noetl_cli.group import NoetlCommand
from noetl_cli.local import options

if TYPE_CHECKING:
    from noetl_cli.local.data import DataFolder
    from noetl_cli.local.verifying import Verified

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl verify latest --local
noetl verify 01a1ee81 --local -o json
"""


@app.command(cls=NoetlCommand, epilog=EXAMPLES)
def verify(
    ctx: typer.Context,
    execution: options.Execution,
    local: options.Local = False,
    data: options.Data = None,
) -> int:
    """Replay the log of an execution and compare it with what is stored.

    Exit code 0 when all is as it should be, 1 with the first difference.
    """
    from noetl_cli.local import opening
    from noetl_cli.local.data import DataFolder

    options.require_local(local, "verify")
    out = output.current(ctx)
    execution_id, found = opening.run(_verify(DataFolder(data), execution))
    wrong = found.difference
    if out.is_json:
        out.document(
            {
                "executionId": execution_id,
                "valid": wrong is None,
                "events": found.events,
                "difference": None if wrong is None else wrong.as_json(),
            }
        )
    elif wrong is None:
        out.line(f"{execution_id}: {found.events} events, all as they should be")
    else:
        from noetl_cli.terminal import printable

        out.line(printable(f"{execution_id}: {wrong.message}"))
    return Exit.OK if wrong is None else Exit.FAILED


async def _verify(data: DataFolder, execution: str) -> tuple[str, Verified]:
    from noetl_cli.local import finding, verifying

    async with finding.found(data, execution) as (reading, execution_id):
        return execution_id, await verifying.verify(reading, execution_id)
