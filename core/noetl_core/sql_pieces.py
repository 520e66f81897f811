"""What a statement of SQL consists of: text as written, and what is bound in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from noetl_core.templates import Template


@dataclass(frozen=True, slots=True)
class Raw:
    """SQL as written."""

    text: str


@dataclass(frozen=True, slots=True)
class Position:
    """`$1`, or a `?`: the parameter of that number, from 1."""

    number: int
    written: str


@dataclass(frozen=True, slots=True)
class Named:
    """`:name`: a parameter where `params` is a mapping, else part of the SQL."""

    name: str
    written: str


@dataclass(frozen=True, slots=True)
class Bound:
    """A `{{ … }}` outside quotes: one parameter of any type."""

    template: Template


@dataclass(frozen=True, slots=True)
class Text:
    """A quoted literal with `{{ … }}` in it: one text parameter."""

    parts: tuple[str | Template, ...]
    type_name: str = ""
    """The type in front of a literal such as `interval '{{ n }} days'`."""


@dataclass(frozen=True, slots=True)
class Identifier:
    """A name made from data: `{{ … | ident }}`, or `"…{{ … }}…"`."""

    parts: tuple[str | Template, ...]


Piece: TypeAlias = Raw | Position | Named | Bound | Text | Identifier
