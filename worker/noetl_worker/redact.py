"""Secrets are masked in everything that leaves the worker (rules G3, K32, K45).

One `Redactor` per step-run knows the secret values and masks them, however encoded or wrapped, in
texts, JSON and facts. Nearly everything it sees holds no secret, so the common path is one look
with an automaton; only a text that looks suspicious is taken apart.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Protocol, TypeVar, cast

import re2

from noetl_core.values import Value
from noetl_worker.needles import (
    MIN_CHARS,
    AllBeginnings,
    Beginnings,
    Needle,
    literal_forms,
    parts,
    plain_forms,
    tight_forms,
)
from noetl_worker.plain import plain, tight, tightened, traced

MASK = "***"
HEAD_CHARS = 24
"""How much of a form the first look compares: keeps the automaton small for long secrets."""
AUTOMATON_BYTES = 64 * 1024 * 1024
ROUNDS = 8
"""Masking is repeated while something is found: a mask next to asterisks may look secret again."""
_NUMBER = re.compile(r"[0-9.eE+-]+")

R = TypeVar("R")


class _Automaton(Protocol):
    def search(self, text: str) -> object | None: ...


class Redactor:
    """Masks the secrets it knows; more can be added at any time."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: set[str] = set()
        self._literal: list[str] = []
        self._needles: list[Needle] = []
        self._tight: list[str] = []
        self._first_look: _Automaton | None = None
        self._second_look: _Automaton | None = None
        self._numbers = False
        self.add(secrets)

    def __repr__(self) -> str:
        return f"Redactor({len(self._known)} secrets)"

    def add(self, secrets: Iterable[str]) -> None:
        """Mask these values as well from now on."""
        new = {value for value in secrets if len(value) >= MIN_CHARS} - self._known
        if not new:
            return
        self._known |= new
        self.__dict__.pop("beginnings", None)
        forms = {part for value in self._known for part in parts(value)}
        literal = {form for part in forms for form in literal_forms(part)}
        needles = {needle for part in forms for needle in plain_forms(part)}
        self._literal = sorted(literal, key=len, reverse=True)
        self._needles = sorted(needles, key=lambda needle: len(needle.text), reverse=True)
        self._tight = sorted({form for part in forms for form in tight_forms(part)})
        self._first_look = _automaton(self._literal)
        self._second_look = _automaton([needle.text for needle in self._needles])
        self._numbers = any(_NUMBER.fullmatch(form) for form in forms)

    @property
    def is_idle(self) -> bool:
        """There is nothing to mask."""
        return not self._known

    @functools.cached_property
    def beginnings(self) -> AllBeginnings:
        """For whoever sees a text in pieces."""
        return AllBeginnings(
            Beginnings(self._literal),
            Beginnings(needle.text for needle in self._needles),
            Beginnings(self._tight),
        )

    @property
    def tight(self) -> list[str]:
        """What is sought where blanks do not count."""
        return self._tight

    @property
    def longest(self) -> int:
        """The length of the longest form of a secret."""
        return max((len(needle.text) for needle in self._needles[:1]), default=0)

    def text(self, text: str) -> str:
        """The text without secrets; itself where it holds none."""
        for _ in range(ROUNDS):
            if not self._is_suspicious(text):
                return text
            found = self.spans(text)
            if not found:
                return text
            text = _masked(text, found)
        return MASK

    def content(self, content: bytes) -> bytes:
        """Stored content without secrets, be it text or not."""
        if self.is_idle:
            return content
        text = content.decode("utf-8", "surrogateescape")
        masked = self.text(text)
        return content if masked is text else masked.encode("utf-8", "surrogateescape")

    def value(self, value: Value) -> Value:
        """JSON without secrets, in values and in keys; itself where it holds none."""
        if self.is_idle or not self._is_suspicious("\0".join(self._texts_in(value))):
            return value
        try:
            return self._value(value)
        except RecursionError:
            return MASK

    def record(self, record: R) -> R:
        """A dataclass (an outcome, a fact, an error) without secrets in any of its fields."""
        if self.is_idle or not self._is_suspicious("\0".join(self._texts_in(record))):
            return record
        changed = {}
        for field in dataclasses.fields(record):  # type: ignore[arg-type]  # any dataclass
            old = getattr(record, field.name)
            new = self._field(old)
            if new is not old:
                changed[field.name] = new
        if not changed:
            return record
        return dataclasses.replace(record, **changed)  # type: ignore[type-var]  # any dataclass

    def _field(self, value: object) -> object:
        if value is None or isinstance(value, bool | Enum):
            return value
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self.record(value)
        if isinstance(value, tuple):
            items = [self._field(item) for item in value]
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else tuple(items)
        if isinstance(value, Mapping):
            return self.value(cast("Value", value if isinstance(value, dict) else dict(value)))
        return self.value(cast("Value", value))

    def _texts_in(self, value: object) -> list[str]:
        texts: list[str] = []
        left: list[object] = [value]
        while left:
            one = left.pop()
            if isinstance(one, str):
                texts.append(one)
            elif isinstance(one, Mapping):
                texts.extend(one)
                left.extend(one.values())
            elif isinstance(one, list | tuple):
                left.extend(one)
            elif self._numbers and isinstance(one, int | float):
                texts.append(repr(one))
            elif dataclasses.is_dataclass(one) and not isinstance(one, type):
                left.extend(getattr(one, name) for name in _fields(type(one)))
        return texts

    def _value(self, value: Value) -> Value:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(one) for one in value]
        if isinstance(value, dict):
            masked: dict[str, Value] = {}
            for key, one in value.items():
                masked[_unused(self.text(key), masked)] = self._value(one)
            return masked
        if self._numbers and isinstance(value, int | float) and self.spans(repr(value)):
            return MASK
        return value

    def _is_suspicious(self, text: str) -> bool:
        first, second = self._first_look, self._second_look
        if first is None or second is None:
            return not self.is_idle
        try:
            if first.search(text) is not None or second.search(plain(text)) is not None:
                return True
        except UnicodeEncodeError:
            # Lone surrogates: the automaton takes none, the closer look does.
            return True
        return bool(self._tight) and self._has_words(tight(text))

    def _has_words(self, text: str) -> bool:
        return any(form in text for form in self._tight)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where secrets stand in a text, in order and apart."""
        found = [span for form in self._literal for span in _places(text, form)]
        way = traced(text)
        for needle in self._needles:
            for start, end in _places(way.text, needle.text):
                found.append(way.span(*_with_edges(way.text, start, end, needle)))
        if self._tight:
            way = tightened(way)
            found += [way.span(*at) for form in self._tight for at in _places(way.text, form)]
        return _joined(found)


@functools.cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _automaton(forms: list[str]) -> _Automaton | None:
    """One pattern that finds the head of any form; None where it would grow too large."""
    options = re2.Options()
    options.max_mem = AUTOMATON_BYTES
    options.log_errors = False
    heads = {form[:HEAD_CHARS] for form in forms}
    try:
        return cast("_Automaton", re2.compile("|".join(map(re2.escape, sorted(heads))), options))
    except (re2.error, UnicodeEncodeError):
        return None


def _places(text: str, form: str) -> Iterable[tuple[int, int]]:
    at = text.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = text.find(form, at + 1)


def _with_edges(text: str, start: int, end: int, needle: Needle) -> tuple[int, int]:
    """Base64: also the characters that hold some bits of the secret, and the padding."""
    if needle.before and start and _is_base64(text[start - 1]):
        start -= 1
    if needle.after and end < len(text) and _is_base64(text[end]):
        end += 1
        while end < len(text) and text[end] == "=":
            end += 1
    return start, end


def _is_base64(char: str) -> bool:
    return char == "/" or (char.isascii() and char.isalnum())


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _masked(text: str, spans: list[tuple[int, int]]) -> str:
    pieces, at = list[str](), 0
    for start, end in spans:
        pieces += [text[at:start], MASK]
        at = end
    return "".join([*pieces, text[at:]])


def _unused(key: str, taken: Mapping[str, Value]) -> str:
    """Keys that look alike once they are masked stay apart."""
    number, name = 2, key
    while name in taken:
        name, number = f"{key} ({number})", number + 1
    return name
