"""What `-h` prints: usage, what the command does, examples, arguments and options.

Written here and not by typer's rich panels, whose import alone costs more than the whole program
may take.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from noetl_cli.terminal import Style, columns, style_for

Rows = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its rows of (name, text)."""

    title: str
    rows: Rows


@dataclass(frozen=True, slots=True)
class Page:
    """One command's help."""

    usage: str
    text: str
    examples: Sequence[str]
    sections: Sequence[Section]
    footer: str = ""

    def render(self) -> str:
        """The page for the terminal at hand."""
        style, wide = style_for(sys.stdout), min(columns(), 110)
        lines = [style("Usage: ", "bold") + self.usage, ""]
        lines += [*_paragraphs(self.text, wide), ""]
        if self.examples:
            title = "Example:" if len(self.examples) == 1 else "Examples:"
            lines += [style(title, "bold"), *(f"  {e}" for e in self.examples), ""]
        names = [name for section in self.sections for name, _ in section.rows]
        left = min(max((len(name) for name in names), default=0), 30)
        for section in self.sections:
            if section.rows:
                lines += [
                    style(f"{section.title}:", "bold"),
                    *_rows(section.rows, left, wide, style),
                ]
                lines.append("")
        if self.footer:
            lines += [self.footer, ""]
        return "\n".join(lines).rstrip() + "\n"


def _paragraphs(text: str, wide: int) -> Iterable[str]:
    for index, paragraph in enumerate(text.strip().split("\n\n")):
        if index:
            yield ""
        yield from textwrap.wrap(" ".join(paragraph.split()), wide)


def _rows(rows: Rows, left: int, wide: int, style: Style) -> Iterable[str]:
    for name, text in rows:
        wrapped = textwrap.wrap(text, max(20, wide - left - 6)) or [""]
        if len(name) > left:
            yield "  " + style(name, "cyan")
        else:
            yield (
                "  " + style(name, "cyan") + " " * (left - len(name) + 2) + wrapped.pop(0)
            ).rstrip()
        for line in wrapped:
            yield " " * (left + 4) + line
