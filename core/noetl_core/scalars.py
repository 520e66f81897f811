"""What a plain YAML scalar means: what it means to Kubernetes (YAML 1.1 as its API reads it).

Called by `source` for every unquoted value. Where people and YAML 1.1 disagree (`yes`, `010`) the
value comes with a warning text. Dates stay text.
"""

from __future__ import annotations

import math
import re

Scalar = None | bool | int | float | str

_WORDS: dict[str, Scalar] = {"": None, "~": None}
_WORDS |= dict.fromkeys(("null", "Null", "NULL"))
_WORDS |= dict.fromkeys(("true", "True", "TRUE"), True)
_WORDS |= dict.fromkeys(("false", "False", "FALSE"), False)

_SURPRISES: dict[str, bool] = {}
_SURPRISES |= dict.fromkeys(("yes", "Yes", "YES", "on", "On", "ON"), True)
_SURPRISES |= dict.fromkeys(("no", "No", "NO", "off", "Off", "OFF"), False)

LETTERS = frozenset("yYnN")
"""Text here, as authors of `x: 1, y: 2` expect; booleans to `kubectl apply`, so that they are
worth a warning in a file that is meant for it."""

_INTEGER = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_SPECIAL_FLOAT = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_FIRST_OF_NUMBERS = frozenset("+-.0123456789")


_MORE_THAN_TEXT = frozenset({*_WORDS, *_SURPRISES, *LETTERS})


class BadScalar(ValueError):
    """A plain scalar that has no JSON value; the text says which and what to do."""


def may_be_more_than_text(text: str) -> bool:
    """A quick look, since most scalars are words: whether `resolve` must be asked."""
    return text in _MORE_THAN_TEXT or text[0] in _FIRST_OF_NUMBERS


def resolve(text: str) -> tuple[Scalar, str | None]:
    """The value of a plain scalar, and a warning where it may surprise its author."""
    if text in _WORDS:
        return _WORDS[text], None
    if text in _SURPRISES:
        value = _SURPRISES[text]
        meaning = "true" if value else "false"
        return value, f"plain `{text}` is the boolean {meaning} in YAML as Kubernetes reads it"
    if text[0] in _FIRST_OF_NUMBERS:
        return _number(text)
    return text, None


def _number(text: str) -> tuple[Scalar, str | None]:
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if len(text) <= 400 and _FLOAT.fullmatch(text):
        value = float(text)
        if math.isinf(value):
            raise BadScalar(
                f"the number {text[:40]} is too large; write it in quotes to keep it as text"
            )
        return value, None
    if _SPECIAL_FLOAT.fullmatch(text):
        raise BadScalar(f"{text} has no value in JSON; write it in quotes to keep it as text")
    return text, None


def _integer(text: str) -> tuple[Scalar, str | None]:
    digits = text.replace("_", "").lstrip("+-")
    if len(digits) > 80:
        raise BadScalar(f"the number {text[:40]}… needs more than 64 bits; write it in quotes")
    if digits in ("0x", "0b", "0o"):
        return text, None
    sign = -1 if text[0] == "-" else 1
    warning = None
    if len(digits) > 1 and digits[0] == "0" and digits[1] not in "bx":
        value = sign * int(digits.replace("o", ""), 8)
        warning = f"`{text}` is an octal number and means {value}"
    else:
        value = sign * int(digits, 0)
    if not -(2**63) <= value < 2**63:
        raise BadScalar(f"the number {text[:40]} needs more than 64 bits; write it in quotes")
    return value, warning
