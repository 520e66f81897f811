"""Problems of playbooks for people: each with its code, place, line, caret and cure.

`check` prints these as its result; `convert`, `graph` and later `run` print them when a playbook is
invalid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from noetl_cli.files import SourceFile
from noetl_cli.snippets import Lines, excerpt
from noetl_cli.terminal import Style, columns, printable, printable_lines
from noetl_core.problems import Problem, Severity

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow"}


def render(file: SourceFile, problems: Sequence[Problem], style: Style) -> Iterable[str]:
    """Every problem of one file, in the order of its lines."""
    lines = Lines.of(file.data) if problems else Lines(())
    for problem in sorted(problems, key=lambda p: (p.line, p.column)):
        yield from _problem(file, problem, lines, style)
        yield ""


def _problem(file: SourceFile, problem: Problem, lines: Lines, style: Style) -> Iterable[str]:
    colour = _COLOURS[problem.severity]
    title = style(f"{problem.severity.value}[{printable(problem.code)}]", "bold", colour)
    first, *more = printable_lines(problem.message)
    yield f"{title}: {style(first, 'bold')}"
    yield from (f"  {line}" for line in more)
    where = f"{printable(file.label)}:{problem.line}:{problem.column}"
    path = f"  ({printable(problem.path)})" if problem.path else ""
    gutter = " " * len(str(problem.line))
    yield f"{gutter}{style('-->', 'blue')} {where}{style(path, 'dim')}"
    yield from excerpt(lines, problem.line, problem.column, columns(), style, colour)
    if problem.hint:
        yield from _hint(problem.hint, gutter, style)


def _hint(hint: str, gutter: str, style: Style) -> Iterable[str]:
    first, *more = printable_lines(hint.rstrip("\n"))
    mark = style("=", "blue")
    yield f"{gutter} {mark} {style('hint:', 'bold', 'cyan')} {first}".rstrip()
    yield from (f"{gutter}   {line}".rstrip() for line in more)


def counts(problems: Iterable[Problem]) -> str:
    """`2 errors, 1 warning`."""
    found = [problem.severity for problem in problems]
    errors, warnings = found.count(Severity.ERROR), found.count(Severity.WARNING)
    parts = [plural(errors, "error")] if errors else []
    if warnings:
        parts.append(plural(warnings, "warning"))
    return ", ".join(parts) or "no problems"


def plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
