"""`noetl logs`: what the tools of an execution printed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from noetl_cli import output
from noetl_cli.errors import Exit
from noetl_cli.group import NoetlCommand
from noetl_cli.local import options

if TYPE_CHECKING:
    from noetl_cli.local.data import DataFolder
    from noetl_operator.store.reading import Line, Reading

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl logs latest --local
noetl logs latest --local --step transform -f
"""
LOOK_S = 0.2


@app.command(cls=NoetlCommand, epilog=EXAMPLES)
def logs(
    ctx: typer.Context,
    execution: options.Execution,
    step: options.Step = None,
    follow: options.Follow = False,
    local: options.Local = False,
    data: options.Data = None,
) -> int:
    """Print what tasks wrote, in the order of time; with -o json one list of lines."""
    from noetl_cli.local import opening
    from noetl_cli.local.data import DataFolder

    options.require_local(local, "logs")
    out = output.current(ctx)
    kept: list[Line] = []
    show = kept.append if out.is_json else lambda line: out.line(_text(line))
    opening.run(_read(DataFolder(data), execution, step, follow, show))
    if out.is_json:
        out.document([line.as_json() for line in kept])
    return Exit.OK


async def _read(
    data: DataFolder,
    execution: str,
    step: str | None,
    follow: bool,
    show: Callable[[Line], None],
) -> None:
    from noetl_cli.local import finding

    async with finding.found(data, execution) as (reading, execution_id):
        last: Line | None = None
        while True:
            entry = await reading.entry(execution_id)
            last = await _page(reading, execution_id, step, last, show)
            if not follow or entry.finished_at is not None:
                return
            await asyncio.sleep(LOOK_S)


async def _page(
    reading: Reading,
    execution_id: str,
    step: str | None,
    last: Line | None,
    show: Callable[[Line], None],
) -> Line | None:
    """Everything that is there now; answers the last line."""
    while lines := await reading.logs(execution_id, step, last):
        for line in lines:
            show(line)
        last = lines[-1]
    return last


def _text(line: Line) -> str:
    from noetl_cli.terminal import printable

    where = line.step or ""
    where += f"[{line.iteration}]" if line.iteration is not None else ""
    where += f".{line.task}" if line.task else ""
    mark = " ! " if line.stream == "stderr" else " | "
    return printable(where) + mark + printable(line.text)
