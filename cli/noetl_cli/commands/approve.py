"""`noetl approve`: write `ctx` values from outside, which may open a gate (rule C3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from noetl_cli import output
from noetl_cli.errors import Exit, UsageError
from noetl_cli.local import options
from noetl_cli.local.options import OrderedCommand

if TYPE_CHECKING:
    from noetl_cli.local.data import DataFolder
    from noetl_cli.local.workload import Setting
    from noetl_operator.store.reading import Entry

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl approve latest --local --set approved=true
noetl approve 01a1ee81 --local --set approved=true --reason "checked by hand"
"""


@app.command(cls=OrderedCommand, epilog=EXAMPLES)
def approve(
    ctx: typer.Context,
    execution: options.Execution,
    set_: options.Set = None,
    set_json: options.SetJson = None,
    reason: options.Reason = None,
    local: options.Local = False,
    data: options.Data = None,
) -> int:
    """Write values to the ctx of an execution; gates that wait are judged again."""
    from noetl_cli.local import opening, telling
    from noetl_cli.local.data import DataFolder

    options.require_local(local, "approve")
    settings = options.settings_of(ctx, {"set_": set_, "set_json": set_json})
    if not settings:
        raise UsageError("approve needs what to write", "for example --set approved=true")
    out = output.current(ctx)
    folder = DataFolder(data)
    entry, led = opening.run(_approve(folder, execution, settings, reason))
    telling.tell(out, entry, f"written, it is {entry.phase}")
    if not led and entry.finished_at is None:
        command = f"noetl resume {entry.execution_id} --local{folder.option}"
        out.note(f"nobody runs it at the moment; `{command}` goes on with it")
    return Exit.OK


async def _approve(
    data: DataFolder, execution: str, settings: list[Setting], reason: str | None
) -> tuple[Entry, bool]:
    from noetl_cli.local import asking, finding, wishes
    from noetl_cli.local.workload import composed

    async with finding.found(data, execution) as (reading, execution_id):
        await asking.refuse_finished(reading, execution_id)
        ctx = (await reading.head(execution_id)).state.ctx
        changed = composed(ctx, [], settings)
        values = {one.path[0]: changed[one.path[0]] for one in settings}
        body = wishes.body("patch", set=values, reason=reason)
        led = await asking.apply(data, reading, execution_id, body)
        return await reading.entry(execution_id), led
