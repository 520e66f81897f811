"""`noetl resume`: go on with what was suspended, or with a run whose process is gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from noetl_cli import output
from noetl_cli.errors import Exit, UsageError
from noetl_cli.group import NoetlCommand
from noetl_cli.local import options

if TYPE_CHECKING:
    from noetl_cli.local import starting
    from noetl_cli.local.data import DataFolder
    from noetl_operator.store.port import Snapshot
    from noetl_operator.store.reading import Entry

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl resume latest --local
noetl resume 01a1ee81 --local --secrets secrets.yaml --timeout 60
"""


@dataclass(frozen=True, slots=True)
class Found:
    """An execution to go on with: here, or where it runs already."""

    snapshot: Snapshot
    resumed: Entry | None = None
    """Of one that another process leads and was suspended: as it is now."""


@app.command(cls=NoetlCommand, epilog=EXAMPLES)
def resume(
    ctx: typer.Context,
    execution: options.Execution,
    secrets: options.Secrets = None,
    scratch: options.Scratch = None,
    playbooks: options.Playbooks = None,
    workers: options.Workers = 2,
    timeout: options.Timeout = None,
    keep: options.Keep = False,
    reason: options.Reason = None,
    local: options.Local = False,
    data: options.Data = None,
) -> int:
    """Resume an execution. One that nobody runs goes on here, where its log ends.

    Then the exit codes are those of `run`: 0 succeeded, 1 failed, 3 cancelled, 4 waiting.
    """
    from noetl_cli.local import opening, starting, telling
    from noetl_cli.local.data import DataFolder

    options.require_local(local, "resume")
    out = output.current(ctx)
    given = starting.Given(
        data=DataFolder(data),
        secrets=secrets,
        scratch=scratch,
        playbooks=tuple(playbooks or ()),
        workers=options.checked_workers(workers),
        timeout=options.checked_timeout(timeout),
        keep=keep,
    )
    with opening.held(given.data):
        found = opening.run(_find(given.data, execution, reason))
        if found.resumed is not None:
            telling.tell(out, found.resumed, "resumed")
            return Exit.OK
        return go_on(out, given, found.snapshot)


def go_on(out: output.Output, given: starting.Given, snapshot: Snapshot) -> int:
    """Run an execution that nobody leads in the foreground until it ends."""
    from noetl_cli.local import starting
    from noetl_cli.local.foreground import Ended

    request = snapshot.request
    if snapshot.state.phase.is_final:
        out.note("the execution has finished already")
        return starting.finish(out, given, Ended(snapshot), listed=True)
    prepared = starting.again(given, snapshot)
    begin = starting.adopted(prepared, request.execution_id)
    ended = starting.run_foreground(out, given, prepared, begin)
    return starting.finish(out, given, ended, listed=True)


async def _find(data: DataFolder, execution: str, reason: str | None) -> Found:
    from noetl_cli.local import asking, finding, wishes

    async with finding.found(data, execution) as (reading, execution_id):
        snapshot = await reading.store.load(execution_id)
        assert snapshot is not None
        leader = await finding.leader(reading, data, execution_id)
        if snapshot.state.phase.is_final or leader is None:
            return Found(snapshot)
        if not snapshot.state.suspended:
            raise UsageError(
                f"the execution is being run by {leader}", "`noetl watch … --local` follows it"
            )
        await asking.apply(data, reading, execution_id, wishes.body("resume", reason=reason))
        return Found(snapshot, await reading.entry(execution_id))
