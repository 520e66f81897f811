"""`noetl events`: the log of an execution."""

from __future__ import annotations

import asyncio
import fnmatch
import json
from typing import TYPE_CHECKING, Annotated

import typer

from noetl_cli import output
from noetl_cli.errors import Exit
from noetl_cli.group import NoetlCommand
from noetl_cli.local import options

if TYPE_CHECKING:
    from noetl_cli.local.data import DataFolder
    from noetl_cli.output import Output
    from noetl_core.engine.events import Event

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl events latest --local
noetl events latest --local --step fetch --name 'task.*'
noetl events 01a1ee81 --local -f -o json
"""
LOOK_S = 0.2
_LONGEST = 160


@app.command(cls=NoetlCommand, epilog=EXAMPLES)
def events(
    ctx: typer.Context,
    execution: options.Execution,
    follow: options.Follow = False,
    step: options.Step = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="PATTERN", help="Only events named so; * stands for any."),
    ] = None,
    local: options.Local = False,
    data: options.Data = None,
) -> int:
    """Print the events of an execution in order; with -o json one document a line."""
    from noetl_cli.local import opening
    from noetl_cli.local.data import DataFolder

    options.require_local(local, "events")
    printer = Printer(output.current(ctx), name)
    opening.run(_print(DataFolder(data), execution, step, follow, printer))
    return Exit.OK


class Printer:
    """Prints events whose names match."""

    def __init__(self, out: Output, pattern: str | None) -> None:
        self._out, self._pattern = out, pattern

    def __call__(self, event: Event) -> None:
        if self._pattern and not fnmatch.fnmatchcase(event.fact.name, self._pattern):
            return
        if self._out.is_json:
            self._out.line(json.dumps(event.as_json(), ensure_ascii=False))
        else:
            self._out.line(line(event))


async def _print(
    data: DataFolder, execution: str, step: str | None, follow: bool, printer: Printer
) -> None:
    from noetl_cli.local import finding

    async with finding.found(data, execution) as (reading, execution_id):
        after = 0
        while True:
            # Read before the events: whatever ended is then in what follows.
            entry = await reading.entry(execution_id)
            async for event in reading.matching(execution_id, after, step):
                printer(event)
                after = event.seq
            if not follow or entry.finished_at is not None:
                return
            await asyncio.sleep(LOOK_S)


def line(event: Event) -> str:
    """An event in one line: number, time, name, what it is about, what it says."""
    from noetl_cli.terminal import printable

    fact = event.fact
    about = fact.step or ""
    about += f"[{fact.iteration}]" if fact.iteration is not None else ""
    about += f".{fact.task}" if fact.task else ""
    about += f" #{fact.attempt}" if fact.attempt is not None and fact.attempt > 1 else ""
    payload = json.dumps(fact.payload(), ensure_ascii=False)
    shown = payload if len(payload) <= _LONGEST else payload[: _LONGEST - 1] + "…"
    time = event.timestamp[11:23]
    return printable(f"{event.seq:>5} {time} {fact.name:<24} {about:<24} {shown}".rstrip())
