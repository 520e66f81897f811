"""From text to parts: plain text, and the tokens of each expression.

`split` finds the `{{ … }}`, `{# … #}` and `{% … %}` of a text; `tokenize` reads one expression.
Tokens carry their place in the template, so that every problem can show the words to blame. All
of it is one pass with bounded regular expressions of our own, whatever the text holds.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple, TypeAlias

from jinja2.lexer import Token, operators

from noetl_core.templates.errors import TemplateProblem
from noetl_core.templates.limits import LIMITS
from noetl_core.values import is_storable_integer

_OPENING = re.compile(r"\{[{%#]")
_TOKEN = re.compile(
    r"\s*(?:"
    r"(?P<name>[^\W\d]\w*)"
    r"|(?P<float>\d[\d_]*\.\d[\d_]*(?:[eE][+-]?\d+)?|\d[\d_]*[eE][+-]?\d+)"
    r"|(?P<integer>0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|\d[\d_]*)"
    r"|(?P<string>'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\")"
    r"|(?P<close>-?\}\})"
    r"|(?P<sign>//|\*\*|==|!=|>=|<=|[-+/*%~\[\](){}<>=.:|,;])"
    r")",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "\n": ""}
_BLANK = re.compile(r"\s*")

MAX_PROBLEMS = 20
"""How many problems of one template are worth reporting."""


class Expression(NamedTuple):
    """One `{{ … }}`: where it stands and what it consists of."""

    start: int
    """Where its `{{` stands in the template."""
    source: str
    """As written, braces included."""
    tokens: tuple[Token, ...]
    """Each token's `lineno` is its place (in characters) in the template."""


Part: TypeAlias = "str | Expression"


class Problem(Exception):
    """Ends the reading of one expression or of the text; carried to the caller as data."""

    def __init__(self, problem: TemplateProblem, resume: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.resume = resume


def problem_at(
    text: str, offset: int, code: str, message: str, *, hint: str = "", snippet: str = ""
) -> TemplateProblem:
    line = text.count("\n", 0, offset) + 1
    return TemplateProblem(code, message, hint, _shorten(snippet), line, offset)


def split(text: str) -> tuple[list[Part], list[TemplateProblem]]:
    """The parts of a template in order, and what is wrong with its braces and tokens."""
    parts: list[Part] = []
    problems: list[TemplateProblem] = []
    position = tokens = 0
    strip = False
    while True:
        opening = _OPENING.search(text, position)
        data = text[position : opening.start()] if opening else text[position:]
        if opening and text.startswith("-", opening.end()):
            data = data.rstrip()
        data = data.lstrip() if strip else data
        if data:
            parts.append(data)
        if opening is None:
            return parts, problems
        try:
            if opening[0] == "{{":
                expression, position = tokenize(
                    text, opening.start(), LIMITS.template_tokens - tokens
                )
                tokens += len(expression.tokens)
                parts.append(expression)
            else:
                position = _skip(text, opening.start())
            strip = text.startswith("-", position - 3)
        except Problem as found:
            problems.append(found.problem)
            position, strip = found.resume, False
            if len(problems) == MAX_PROBLEMS:
                return parts, problems


def _skip(text: str, start: int) -> int:
    """The end of a comment; a statement is refused."""
    comment = text[start + 1] == "#"
    end = text.find("#}" if comment else "%}", start + 2)
    resume = len(text) if end < 0 else end + 2
    if not comment:
        message = "statements such as {% if %} and {% for %} are not part of the language"
        hint = "write an expression: {{ a if condition else b }}, or a filter such as map or select"
        snippet = text[start:resume]
        code = "B6.statement"
    elif end < 0:
        code, message, hint, snippet = "B6.syntax", "the comment {# has no end", "add #}", "{#"
    else:
        return resume
    raise Problem(problem_at(text, start, code, message, hint=hint, snippet=snippet), resume)


def expression_end(text: str, start: int) -> int:
    """Where the expression that opens at `start` ends (after its braces)."""
    return tokenize(text, start, LIMITS.template_tokens)[1]


def tokenize(text: str, start: int, budget: int) -> tuple[Expression, int]:
    """Read the expression whose `{{` stands at `start`; also gives its end."""
    position = start + 3 if text.startswith("-", start + 2) else start + 2
    limit = start + LIMITS.expression_chars
    tokens: list[Token] = []
    brackets: list[str] = []
    prefixes = branches = 0
    match = _TOKEN.match
    while True:
        found = match(text, position)
        if found is None:
            raise _unreadable(text, start, position)
        kind = found.lastgroup
        place = found.start(kind or 0)
        position = found.end()
        if kind == "close":
            if not brackets:
                break
            # Inside brackets the first brace closes a mapping: `{{ {'a': {'b': 1}} }}`.
            position = place + 1
            if text[place] == "-":
                kind = "sign"
        value = text[place:position]
        if kind == "name":
            prefixes = prefixes + 1 if value == "not" else 0
            branches += value == "else"
            tokens.append(Token(place, "name", value))
        elif kind == "sign" or kind == "close":
            prefixes = prefixes + 1 if value in "+-" else 0
            _balance(text, start, place, value, brackets)
            tokens.append(Token(place, operators[value], value))
        else:
            prefixes = 0
            tokens.append(_literal(text, start, place, kind or "", value))
        if (
            position > limit
            or len(tokens) > budget
            or len(brackets) + prefixes + branches > LIMITS.nesting
        ):
            raise _too_large(text, start, position > limit, len(tokens) > budget)
    return Expression(start, text[start:position], tuple(tokens)), position


def _balance(text: str, start: int, place: int, sign: str, brackets: list[str]) -> None:
    if sign in "([{":
        brackets.append(sign)
    elif sign in ")]}" and (not brackets or brackets.pop() + sign not in ("()", "[]", "{}")):
        raise _broken(text, start, place, f"`{sign}` closes nothing", sign)


def _literal(text: str, start: int, place: int, kind: str, written: str) -> Token:
    """A number or text; the parser takes its Python value as it is."""
    value: object
    if kind == "string":
        value = _unescape(text, start, place, written)
    elif len(written) > LIMITS.integer_digits:
        raise _broken(text, start, place, "the number has too many digits", written, "B7.size")
    elif kind == "float":
        value = float(written.replace("_", ""))
        if math.isinf(value):
            raise _broken(text, start, place, "the number is too large", written)
    else:
        digits = written.replace("_", "")
        number = int(digits, 10) if digits.isdecimal() else int(digits, 0)
        if not is_storable_integer(number):
            message = "the number needs more than 64 bits"
            raise _broken(text, start, place, message, written, "B7.size")
        value = number
    # Jinja's own lexer does the same: tokens of literals carry values, whatever the annotation.
    return Token(place, kind, value)  # type: ignore[arg-type]


def _unescape(text: str, start: int, place: int, written: str) -> str:
    body = written[1:-1]
    if "\\" not in body:
        return body

    def character(found: re.Match[str]) -> str:
        code = found[1] or found[2] or found[3]
        if code is None:
            letter = found[4]
            return _LETTERS.get(letter, letter if letter in "\\'\"/" else "\\" + letter)
        number = int(code, 16)
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            raise _broken(text, start, place, f"`{found[0]}` is not a character", written)
        return chr(number)

    return _ESCAPE.sub(character, body)


def _unreadable(text: str, start: int, position: int) -> Problem:
    place = _BLANK.match(text, position).end()  # type: ignore[union-attr]  # always matches
    if place >= len(text):
        return _broken(text, start, place, "the expression has no end", text[start:], hint="add }}")
    if text[place] in "'\"":
        return _broken(text, start, place, "the text in quotes has no end", text[place:])
    sign = text[place]
    hint = {"&": "write `and`", "!": "write `not`", "?": "write `a if condition else b`"}
    message = f"`{sign}` is not part of an expression"
    return _broken(text, start, place, message, text[place : place + 20], hint=hint.get(sign, ""))


def _too_large(text: str, start: int, long: bool, many: bool) -> Problem:
    if long:
        message = f"the expression is longer than {LIMITS.expression_chars:,} characters"
    elif many:
        message = f"the template has more than {LIMITS.template_tokens:,} words and signs"
    else:
        message = f"the expression nests deeper than {LIMITS.nesting} levels"
    return _broken(text, start, start, message, text[start : start + 40], "B7.size")


def _broken(
    text: str,
    start: int,
    place: int,
    message: str,
    snippet: str,
    code: str = "B6.syntax",
    hint: str = "",
) -> Problem:
    """A problem that ends this expression; reading goes on after its braces, if it has any."""
    problem = problem_at(text, place, code, message, hint=hint, snippet=snippet)
    end = text.find("}}", start)
    return Problem(problem, len(text) if end < 0 else end + 2)


def _shorten(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
