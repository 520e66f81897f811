"""`noetl rerun`: a new execution of the same playbook, from a step if one is named (rule K47)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from noetl_cli import output
from noetl_cli.errors import UsageError
from noetl_cli.local import options
from noetl_cli.local.options import OrderedCommand

if TYPE_CHECKING:
    from noetl_cli.local import starting
    from noetl_cli.local.data import DataFolder
    from noetl_cli.local.foreground import Begin
    from noetl_cli.local.workload import Setting
    from noetl_core.values import Value
    from noetl_operator.store.port import Snapshot

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl rerun latest --local
noetl rerun 01a1ee81 --local --from-step load --set batch=50
"""


@app.command(cls=OrderedCommand, epilog=EXAMPLES)
def rerun(
    ctx: typer.Context,
    execution: options.Execution,
    from_step: Annotated[
        str | None,
        typer.Option("--from-step", metavar="STEP", help="Adopt what was done before this step."),
    ] = None,
    set_: options.Set = None,
    set_json: options.SetJson = None,
    secrets: options.Secrets = None,
    scratch: options.Scratch = None,
    playbooks: options.Playbooks = None,
    workers: options.Workers = 2,
    timeout: options.Timeout = None,
    keep: options.Keep = False,
    local: options.Local = False,
    data: options.Data = None,
) -> int:
    """Run an execution again as a new one, with the exit codes of `run`."""
    from noetl_cli.local import opening, starting
    from noetl_cli.local.data import DataFolder

    options.require_local(local, "rerun")
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
    settings = options.settings_of(ctx, {"set_": set_, "set_json": set_json})
    with opening.held(given.data):
        snapshot, origin = opening.run(_origin(given.data, execution, from_step))
        prepared, begin = _again(given, snapshot, settings, origin)
        ended = starting.run_foreground(out, given, prepared, begin)
    return starting.finish(out, given, ended, listed=True)


def _again(
    given: starting.Given,
    snapshot: Snapshot,
    settings: list[Setting],
    origin: dict[str, Value] | None,
) -> tuple[starting.Prepared, Begin]:
    from dataclasses import replace

    from noetl_cli.local import starting
    from noetl_cli.local import workload as workloads
    from noetl_core.load import load_data

    request = snapshot.request
    playbook = load_data(request.document).playbook if request.document else None
    if playbook is None:
        raise UsageError("its playbook was not valid and can't be run again")
    merged = workloads.composed(playbook.workload, [request.workload], settings)
    # What the old one wrote to its scratch database is gone: the new one gets an empty one.
    memory = replace(given.data.recall(request.execution_id), scratch_database=None)
    catalogue = starting.catalogue_again(playbook, memory, given)
    prepared = starting.prepared(given, catalogue, memory)
    return prepared, starting.new(prepared, playbook, merged, origin)


async def _origin(
    data: DataFolder, execution: str, from_step: str | None
) -> tuple[Snapshot, dict[str, Value] | None]:
    from noetl_cli.local import finding
    from noetl_core.engine.rerun import adopted
    from noetl_operator.starting import origin_of

    async with finding.found(data, execution) as (reading, execution_id):
        snapshot = await reading.store.load(execution_id)
        assert snapshot is not None
        rerun_of: dict[str, Value] = {"execution_id": execution_id, "from_step": from_step}
        if from_step is None:
            return snapshot, origin_of(None, rerun_of)
        _check_step(snapshot, from_step)
        events = [event async for event in reading.matching(execution_id)]
        taken = adopted(events, from_step)
        if taken is None:
            raise UsageError(f"the step `{from_step}` was never reached, so nothing leads to it")
        return snapshot, origin_of(taken, rerun_of)


def _check_step(snapshot: Snapshot, step: str) -> None:
    from noetl_core.load import load_data
    from noetl_core.problems import nearest

    playbook = load_data(snapshot.request.document).playbook
    known = [one.step for one in playbook.workflow] if playbook else []
    if step not in known:
        close = nearest(step, known)
        hint = f"did you mean `{close}`?" if close else f"it has {', '.join(known)}"
        raise UsageError(f"the playbook has no step `{step}`", hint)
