"""`noetl` and `kubectl-noetl`, one program: the way in, the global options, the last words.

Nothing heavy is imported here. Whatever goes wrong ends as one `error:` line and an exit code.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from noetl_cli import output
from noetl_cli.errors import CliError, Exit, UsageError, debugging, unexpected
from noetl_cli.group import LazyGroup
from noetl_cli.output import Format, Output
from noetl_core.problems import nearest

app = typer.Typer(
    cls=LazyGroup,
    name="noetl",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _set_format(ctx: typer.Context, value: Format | None) -> None:
    if value is not None:
        output.current(ctx).format = value


def _set_quiet(ctx: typer.Context, value: bool) -> None:
    if value:
        output.current(ctx).quiet = True


def _print_version(ctx: typer.Context, value: bool) -> None:
    if not value:
        return
    from importlib.metadata import version

    found = version("noetl-operator")
    out = output.current(ctx)
    if out.is_json or wants_json(sys.argv[1:]):
        out.document({"version": found})
    else:
        out.line(f"noetl {found}")
    raise typer.Exit(Exit.OK)


@app.callback(invoke_without_command=True)
def _program(
    ctx: typer.Context,
    output_format: Annotated[
        Format | None,
        typer.Option(
            "-o",
            "--output",
            callback=_set_format,
            expose_value=False,
            help="How to print the result.",
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option(
            "-q", "--quiet", callback=_set_quiet, expose_value=False, help="Only the result itself."
        ),
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            expose_value=False,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Write, check and run NoETL playbooks (Canonical v10)."""
    if ctx.invoked_subcommand is None:
        output.write(sys.stdout, ctx.get_help())


def program_name(path: str) -> str:
    """How the user calls us: `kubectl noetl` when kubectl found us as its plugin."""
    base = os.path.basename(path)
    return "kubectl noetl" if re.match(r"kubectl[-_]noetl", base) else "noetl"


_JSON = re.compile(r"(-[qo]*o=?|--output=)json")


def wants_json(args: Sequence[str]) -> bool:
    """Whether `-o json` stands somewhere, for errors that come before the options are read."""
    pairs = zip(args, [*args[1:], ""], strict=False)
    return any(
        _JSON.fullmatch(word) or (word in ("-o", "--output", "-qo") and after == "json")
        for word, after in pairs
    )


def run(args: Sequence[str], prog: str = "noetl") -> int:
    """The program as a function: arguments in, exit code out."""
    group = cast(TyperGroup, typer.main.get_command(app))
    try:
        code = group.main(
            args=list(args), prog_name=prog, complete_var="_NOETL_COMPLETE", standalone_mode=False
        )
        return int(code or Exit.OK)
    except CliError as error:
        return _end(error, args, error)
    except typer.TyperException as error:
        return _end(usage_error(error, prog), args, error)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except typer.Abort:
        return Exit.INTERRUPTED
    except Exception as error:
        return _end(unexpected(error), args, error)


def _end(error: CliError, args: Sequence[str], cause: Exception) -> int:
    if debugging():
        import traceback

        traceback.print_exception(cause)
    Output(Format.JSON if wants_json(args) else Format.TEXT).error(error)
    return error.exit_code


def usage_error(error: Any, prog: str) -> UsageError:
    """What the option parser says, in our words: one line and a hint."""
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx else prog
    hint = f"see `{path} --help`"
    message = " ".join(str(error.message or error.format_message()).split())
    if hasattr(error, "possibilities"):
        known = [name for p in ctx.command.get_params(ctx) for name in p.opts] if ctx else []
        close = nearest(error.option_name, [name for name in known if name.startswith("--")])
        message = f"unknown option `{error.option_name}`"
        hint = f"did you mean `{close}`?" if close else hint
    elif getattr(error, "param", None) is not None:
        message = " ".join(error.format_message().split()).replace("Value error, ", "")
    message = message[:1].lower() + message[1:].rstrip(".")
    return UsageError(message, hint)


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:], program_name(sys.argv[0])))


if __name__ == "__main__":
    main()
