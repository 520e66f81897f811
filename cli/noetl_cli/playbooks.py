"""The one valid playbook of a file, for commands that work on one."""

from __future__ import annotations

import sys

from noetl_cli import output, report
from noetl_cli.errors import CliError, UsageError
from noetl_cli.files import SourceFile
from noetl_cli.terminal import style_for
from noetl_core.check import check_text
from noetl_core.model import Playbook
from noetl_core.problems import Problem, Severity, nearest


class InvalidPlaybook(CliError):
    """A command needs a valid playbook and the file is none."""

    def __init__(self, message: str, problems: list[Problem]) -> None:
        super().__init__(message)
        self.problems = problems

    def as_json(self) -> dict[str, object]:
        return {**super().as_json(), "problems": [p.as_json() for p in self.problems]}


def one_playbook(file: SourceFile, name: str | None = None) -> Playbook:
    """The playbook, chosen by name where a file holds several. An invalid one ends the command."""
    checked = check_text(file.data)
    errors = [p for each in checked for p in each.problems if p.severity is Severity.ERROR]
    if errors:
        raise invalid(file, errors)
    playbooks = {c.playbook.metadata.name: c.playbook for c in checked if c.playbook}
    names = ", ".join(playbooks)
    if name is not None:
        found = playbooks.get(name)
        if found is None:
            close = nearest(name, playbooks)
            hint = f"did you mean `{close}`?" if close else f"it holds {names}"
            raise UsageError(f"{file.label}: there is no playbook `{name}`", hint)
        return found
    if len(checked) > 1:
        message = f"{file.label}: the file holds {len(checked)} playbooks"
        raise UsageError(message, f"choose one with --playbook: {names}")
    return next(iter(playbooks.values()))


def invalid(file: SourceFile, problems: list[Problem]) -> CliError:
    """Show what is wrong with a playbook on stderr, and give the error that ends the command."""
    for line in report.render(file, problems, style_for(sys.stderr)):
        output.write(sys.stderr, line + "\n")
    message = f"{file.label}: not a valid playbook: {report.counts(problems)}"
    return InvalidPlaybook(message, problems)
