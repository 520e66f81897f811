"""The options that local commands share, and `--set`/`--set-json` in the order they were given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl_cli.errors import UsageError
from noetl_cli.group import NoetlCommand

if TYPE_CHECKING:
    from typer._click import Context

    from noetl_cli.local.workload import Setting

_ORDER = "noetl_cli.order"

Data = Annotated[
    str | None,
    typer.Option("--data", metavar="DIR", help="The local store (default: your data folder)."),
]
Local = Annotated[bool, typer.Option("--local", help="Work on the local store, not on a cluster.")]
Execution = Annotated[
    str,
    typer.Argument(metavar="EXECUTION", help="An id, the start of one, or `latest`."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Override a value; read as YAML."),
]
SetJson = Annotated[
    list[str] | None,
    typer.Option("--set-json", metavar="PATH=JSON", help="Override a value; read as JSON."),
]
Workload = Annotated[
    str | None,
    typer.Option("--workload", metavar="FILE", help="A YAML file that is laid over the workload."),
]
Secrets = Annotated[
    str | None,
    typer.Option(
        "--secrets",
        metavar="PATH",
        help="A YAML file {secret: {key: value}} or a folder secret/key.",
    ),
]
Scratch = Annotated[
    str | None,
    typer.Option(
        "--scratch-postgres",
        metavar="ENTRY",
        help="Make an empty database and supply it as this keychain entry.",
    ),
]
Playbooks = Annotated[
    list[str] | None,
    typer.Option("--playbooks", metavar="DIR", help="Where child playbooks are found too."),
]
Workers = Annotated[int, typer.Option("--workers", metavar="N", help="Worker processes.")]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        help="Cancel what still runs then; a run that waits at a gate stays.",
    ),
]
Keep = Annotated[
    bool, typer.Option("--keep", help="Keep the scratch database and print its address.")
]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why; it stands in the log.")
]
Step = Annotated[str | None, typer.Option("--step", metavar="STEP", help="Only of this step.")]
Follow = Annotated[bool, typer.Option("-f", "--follow", help="Go on until the execution ends.")]


class OrderedCommand(NoetlCommand):
    """A command that knows in which order its options were given."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta[_ORDER] = [param.name for param in order]
        return super().parse_args(ctx, args)


def settings_of(ctx: typer.Context, given: dict[str, list[str] | None]) -> list[Setting]:
    """`--set` and `--set-json` in the order of the command line; `given` is by parameter."""
    from noetl_cli.local.workload import setting

    options = {"set_": "--set", "set_json": "--set-json"}
    left = {name: list(values or []) for name, values in given.items()}
    order: list[Any] = ctx.meta.get(_ORDER, [])
    return [setting(options[name], left[name].pop(0)) for name in order if left.get(name)]


def require_local(local: bool, command: str) -> None:
    """What works on the local store alone, until a cluster is named."""
    if not local:
        raise UsageError(
            f"`{command}` needs --local: no cluster support is installed",
            f"noetl {command} … --local works on the runs of this machine",
        )


def checked_timeout(timeout: float | None) -> float | None:
    if timeout is not None and not 0 <= timeout < 1e9:
        raise UsageError(f"--timeout takes a number of seconds, not {timeout}")
    return timeout


def checked_workers(workers: int) -> int:
    if not 1 <= workers <= 64:
        raise UsageError(f"--workers takes a number from 1 to 64, not {workers}")
    return workers
