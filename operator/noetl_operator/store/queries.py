"""The named statements of `queries.sql`, and the numbered migrations beside them."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_PACKAGE = "noetl_operator.store"


@cache
def _queries() -> dict[str, str]:
    text = (resources.files(_PACKAGE) / "queries.sql").read_text()
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def query(name: str) -> str:
    return _queries()[name]


def migrations() -> list[tuple[int, str]]:
    """Every migration by number; a number is never used again and its text never changes."""
    folder = resources.files(_PACKAGE) / "migrations"
    files = sorted(folder.iterdir(), key=lambda path: path.name)
    return [(int(p.name[:4]), p.read_text()) for p in files if p.name.endswith(".sql")]
