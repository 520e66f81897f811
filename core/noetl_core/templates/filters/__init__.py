"""The allow-list of filters and tests, filled by the modules of this package."""

from noetl_core.templates.filters import (
    checks,
    choosing,
    dates,
    encoding,
    lists,
    mappings,
    numbers,
    patterns,
    strings,
)
from noetl_core.templates.registry import filters, tests

__all__ = [
    "checks",
    "choosing",
    "dates",
    "encoding",
    "filters",
    "lists",
    "mappings",
    "numbers",
    "patterns",
    "strings",
    "tests",
]
