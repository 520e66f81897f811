"""How commands that change an execution end: the execution as lists show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetl_cli.output import Output
from noetl_cli.terminal import printable

if TYPE_CHECKING:
    from noetl_operator.store.reading import Entry


def tell(out: Output, entry: Entry, words: str) -> None:
    if out.is_json:
        out.document(entry.as_json())
    else:
        out.line(f"{printable(entry.name)} ({entry.execution_id}): {words}")
