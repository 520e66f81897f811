"""SQL text → pieces: what goes to the database as written, and what is bound (rules I1, K35).

Called by `sql` only. One pass over the text with bounded regular expressions. It knows as much of
SQL as is needed to see where quotes, comments and statements begin and end, and nothing of its
grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from noetl_core.sql_pieces import Bound, Identifier, Named, Piece, Position, Raw, Text
from noetl_core.templates import (
    LIMITS,
    Template,
    TemplateProblem,
    TemplateProblems,
    compile_template,
)
from noetl_core.templates.scan import Problem, expression_end, problem_at

Dialect = Literal["postgres", "duckdb"]

_MAX_PROBLEMS = 20

_NEXT = re.compile(
    r"""
    (?P<line>--[^\n]*)
    |(?P<block>/\*)
    |(?P<special>[eEbBxXnN](?=')|[uU]&(?=['"]))
    |(?P<word>[^\W\d][\w$]*)
    |(?P<digits>\d[\w.]*)
    |(?P<literal>')
    |(?P<quoted>")
    |(?P<template>\{\{)
    |(?P<comment>\{[\#%])
    |(?P<dollar>\$(?:[^\W\d]\w*)?\$)
    |(?P<position>\$\d+)
    |(?P<question>\?\d*)
    |(?P<colons>::|:=)
    |(?P<named>:[^\W\d]\w*)
    |(?P<sign>[;()\[\]{}])
    """,
    re.VERBOSE,
)
_BLOCK = re.compile(r"/\*|\*/")
_PLAIN_END = re.compile(r"'(?!')")
_INSIDE = re.compile(r"''|'|\{\{|\{[#%]")
_INSIDE_NAME = re.compile(r'""|"|\{\{|\{[#%]')
# A text that goes on after a line break keeps the escapes of its beginning.
_ESCAPED_END = re.compile(r"(?:[^'\\]|\\.|'')*'(?:\s*\n\s*'(?:[^'\\]|\\.|'')*')*", re.DOTALL)
_PLAIN_LITERAL = re.compile(r"(?:[^']|'')*'")
_PLAIN_NAME = re.compile(r'(?:[^"]|"")*"')
_OPERAND_END = re.compile(r"[\w$\"')\]}]")
_TYPED = re.compile(
    r"(?:date|time|timetz|timestamp|timestamptz|interval|json|jsonb|uuid|inet|bytea|numeric"
    r"|decimal|bool|boolean|int|integer|bigint|smallint|float4|float8|real|text|varchar|point)",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Atomic:
    """Whether the scanner stands in the body of `CREATE FUNCTION … BEGIN ATOMIC … END`."""

    words: int = 0
    creates: bool = False
    depth: int = 0

    def word(self, word: str) -> None:
        self.words += 1
        if self.words == 1:
            self.creates = word == "create"
        elif self.creates and self.words <= 4 and word in ("function", "procedure"):
            self.words = 10
        elif self.creates and self.words >= 10:
            self.depth += word == "begin" or (self.depth > 0 and word == "case")
            self.depth -= self.depth > 0 and word == "end"


@dataclass(slots=True)
class Scanner:
    """One text of SQL, read from its beginning to its end."""

    text: str
    dialect: Dialect
    questions: int = 0
    """How many `?` there were before."""
    statements: list[tuple[Piece, ...]] = field(default_factory=list)
    problems: list[TemplateProblem] = field(default_factory=list)
    _pieces: list[Piece] = field(default_factory=list)
    _from: int = 0
    """Where the SQL begins that no piece holds yet."""
    _position: int = 0
    _brackets: list[str] = field(default_factory=list)
    _atomic: _Atomic = field(default_factory=_Atomic)
    _word: tuple[int, int] = (0, 0)
    """Where the last word stands, for the type in front of a literal."""
    _has_code: bool = False
    """Whether this statement is more than blanks and comments."""

    def scan(self) -> None:
        """Fill `statements` and `problems`."""
        steps: dict[str, Callable[[re.Match[str]], None]] = {
            "line": self._skip,
            "block": self._block,
            "special": self._special,
            "word": self._on_word,
            "digits": self._code,
            "literal": self._literal,
            "quoted": self._quoted,
            "template": self._template,
            "comment": self._comment,
            "dollar": self._dollar,
            "position": self._numbered,
            "question": self._question,
            "colons": self._code,
            "named": self._named,
            "sign": self._sign,
        }
        while (found := _NEXT.search(self.text, self._position)) is not None:
            if not self._has_code and self.text[self._position : found.start()].strip():
                self._has_code = True
            start = self._position = found.end()
            steps[found.lastgroup or ""](found)
            assert self._position >= start
            if len(self.problems) >= _MAX_PROBLEMS:
                return
        self._has_code = self._has_code or bool(self.text[self._position :].strip())
        self._position = len(self.text)
        self._end_statement(self._position)

    def _skip(self, found: re.Match[str]) -> None:
        """A comment: verbatim, braces and all."""

    def _code(self, found: re.Match[str]) -> None:
        self._has_code = True

    def _block(self, found: re.Match[str]) -> None:
        depth = 1
        while depth:
            mark = _BLOCK.search(self.text, self._position)
            if mark is None:
                self._position = len(self.text)
                return
            depth += 1 if mark[0] == "/*" else -1
            self._position = mark.end()

    def _on_word(self, found: re.Match[str]) -> None:
        self._has_code = True
        self._word = found.span()
        if len(found[0]) <= 9:
            self._atomic.word(found[0].lower())
        else:
            self._atomic.word("")

    def _special(self, found: re.Match[str]) -> None:
        """A literal whose text has rules of its own: no template can stand in it."""
        self._has_code = True
        pattern = _PLAIN_LITERAL
        if found[0] in "eE":
            pattern = _ESCAPED_END
        elif self.text[found.end()] == '"':
            pattern = _PLAIN_NAME
        end = pattern.match(self.text, found.end() + 1)
        self._position = end.end() if end else len(self.text)
        shown = found[0] + self.text[found.end()] + "…" + self.text[found.end()]
        hint = "write an ordinary literal '…', or concatenate with ||"
        self._refuse_templates(found.start(), self._position, shown, hint)

    def _dollar(self, found: re.Match[str]) -> None:
        self._has_code = True
        end = self.text.find(found[0], found.end())
        self._position = len(self.text) if end < 0 else end + len(found[0])
        hint = "pass the value to the code in another way: it is text to the database, not SQL"
        shown = f"{found[0]}…{found[0]}"
        self._refuse_templates(found.end(), self._position, shown, hint)

    def _refuse_templates(self, start: int, end: int, shown: str, hint: str) -> None:
        at = self.text.find("{{", start, end)
        if at < 0:
            return
        close = self.text.find("}}", at, end)
        snippet = self.text[at : close + 2 if close >= 0 else at + 20]
        message = f"a template inside {shown} cannot be bound"
        self._problem(at, "K35.template-in-quote", message, hint, snippet)

    def _problem(self, at: int, code: str, message: str, hint: str, snippet: str) -> None:
        self.problems.append(problem_at(self.text, at, code, message, hint=hint, snippet=snippet))

    def _put(self, start: int, piece: Piece) -> None:
        """A piece in place of the text from `start` to the current position."""
        self._has_code = True
        if start > self._from:
            self._pieces.append(Raw(self.text[self._from : start]))
        self._pieces.append(piece)
        self._from = self._position

    def _end_statement(self, at: int) -> None:
        if at > self._from:
            self._pieces.append(Raw(self.text[self._from : at]))
        if self._has_code:
            self.statements.append(tuple(self._pieces))
        self._pieces, self._from = [], self._position
        self._brackets, self._atomic, self._has_code = [], _Atomic(), False

    def _sign(self, found: re.Match[str]) -> None:
        sign = found[0]
        if sign == ";":
            if not self._atomic.depth and "(" not in self._brackets:
                self._end_statement(found.start())
            return
        self._has_code = True
        if sign in "([{":
            self._brackets.append(sign)
        elif self._brackets:
            self._brackets.pop()

    def _numbered(self, found: re.Match[str]) -> None:
        self._put(found.start(), Position(int(found[0][1:10]), found[0]))

    def _question(self, found: re.Match[str]) -> None:
        self._has_code = True
        if self.dialect != "duckdb":
            return
        if len(found[0]) > 1:
            self._put(found.start(), Position(int(found[0][1:10]), found[0]))
            return
        self.questions += 1
        self._put(found.start(), Position(self.questions, "?"))

    def _named(self, found: re.Match[str]) -> None:
        self._has_code = True
        before = self.text[max(0, found.start() - 200) : found.start()]
        if self._brackets and self._brackets[-1] in "[{":
            before = before.rstrip()
        if before and _OPERAND_END.match(before[-1]):
            # `a[lo:hi]`, `{'key':value}` and `alias:value` are SQL, not parameters.
            return
        self._put(found.start(), Named(found[0][1:], found[0]))

    def _comment(self, found: re.Match[str]) -> None:
        """`{# … #}` is left out; `{% … %}` is refused by the templates themselves."""
        closing = "#}" if found[0] == "{#" else "%}"
        end = self.text.find(closing, found.end())
        self._position = len(self.text) if end < 0 else end + 2
        if self._compiled(self.text, found.start(), self._position) is not None:
            code = self._has_code
            self._put(found.start(), Raw(" "))
            self._has_code = code

    def _template(self, found: re.Match[str]) -> None:
        self._has_code = True
        start = found.start()
        try:
            self._position = expression_end(self.text, start)
        except Problem as wrong:
            self.problems.append(wrong.problem)
            self._position = max(self._position, wrong.resume)
            return
        template = self._compiled(self.text, start, self._position)
        if template is None:
            return
        if template.outer_filter == "ident":
            self._free_standing(start, '"$&')
            self._put(start, Identifier((template,)))
        else:
            self._free_standing(start, "$")
            self._put(start, Bound(template))

    def _free_standing(self, start: int, signs: str) -> None:
        """A parameter or a name that touches a word would become part of that word."""
        before, after = self.text[start - 1 : start], self.text[self._position : self._position + 1]
        if _touches(before, signs) or _touches(after, signs):
            snippet = self.text[start : self._position]
            message = "a template cannot be a part of a word of SQL"
            hint = "make the whole name in the template: {{ ('prefix_' ~ value) | ident }}"
            self._problem(start, "I1.part-of-word", message, hint, snippet)

    def _compiled(self, text: str, start: int, end: int) -> Template | None:
        try:
            return compile_template(text[start:end])
        except TemplateProblems as wrong:
            self.problems += [replace(p, offset=p.offset + start) for p in wrong.problems]
            return None

    def _literal(self, found: re.Match[str]) -> None:
        self._has_code = True
        start = found.start()
        parts = self._inside(found, _INSIDE, _PLAIN_LITERAL)
        if parts is None:
            return
        word_from, word_end = self._word
        word = self.text[word_from:word_end]
        between = self.text[word_end:start]
        if word_from >= self._from and _TYPED.fullmatch(word) and not between.strip(" \t\r\n"):
            self._put(word_from, Text(parts, word))
        else:
            self._put(start, Text(parts))

    def _quoted(self, found: re.Match[str]) -> None:
        self._has_code = True
        parts = self._inside(found, _INSIDE_NAME, _PLAIN_NAME)
        if parts is not None:
            self._put(found.start(), Identifier(parts))

    def _inside(
        self, found: re.Match[str], marks: re.Pattern[str], plain: re.Pattern[str]
    ) -> tuple[str | Template, ...] | None:
        """The parts of a quoted text with templates in it; None where there is none.

        A quote inside the braces may be written once (`'{{ x | default('a') }}'`) or doubled, as
        SQL wants it.
        """
        start = found.end()
        once = _Quoted(self.text, start, marks)
        if once.read():
            self._position = once.position
            return once.parts()
        whole = plain.match(self.text, start)
        if whole is None and not once.problems:
            self._position = len(self.text)
            if once.parts() is not None:
                quote = self.text[start - 1]
                snippet = self.text[start - 1 : start + 20]
                message = f"the text in {quote} has no end"
                self._problem(start - 1, "I1.open-quote", message, f"add {quote}", snippet)
            return None
        if whole is not None:
            quote = self.text[start - 1]
            undone = self.text[start : whole.end() - 1].replace(quote * 2, quote)
            doubled = _Quoted(undone + quote, 0, marks, single=True)
            if quote * 2 in whole[0] and doubled.read() and doubled.position == len(undone) + 1:
                self._position = whole.end()
                return doubled.parts()
        self._position = whole.end() if whole else len(self.text)
        self.problems += once.problems
        return None


def _touches(character: str, signs: str) -> bool:
    return bool(character) and (character.isalnum() or character == "_" or character in signs)


@dataclass(slots=True)
class _Quoted:
    """The inside of one quoted text."""

    text: str
    position: int
    marks: re.Pattern[str]
    single: bool = False
    """Quotes are undoubled already: only the last one ends the text."""
    problems: list[TemplateProblem] = field(default_factory=list)
    _parts: list[str | Template] = field(default_factory=list)

    def read(self) -> bool:
        """Go to the end; False where it has none or a template in it is wrong."""
        last = len(self.text) - 1
        while (found := self.marks.search(self.text, self.position)) is not None:
            if found.start() > self.position:
                self._parts.append(self.text[self.position : found.start()])
            self.position = found.end()
            mark = found[0]
            if mark[0] == "{":
                if not self._template(found.start()):
                    return False
            elif self.single and found.start() < last:
                self._parts.append(mark if found.end() <= last else mark[0])
                self.position = min(found.end(), last)
            elif len(mark) == 2:
                self._parts.append(mark[0])
            else:
                return True
        return False

    def _template(self, start: int) -> bool:
        try:
            if self.text.startswith("{{", start):
                end = expression_end(self.text, start)
            else:
                closing = "#}" if self.text[start + 1] == "#" else "%}"
                found = self.text.find(closing, start + 2)
                end = len(self.text) if found < 0 else found + 2
            template = compile_template(self.text[start:end])
        except Problem as wrong:
            self.problems.append(wrong.problem)
            return False
        except TemplateProblems as wrong:
            self.problems += [replace(p, offset=p.offset + start) for p in wrong.problems]
            return False
        if not template.is_constant:
            self._parts.append(template)
        else:
            self._parts.append(template.source if "{#" not in template.source else "")
        self.position = end
        return True

    def parts(self) -> tuple[str | Template, ...] | None:
        """What it consists of, or None where nothing in it is a template."""
        if all(isinstance(part, str) for part in self._parts):
            return None
        return tuple(self._parts)


def too_long(text: str) -> TemplateProblem | None:
    """SQL is a template, and no template is longer than that (rule B7)."""
    if len(text) <= LIMITS.template_chars:
        return None
    message = f"the text is longer than {LIMITS.template_chars:,} characters"
    return problem_at(text, 0, "B7.size", message)
