"""The program's commands, found by name and imported only when one is run.

`noetl --help` reads nothing but this table, so it stays fast however many commands there are. The
options that stand everywhere (`-o`, `-q`, `--version`) are declared once, on the program, and lent
to every command.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from noetl_cli.errors import UsageError
from noetl_cli.help import Page, Section
from noetl_cli.parameters import lightened
from noetl_core.problems import nearest

if TYPE_CHECKING:
    # typer carries its own click; only these names of it are needed, for signatures.
    from typer._click import Command, Context, HelpFormatter, Parameter


@dataclass(frozen=True, slots=True)
class Lazy:
    """A command that is imported when it is needed."""

    module: str
    """Below `noetl_cli.commands`; it has a `typer.Typer` named `app` with one command."""
    summary: str
    section: str


AUTHORING = "Write playbooks (no cluster)"
RUNNING = "Run playbooks (here, with --local; or on a cluster)"

COMMANDS: Mapping[str, Lazy] = {
    "check": Lazy(
        "check", "Find every problem of a playbook, with its place and its cure", AUTHORING
    ),
    "convert": Lazy(
        "convert", "Print the other form: a document or a Kubernetes object", AUTHORING
    ),
    "graph": Lazy("graph", "Draw the net: steps, arcs, joins, loops", AUTHORING),
    "schema": Lazy("schema", "Print a JSON Schema, for editors", AUTHORING),
    "run": Lazy("run", "Run a playbook on this machine, on an embedded Postgres", RUNNING),
    "list": Lazy("list", "Executions, newest first", RUNNING),
    "status": Lazy("status", "The steps of an execution: state, attempts, loops, errors", RUNNING),
    "watch": Lazy("watch", "Follow an execution live", RUNNING),
    "events": Lazy("events", "The log of an execution", RUNNING),
    "logs": Lazy("logs", "What the tools of an execution printed", RUNNING),
    "result": Lazy("result", "The result of an execution or a step, also a stored one", RUNNING),
    "approve": Lazy("approve", "Write ctx values, which may open a gate", RUNNING),
    "suspend": Lazy("suspend", "Start nothing new until it is resumed", RUNNING),
    "resume": Lazy("resume", "Go on with what was suspended, or whose process was killed", RUNNING),
    "cancel": Lazy("cancel", "End an execution", RUNNING),
    "rerun": Lazy("rerun", "Run an execution again, from a step if you like", RUNNING),
    "verify": Lazy("verify", "Replay a log and check it: sequence, hashes, state", RUNNING),
}

_GLOBAL = frozenset({"output_format", "quiet", "version"})
"""The options of `main` that every command takes too."""

PROGRAM_EXAMPLES = (
    "noetl check playbook.yaml",
    "noetl run playbook.yaml --set pages=3",
    "noetl convert playbook.yaml --to resource | kubectl apply -f -",
    "noetl graph playbook.yaml --format svg > playbook.svg",
)


class LazyGroup(TyperGroup):
    """The program: looks its commands up in `COMMANDS`."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        return lightened(super().get_params(ctx))

    def list_commands(self, ctx: Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        found = COMMANDS.get(cmd_name)
        if found is None:
            return None
        module = importlib.import_module(f"noetl_cli.commands.{found.module}")
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        known = {name for param in command.params for name in param.opts}
        command.params += [p for p in self.params if _is_global(p) and not known & set(p.opts)]
        return command

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None and not ctx.resilient_parsing:
            close = nearest(name, COMMANDS)
            hint = f"did you mean `{close}`?" if close else f"see `{ctx.command_path} --help`"
            raise UsageError(f"unknown command `{name}`", hint)
        return (name if command else None), command, args[1:]

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        sections = [*_command_sections(), Section("Options", option_rows(self, ctx))]
        program = ctx.command_path
        page = Page(
            usage=f"{program} COMMAND [options]",
            text=self.help or "",
            examples=for_program(PROGRAM_EXAMPLES, program),
            sections=sections,
            footer=f"`{program} COMMAND --help` tells more about a command.",
        )
        formatter.write(page.render())


class NoetlCommand(TyperCommand):
    """A command whose help shows examples (given as its epilog, one a line)."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        return lightened(super().get_params(ctx))

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        arguments = [p for p in self.get_params(ctx) if p.param_type_name == "argument"]
        words = " ".join(_argument(p) for p in arguments)
        examples = (self.epilog or "").strip().splitlines()
        rows = [(_argument(p), str(getattr(p, "help", "") or "")) for p in arguments]
        page = Page(
            usage=f"{ctx.command_path} {words} [options]".replace("  ", " "),
            text=self.help or "",
            examples=for_program(examples, ctx.find_root().command_path),
            sections=[Section("Arguments", rows), Section("Options", option_rows(self, ctx))],
        )
        formatter.write(page.render())


def for_program(examples: Sequence[str], program: str) -> list[str]:
    """Examples as one types them here: `kubectl noetl …` in the plugin."""
    return [
        e.replace("noetl ", f"{program} ", 1) if e.startswith("noetl ") else e for e in examples
    ]


def option_rows(command: Command, ctx: Context) -> list[tuple[str, str]]:
    """The options of a command, global ones last."""
    params = [p for p in command.get_params(ctx) if p.param_type_name == "option"]
    params.sort(key=lambda p: (_is_global(p) or p.name == "help", p.name == "help"))
    records = [(p, p.get_help_record(ctx)) for p in params]
    return [(_option(p, record[0]), record[1]) for p, record in records if record]


def _command_sections() -> list[Section]:
    titles = dict.fromkeys(lazy.section for lazy in COMMANDS.values())
    return [
        Section(title, [(n, c.summary) for n, c in COMMANDS.items() if c.section == title])
        for title in titles
    ]


def _is_global(param: Parameter) -> bool:
    return param.name in _GLOBAL


def _option(param: Any, record: str) -> str:
    if param.is_flag:
        return ", ".join(sorted(param.opts, key=len))
    return record.replace("<", "").replace(">", "") if "<" in record else record


def _argument(param: Any) -> str:
    name = str(param.metavar or param.name.upper())
    name = name if param.nargs == 1 else f"{name}…"
    return name if param.required else f"[{name}]"
