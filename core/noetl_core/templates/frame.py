"""What one evaluation carries: the scope it reads, whether undefined is an error, its budgets.

Every operator and filter charges the frame before it works: `work` for time, `memory` for what
it produces. See `limits` for the numbers.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

from noetl_core.templates.errors import TemplateError
from noetl_core.templates.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from noetl_core.values import Value

SLOT = 8
"""Bytes of one place in a list."""
LIST = 72
"""Bytes of a small list besides its places."""
ENTRY = 104
"""Bytes of one entry of a mapping, spread over the mapping's own size."""


class Frame:
    """The state of one evaluation."""

    __slots__ = ("memory_left", "scope", "strict", "work_left")

    def __init__(self, scope: Mapping[str, Value], *, strict: bool) -> None:
        self.scope = scope
        self.strict = strict
        self.work_left = LIMITS.work
        self.memory_left = LIMITS.memory

    def work(self, units: int) -> None:
        """Charge work about to be done."""
        self.work_left -= units
        if self.work_left < 0:
            _breach("too much work", "work", LIMITS.work)

    def memory(self, size: int) -> None:
        """Charge bytes about to be produced."""
        self.memory_left -= size
        if self.memory_left < 0:
            _breach("values too large", "memory", LIMITS.memory)

    def items(self, count: int) -> None:
        """Charge a walk over `count` items that makes a list of as many."""
        self.work(count + 1)
        self.memory(count * SLOT + LIST)

    def text(self, length: int, width: int = 4) -> None:
        """Charge a text of `length` characters about to be made, by a plain copy."""
        self.work(1 + (length >> 8))
        self.memory(64 + length * width)

    def like(self, text: str, times: int = 1) -> None:
        """Charge a text about as large as `text`, made character by character."""
        self.work(1 + (len(text) * times >> 4))
        self.memory(sys.getsizeof(text) * times)


def width(text: str) -> int:
    """Bytes that each character of a text takes, or more."""
    if text.isascii():
        return 1
    return min(4, max(1, (sys.getsizeof(text) - 56) // (len(text) + 1)))


def _breach(what: str, budget: str, limit: int) -> NoReturn:
    raise TemplateError(
        f"the template exceeds its budget: {what} (limit {budget} {limit:,})",
        code=TemplateError.BUDGET,
        hint="handle large data in a python or SQL task",
    )
