"""SQL with templates, compiled once and bound for every run (rules I1, K35).

The checker compiles what an author wrote; the worker binds it:

    compiled = compile_sql("SELECT * FROM t WHERE id = {{ ctx.id }}", "postgres")
    for statement in compiled.statements:
        bound = statement.bind(params, scope)      # bound.text, bound.values

Data never becomes part of a statement: it is bound, or it is an identifier in quotes. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from noetl_core.sql_pieces import Bound, Identifier, Named, Piece, Position, Raw, Text
from noetl_core.sql_scan import Dialect, Scanner, too_long
from noetl_core.templates import Template, TemplateProblems
from noetl_core.values import Value

MAX_PARAMETERS = 32_767
"""How many values one statement may bind: what the protocol of Postgres can count."""


class SqlError(Exception):
    """Parameters that do not fit their statement; the message says which."""


@dataclass(frozen=True, slots=True)
class BoundSql:
    """A statement ready for the database: `values[0]` is the parameter `$1`."""

    text: str
    values: tuple[Value, ...]
    literals: frozenset[int] = frozenset()
    """Indices of the values that stand for a quoted literal: text that takes whatever type the
    database wants in that place, as a quoted literal does."""
    parts: tuple[str | int, ...] = field(default=(), compare=False, repr=False)
    """The same text in pieces, a number for each parameter: for who must write more around it."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a command."""

    pieces: tuple[Piece, ...]

    def bind(self, params: Value, scope: Mapping[str, Value]) -> BoundSql:
        """The text and the values for one run.

        `params` was rendered already: a list binds `$1…`, a mapping binds `:name`. Raises
        `SqlError` where they do not fit, `TemplateError` where a template has no value.
        """
        return _Binding(params, scope).bind(self.pieces)

    @property
    def templates(self) -> list[Template]:
        return [template for piece in self.pieces for template in _templates(piece)]


@dataclass(frozen=True, slots=True)
class CompiledSql:
    """All statements of a command, in order."""

    statements: tuple[Statement, ...]

    @property
    def templates(self) -> list[Template]:
        return [template for statement in self.statements for template in statement.templates]


def compile_sql(command: str | Sequence[str], dialect: Dialect) -> CompiledSql:
    """A text of statements, or a list of such texts; raises `TemplateProblems`."""
    statements: list[Statement] = []
    questions = 0
    for text in [command] if isinstance(command, str) else command:
        problem = too_long(text)
        if problem:
            raise TemplateProblems((problem,))
        scanner = Scanner(text, dialect, questions)
        scanner.scan()
        if scanner.problems:
            raise TemplateProblems(tuple(sorted(scanner.problems, key=lambda one: one.offset)))
        questions = scanner.questions
        statements += [Statement(pieces) for pieces in scanner.statements]
    return CompiledSql(tuple(statements))


def _templates(piece: Piece) -> list[Template]:
    match piece:
        case Bound():
            return [piece.template]
        case Text() | Identifier():
            return [part for part in piece.parts if isinstance(part, Template)]
        case _:
            return []


@dataclass(slots=True)
class _Binding:
    """One statement while its values are put in order: parameters first, then templates."""

    params: Value
    scope: Mapping[str, Value]
    values: list[Value] = field(default_factory=list)
    literals: set[int] = field(default_factory=set)

    def bind(self, pieces: tuple[Piece, ...]) -> BoundSql:
        numbers = self._parameters(pieces)
        parts = tuple(part for piece in pieces for part in self._written(piece, numbers))
        if len(self.values) > MAX_PARAMETERS:
            message = (
                f"a statement binds at most {MAX_PARAMETERS:,} values, not {len(self.values):,}"
            )
            raise SqlError(message)
        text = "".join(part if isinstance(part, str) else f"${part}" for part in parts)
        return BoundSql(text, tuple(self.values), frozenset(self.literals), parts)

    def _parameters(self, pieces: tuple[Piece, ...]) -> dict[int | str, int]:
        """The values of `params` that this statement uses, and their numbers in it."""
        numbers: dict[int | str, int] = {}
        positions = sorted({p.number for p in pieces if isinstance(p, Position)})
        if isinstance(self.params, list):
            for number in positions:
                if not 1 <= number <= len(self.params):
                    many = f"{len(self.params)} value" + "s" * (len(self.params) != 1)
                    raise SqlError(f"`params` has {many}: there is no ${number}")
                numbers[number] = self._number(self.params[number - 1])
        elif positions and any(isinstance(p, Bound | Text) for p in pieces):
            raise SqlError(f"${positions[0]} needs `params` as a list")
        if isinstance(self.params, dict):
            for piece in pieces:
                if isinstance(piece, Named) and piece.name not in numbers:
                    if piece.name not in self.params:
                        raise SqlError(f"`params` has no `{piece.name}` for :{piece.name}")
                    numbers[piece.name] = self._number(self.params[piece.name])
            if numbers and positions:
                raise SqlError(f"${positions[0]} needs `params` as a list, not a mapping")
        return numbers

    def _number(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values)

    def _written(self, piece: Piece, numbers: dict[int | str, int]) -> tuple[str | int, ...]:
        match piece:
            case Raw():
                return (piece.text,)
            case Position():
                return (numbers.get(piece.number, piece.written),)
            case Named():
                return (numbers.get(piece.name, piece.written),)
            case Bound():
                return (self._number(piece.template.value(self.scope)),)
            case Text():
                return self._literal(piece)
            case Identifier():
                return (self._identifier(piece),)

    def _literal(self, piece: Text) -> tuple[str | int, ...]:
        parts = [p if isinstance(p, str) else p.text(self.scope) for p in piece.parts]
        number = self._number("".join(parts))
        self.literals.add(number - 1)
        return ("CAST(", number, f" AS {piece.type_name})") if piece.type_name else (number,)

    def _identifier(self, piece: Identifier) -> str:
        if len(piece.parts) == 1 and isinstance(piece.parts[0], Template):
            name = piece.parts[0].text(self.scope)
            if piece.parts[0].outer_filter == "ident" and _QUOTED.fullmatch(name):
                return name
            return quoted_identifier(name)
        names = [p if isinstance(p, str) else _unquoted(p, self.scope) for p in piece.parts]
        return quoted_identifier("".join(names))


_QUOTED = re.compile(r'"(?:[^"\0]|"")+"(?:\."(?:[^"\0]|"")+")*')
"""What the filter `ident` yields: names in quotes, with dots between them."""


def _unquoted(template: Template, scope: Mapping[str, Value]) -> str:
    text = template.text(scope)
    if template.outer_filter == "ident" and _QUOTED.fullmatch(text):
        return text[1:-1].replace('"."', ".").replace('""', '"')
    return text


def quoted_identifier(name: str) -> str:
    """A name as SQL that can be nothing but a name."""
    if not name or "\0" in name:
        raise SqlError("the name of a table or column is empty or holds a NUL character")
    return '"' + name.replace('"', '""') + '"'


__all__ = [
    "BoundSql",
    "CompiledSql",
    "Dialect",
    "SqlError",
    "Statement",
    "compile_sql",
    "quoted_identifier",
]
