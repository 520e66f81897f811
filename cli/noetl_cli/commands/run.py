"""`noetl run`: a playbook on this machine, with the engine that the cluster has."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from noetl_cli import files, output
from noetl_cli.errors import Exit
from noetl_cli.local import options
from noetl_cli.local.options import OrderedCommand
from noetl_cli.output import Output

if TYPE_CHECKING:
    from noetl_cli.files import SourceFile
    from noetl_core.check import Checked
    from noetl_core.model import Playbook
    from noetl_core.problems import Problem

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl run playbook.yaml
noetl run playbook.yaml --set pages=3 --set-json 'filter={"state": "open"}'
noetl run playbook.yaml --secrets secrets.yaml --timeout 60
noetl run playbook.yaml --scratch-postgres pg_main -o json
"""


@app.command(cls=OrderedCommand, epilog=EXAMPLES)
def run(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="FILE", help="A playbook, or - for stdin.")],
    set_: options.Set = None,
    set_json: options.SetJson = None,
    workload: options.Workload = None,
    secrets: options.Secrets = None,
    scratch: options.Scratch = None,
    playbooks: options.Playbooks = None,
    workers: options.Workers = 2,
    timeout: options.Timeout = None,
    keep: options.Keep = False,
    data: options.Data = None,
) -> int:
    """Run a playbook here and now, on an embedded Postgres.

    Exit code 0 when it succeeded, 1 when it failed, 3 when it was cancelled, 4 when it still waits
    at a gate at the end of --timeout.
    """
    from noetl_cli.local import starting
    from noetl_cli.local import workload as workloads
    from noetl_cli.local.catalogue import Catalogue
    from noetl_cli.local.data import DataFolder

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
    layers = [workloads.read_file(workload)] if workload else []
    source = files.read(name)
    read = _playbooks(out, source)
    if read is None:
        return Exit.FAILED
    merged = workloads.composed(read[0].workload, layers, settings)
    prepared = starting.prepared(given, Catalogue.of(read, name, given.playbooks))
    ended = starting.run_foreground(out, given, prepared, starting.new(prepared, read[0], merged))
    return starting.finish(out, given, ended)


def _playbooks(out: Output, source: SourceFile) -> list[Playbook] | None:
    """The playbook and its children from the same file; None when one of them is invalid."""
    from noetl_core.check import check_text

    checked = check_text(source.data)
    found = [one.playbook for one in checked if one.playbook is not None]
    if len(found) < len(checked):
        _refuse(out, source, checked)
        return None
    warnings = sum(len(one.problems) for one in checked)
    if warnings:
        out.note(f"{warnings} warnings; `noetl check {source.label}` shows them")
    return found


def _refuse(out: Output, source: SourceFile, checked: list[Checked]) -> None:
    from noetl_cli import report
    from noetl_cli.terminal import style_for

    problems: list[Problem] = [problem for one in checked for problem in one.problems]
    if not out.quiet:
        for line in report.render(source, problems, style_for(sys.stderr)):
            output.write(sys.stderr, line + "\n")
    output.write(sys.stderr, f"error: {source.label} is not a valid playbook\n")
    if out.is_json:
        out.document(
            {
                "phase": "Failed",
                "reason": "InvalidPlaybook",
                "problems": [problem.as_json() for problem in problems],
            }
        )
