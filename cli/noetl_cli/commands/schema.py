"""`noetl schema`: JSON Schemas, for editors."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from noetl_cli import output
from noetl_cli.errors import Exit
from noetl_cli.group import NoetlCommand

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl schema playbook > playbook.schema.json
noetl schema execution -o json
"""


class Kind(StrEnum):
    """What there are schemas of."""

    PLAYBOOK = "playbook"
    EXECUTION = "execution"


@app.command(cls=NoetlCommand, epilog=EXAMPLES)
def schema(
    ctx: typer.Context,
    kind: Annotated[Kind, typer.Argument(metavar="playbook|execution", help="What to describe.")],
) -> int:
    """Print a JSON Schema (draft 2020-12), for editors.

    With the YAML language server, the first line of a playbook may say
    `# yaml-language-server: $schema=playbook.schema.json`.
    """
    from noetl_cli.schemas import execution_schema, playbook_schema

    made = playbook_schema() if kind is Kind.PLAYBOOK else execution_schema()
    output.current(ctx).document(made)
    return Exit.OK
