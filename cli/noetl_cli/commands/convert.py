"""`noetl convert`: a playbook's file in its other form."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from noetl_cli import files, output
from noetl_cli.errors import CliError, Exit
from noetl_cli.group import NoetlCommand

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl convert playbook.yaml --to resource | kubectl apply -f -
noetl convert resource.yaml --to document > playbook.yaml
"""


class Target(StrEnum):
    """The form to print."""

    RESOURCE = "resource"
    DOCUMENT = "document"


@app.command(cls=NoetlCommand, epilog=EXAMPLES)
def convert(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="FILE", help="A playbook, or - for stdin.")],
    to: Annotated[Target, typer.Option("--to", help="The form to print.")],
) -> int:
    """Print a playbook in its other form, comments and order kept.

    A document has the playbook's sections at its root; a Kubernetes object (resource) has them
    under `spec`. A file that has the wanted form already is printed as it is.
    """
    from noetl_core.convert import CannotConvert, convert_text
    from noetl_core.load import Form

    out = output.current(ctx)
    file = files.read(name)
    try:
        converted = convert_text(file.data, Form(to.value))
    except CannotConvert as wrong:
        if not wrong.problems:
            raise CliError(f"{file.label}: {wrong.message}") from None
        from noetl_cli.playbooks import invalid

        raise invalid(file, list(wrong.problems)) from None
    for note in converted.notes:
        out.warning(note)
    if out.is_json:
        out.document(_data(converted.text))
    else:
        out.raw(converted.text)
    return Exit.OK


def _data(text: str) -> object:
    """The converted documents as data: one, or a list of several."""
    from noetl_core.nodes import plain_value
    from noetl_core.source import parse

    values = [plain_value(document.root) for document in parse(text) if document.root]
    return values[0] if len(values) == 1 else values
