"""From tokens to a tree: Jinja's grammar, and nothing else of Jinja.

Jinja's parser is fed with our tokens and gives the tree of one expression. Nothing is ever
compiled to Python by Jinja, and none of its filters, tests or globals exists here. The `lineno`
of every node is its place in the template, since that is what our tokens carry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import Environment, TemplateSyntaxError, nodes
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser

from noetl_core.templates.scan import Expression, Problem, problem_at

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENVIRONMENT = Environment(autoescape=False)
_RESERVED = frozenset(("and", "else", "if", "in", "is", "not", "or"))
_PLAIN = frozenset(("name", "dot"))

Node = nodes.Expr


def parse(text: str, expression: Expression) -> Node:
    """The tree of one expression of the template `text`."""
    tokens = expression.tokens
    if not tokens:
        raise _problem(text, expression, expression.start, "the expression is empty")
    path = _plain_path(tokens)
    if path is not None:
        return path
    parser = Parser(_ENVIRONMENT, "")
    parser.stream = TokenStream(_ended(tokens), None, None)
    try:
        node = parser.parse_tuple(with_condexpr=True)
        parser.stream.expect("variable_end")
    except TemplateSyntaxError as error:
        raise _problem(text, expression, error.lineno, _words(error.message)) from None
    except RecursionError:
        raise _problem(text, expression, expression.start, "the expression is too deep") from None
    return node


def _plain_path(tokens: tuple[Token, ...]) -> Node | None:
    """Names and dots in turn (`ctx.user.name`), the most common expression by far."""
    if len(tokens) % 2 == 0 or any(token.type not in _PLAIN for token in tokens):
        return None
    place, kind, name = tokens[0]
    if kind != "name" or name in _LITERALS or name in _RESERVED:
        return None
    node: Node = nodes.Name(name, "load", lineno=place)
    for dot, word in zip(tokens[1::2], tokens[2::2], strict=True):
        if dot.type != "dot" or word.type != "name":
            return None
        node = nodes.Getattr(node, word.value, "load", lineno=dot.lineno)
    return node


_LITERALS = frozenset(("true", "false", "none", "True", "False", "None"))


def _ended(tokens: tuple[Token, ...]) -> Iterator[Token]:
    yield from tokens
    yield Token(tokens[-1].lineno, "variable_end", "}}")


def _problem(text: str, expression: Expression, place: int, message: str) -> Problem:
    end = expression.start + len(expression.source)
    return Problem(problem_at(text, place, "B6.syntax", message, snippet=expression.source), end)


def _words(message: str | None) -> str:
    """Jinja's message, in the words of an author who knows no Jinja."""
    return (message or "not an expression").replace("end of print statement", "}}")


def outer_filter(node: Node) -> str | None:
    """The filter that is applied last, if the whole expression is one filter's result."""
    return node.name if isinstance(node, nodes.Filter) else None
