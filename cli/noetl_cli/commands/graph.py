"""`noetl graph`: the net of a playbook as a drawing or for other programs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from noetl_cli import files, output
from noetl_cli.errors import Exit
from noetl_cli.group import NoetlCommand

if TYPE_CHECKING:
    from noetl_core.graph import Net

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl graph playbook.yaml
noetl graph playbook.yaml --format svg > playbook.svg
noetl graph playbook.yaml --format dot | dot -Tpng > playbook.png
"""


class Kind(StrEnum):
    """The languages a net is printed in."""

    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"


@app.command(cls=NoetlCommand, epilog=EXAMPLES)
def graph(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A playbook, or - for stdin.")],
    kind: Annotated[
        Kind, typer.Option("--format", help="What to print.", show_default=True)
    ] = Kind.MERMAID,
    playbook: Annotated[
        str | None,
        typer.Option("--playbook", metavar="NAME", help="Which one, in a file that holds several."),
    ] = None,
) -> int:
    """Draw the net of a playbook: steps, arcs with their guards, joins, loops.

    `svg` is drawn without any other program. With `-o json` the net is printed as data.
    """
    from noetl_cli.playbooks import one_playbook
    from noetl_core.graph import net_of

    out = output.current(ctx)
    net = net_of(one_playbook(files.read(file), playbook))
    if out.is_json:
        out.document(net.as_json())
    else:
        out.raw(_written(net, kind))
    return Exit.OK


def _written(net: Net, kind: Kind) -> str:
    match kind:
        case Kind.MERMAID:
            from noetl_core.graph.mermaid import mermaid

            return mermaid(net)
        case Kind.DOT:
            from noetl_core.graph.dot import dot

            return dot(net)
        case Kind.SVG:
            from noetl_core.graph.svg import svg

            return svg(net)
