"""The budgets of templates (B7).

Templates are hostile input, so everything about them is bounded: their text when they are
compiled, and their work and memory when they are evaluated. There is no clock here: work is
counted in units of roughly 100 ns, charged before it is done, so that the same template on the
same data always ends the same way.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """All the budgets of the template engine."""

    template_chars: int = 1_048_576
    """Characters in the text of one template."""

    expression_chars: int = 32_768
    """Characters between `{{` and `}}`."""

    template_tokens: int = 20_000
    """Words, numbers, texts and signs in all the expressions of one template."""

    nesting: int = 32
    """Brackets inside brackets, `else` after `else`, or signs and `not`s in a row."""

    depth: int = 100
    """Links of one chain: filters, names after dots, operators of the same strength."""

    integer_digits: int = 1_200
    """Digits of a whole number, written in a template or read from a text."""

    work: int = 2_500_000
    """Units of work in one evaluation: about one for each item or value that a filter touches, or
    for each 16 to 256 characters."""

    memory: int = 48 * 1_048_576
    """Bytes that one evaluation may produce, intermediate values included."""

    data_depth: int = 100
    """Lists in lists, or mappings in mappings, of a value that is read or written as JSON or
    compared."""

    pattern_chars: int = 1_000
    """Characters in a regular expression."""

    pattern_program: int = 2_000
    """Instructions of a compiled regular expression."""

    pattern_memory: int = 262_144
    """Bytes that the regular expression engine may use for one pattern."""

    cache_chars: int = 1_000_000
    """Characters of source whose compiled templates are kept (the least recently used go)."""


LIMITS = Limits()
"""The budgets in force."""
