"""`noetl check`: every problem of every file, at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from noetl_cli import files, output
from noetl_cli.errors import Exit
from noetl_cli.files import SourceFile
from noetl_cli.group import NoetlCommand
from noetl_cli.output import Output

if TYPE_CHECKING:
    from noetl_core.check import Checked
    from noetl_core.layers import Layered

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl check playbook.yaml
noetl check playbooks/ --strict
noetl check playbook.yaml -o json
noetl check playbook.yaml --explain fetch.get_page
cat playbook.yaml | noetl check -
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One document of a file, and the values that were asked for."""

    file: SourceFile
    checked: Checked
    is_valid: bool
    explained: Sequence[Layered] | None = None

    def as_json(self) -> dict[str, object]:
        entry: dict[str, object] = {
            "file": self.file.name,
            "valid": self.is_valid,
            "digest": self.checked.digest,
            "problems": [problem.as_json() for problem in self.checked.problems],
        }
        if self.explained is not None:
            entry["explain"] = [
                {"path": v.path, "value": v.value, "scope": str(v.scope)} for v in self.explained
            ]
        return entry


@app.command(cls=NoetlCommand, epilog=EXAMPLES)
def check(
    ctx: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Playbooks, folders of them, or - for stdin."),
    ],
    strict: Annotated[
        bool, typer.Option("--strict", help="A playbook with a warning is not valid.")
    ] = False,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="STEP.TASK",
            help="Show each effective value of a task and the scope that gave it.",
        ),
    ] = None,
) -> int:
    """Find every problem of a playbook, each with its rule, place and cure.

    Exit code 0 when all are valid, 1 when one is not, 2 when a file can't be read.
    """
    from noetl_core.check import check_text

    out = output.current(ctx)
    sources = list(files.read_all(names))
    entries = [
        Entry(file, checked, _is_valid(checked, strict))
        for file in sources
        for checked in check_text(file.data)
    ]
    if explain is not None:
        from noetl_cli.explain import explained

        entries = explained(entries, explain)
    if out.is_json:
        out.document([entry.as_json() for entry in entries])
    else:
        _print(entries, out)
    return Exit.OK if all(entry.is_valid for entry in entries) else Exit.FAILED


def _is_valid(checked: Checked, strict: bool) -> bool:
    return checked.valid and not (strict and checked.problems)


def _print(entries: Sequence[Entry], out: Output) -> None:
    from noetl_cli import report

    style = out.style
    for entry in entries:
        for line in report.render(entry.file, entry.checked.problems, style):
            out.line(line)
        if entry.explained is not None:
            from noetl_cli.explain import table

            for line in table(entry.explained, style):
                out.line(line)
    if not out.quiet:
        out.line(_summary(entries, out))


def _summary(entries: Sequence[Entry], out: Output) -> str:
    from noetl_cli import report

    problems = [problem for entry in entries for problem in entry.checked.problems]
    invalid = sum(not entry.is_valid for entry in entries)
    total = report.plural(len(entries), "playbook")
    if invalid:
        word, colour = f"{invalid} of {total} not valid", "red"
        if len(entries) == 1:
            word = "not valid"
    else:
        word, colour = (f"{total} valid" if len(entries) > 1 else "valid"), "green"
    counted = f": {report.counts(problems)}" if problems else ""
    return out.style(word, "bold", colour) + counted
