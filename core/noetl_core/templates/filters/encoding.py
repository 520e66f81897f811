"""Filters that write and read other forms of data: JSON, base64, URLs, hashes, SQL names."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac as hmac_module
import json
import re
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote, unquote_to_bytes

from noetl_core.templates.data import json_text, text_of
from noetl_core.templates.errors import TemplateError
from noetl_core.templates.filters.common import encoded
from noetl_core.templates.limits import LIMITS
from noetl_core.templates.registry import filters
from noetl_core.values import is_storable_integer, type_name

if TYPE_CHECKING:
    from noetl_core.templates.frame import Frame
    from noetl_core.values import Value

GROUP = "Encoding"

MAX_INDENT = 16
MAX_IDENT = 63
"""Bytes of the longest name that PostgreSQL keeps whole."""

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]', re.DOTALL)
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""What may be half of a surrogate pair, as JSON writes it."""
_HASHES = ("md5", "sha1", "sha256", "sha512")


@filters(
    GROUP,
    ("{'a': [1, none, true]} | tojson", '{"a": [1, null, true]}'),
    ("[1] | tojson(indent=2)", "[\n  1\n]"),
    aliases=("to_json",),
)
def tojson(frame: Frame, value: Value, indent: int | None = None) -> str:
    """The value as JSON text."""
    if indent is not None and not 0 <= indent <= MAX_INDENT:
        message = f"indent of tojson is from 0 to {MAX_INDENT}"
        raise TemplateError(message, code=TemplateError.VALUE)
    return json_text(frame, value, indent)


@filters(
    GROUP,
    ("'{\"a\": [1, null]}' | fromjson", {"a": [1, None]}),
    aliases=("from_json",),
)
def fromjson(frame: Frame, value: str) -> Value:
    """The value that a JSON text holds."""
    frame.work(len(value) >> 2)
    _charge_json(frame, value)
    try:
        # The depth is known to be bounded, so the parser cannot exhaust Python's stack.
        parsed: Value = json.loads(value, parse_int=_integer, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        raise TemplateError(f"not JSON: {error}", code=TemplateError.VALUE) from None
    if _HALF.search(value):
        _check_characters(parsed)
    return parsed


def _check_characters(value: Value) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        message = "the JSON holds half of a surrogate pair, which is no character"
        raise TemplateError(message, code=TemplateError.VALUE) from None


def _charge_json(frame: Frame, text: str) -> None:
    """Bound the depth and charge the values of a JSON text before any of them exists."""
    depth = 0
    frame.memory(len(text) * 4)
    for found in _BRACKETS.finditer(text):
        sign = found[0]
        frame.work(4)
        frame.memory(150)
        if sign in ("[", "{"):
            depth += 1
            if depth > LIMITS.data_depth:
                message = f"the JSON is nested deeper than {LIMITS.data_depth} levels"
                raise TemplateError(message, code=TemplateError.BUDGET)
        elif sign in ("]", "}"):
            depth -= 1


def _integer(digits: str) -> int:
    if len(digits) > LIMITS.integer_digits:
        raise TemplateError("a number has too many digits", code=TemplateError.BUDGET)
    number = int(digits)
    if not is_storable_integer(number):
        message = f"the number {digits[:40]} needs more than 64 bits"
        raise TemplateError(message, code=TemplateError.VALUE)
    return number


def _constant(word: str) -> NoReturn:
    raise TemplateError(f"not JSON: {word}", code=TemplateError.VALUE)


@filters(GROUP, ("'héllo' | b64encode", "aMOpbGxv"), aliases=("to_base64",))
def b64encode(frame: Frame, value: str) -> str:
    """The text (as UTF-8) in base64."""
    return base64.b64encode(encoded(frame, value)).decode()


@filters(GROUP, ("'aMOpbGxv' | b64decode", "héllo"), aliases=("from_base64",))
def b64decode(frame: Frame, value: str) -> str:
    """The text that base64 stands for; the URL-safe alphabet and missing `=` are understood."""
    data = encoded(frame, value).translate(None, b" \r\n\t").rstrip(b"=")
    frame.memory(len(data) * 4)
    data = data.replace(b"-", b"+").replace(b"_", b"/")
    try:
        return base64.b64decode(data + b"=" * (-len(data) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        raise TemplateError("not base64 of a text", code=TemplateError.VALUE) from None


@filters(
    GROUP,
    ("'a b/c?d' | urlencode", "a%20b/c%3Fd"),
    ("{'q': 'a b', 'n': 2} | urlencode", "q=a+b&n=2"),
)
def urlencode(frame: Frame, value: Value) -> str:
    """A text quoted for a URL (`/` stays), or a mapping or list of pairs as a query."""
    if isinstance(value, dict):
        frame.items(len(value) * 8)
        pairs: list[Value] = [[key, one] for key, one in value.items()]
    elif isinstance(value, list):
        pairs = value
    else:
        return _quoted(frame, value, safe="/")
    written = []
    frame.items(len(pairs) * 8)
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise TemplateError(f"urlencode takes pairs, not {type_name(pair)}")
        name, one = (_quoted(frame, part, safe="").replace("%20", "+") for part in pair)
        written.append(f"{name}={one}")
    return "&".join(written)


def _quoted(frame: Frame, value: Value, safe: str) -> str:
    data = encoded(frame, text_of(frame, value))
    frame.work(len(data) >> 1)
    frame.memory(len(data) * 40)
    return quote(data, safe)


@filters(GROUP, ("'a%20b+c' | urldecode", "a b c"))
def urldecode(frame: Frame, value: str) -> str:
    """The text that a quoted one stands for; `+` is a blank."""
    data = encoded(frame, value)
    frame.work(value.count("%") * 4)
    frame.memory(len(data) * 4 + value.count("%") * 60)
    try:
        return unquote_to_bytes(data.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise TemplateError("not the URL form of a text", code=TemplateError.VALUE) from None


def _digest(frame: Frame, value: str, algorithm: str) -> str:
    data = encoded(frame, value)
    frame.work(len(data) >> 4)
    return hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()


@filters(GROUP, ("'a' | md5", "0cc175b9c0f1b6a831c399e269772661"))
def md5(frame: Frame, value: str) -> str:
    """The MD5 hash of the text (as UTF-8), in hexadecimal; for checksums, not for secrets."""
    return _digest(frame, value, "md5")


@filters(GROUP, ("'a' | sha1", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"))
def sha1(frame: Frame, value: str) -> str:
    """The SHA-1 hash of the text, in hexadecimal; for checksums, not for secrets."""
    return _digest(frame, value, "sha1")


@filters(
    GROUP,
    ("'a' | sha256", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
)
def sha256(frame: Frame, value: str) -> str:
    """The SHA-256 hash of the text, in hexadecimal."""
    return _digest(frame, value, "sha256")


@filters(
    GROUP,
    (
        "'a' | sha512",
        "1f40fc92da241694750979ee6cf582f2d5d7d28e18335de05abc54d0560e0f53"
        "02860c652bf08d560252aa5e74210546f369fbbbce8c12cfc7957b2652fe9a75",
    ),
)
def sha512(frame: Frame, value: str) -> str:
    """The SHA-512 hash of the text, in hexadecimal."""
    return _digest(frame, value, "sha512")


@filters(
    GROUP,
    ("'a' | hmac('key')", "780c3db4ce3de5b9e55816fba98f590631d96c075271b26976238d5f4444219b"),
)
def hmac(frame: Frame, value: str, key: str, algorithm: str = "sha256") -> str:
    """The signature of the text with a key, in hexadecimal: md5, sha1, sha256 or sha512."""
    if algorithm not in _HASHES:
        message = f"algorithm of hmac is one of {', '.join(_HASHES)}"
        raise TemplateError(message, code=TemplateError.VALUE)
    data, secret = encoded(frame, value), encoded(frame, key)
    frame.work(len(data) + len(secret) >> 4)
    return hmac_module.new(secret, data, algorithm).hexdigest()


@filters(
    GROUP,
    ("'users' | ident", '"users"'),
    ("'odd \"name\"' | ident", '"odd ""name"""'),
    ("'sales.orders' | ident", '"sales"."orders"'),
    ("['sales', 'a.b'] | ident", '"sales"."a.b"'),
)
def ident(frame: Frame, value: list[Value] | str) -> str:
    """The quoted name of a table or column, for SQL: `INSERT INTO {{ workload.table | ident }}`.

    Dots separate schema and name; a list gives the parts as they are. Each part has 1 to 63 bytes.
    """
    frame.items(10 if isinstance(value, list) else 1)
    parts = value if isinstance(value, list) else [*value.split(".", 5)]
    if not 1 <= len(parts) <= 5:
        raise TemplateError("ident takes 1 to 5 parts of a name", code=TemplateError.VALUE)
    return ".".join(_quoted_name(frame, part) for part in parts)


def _quoted_name(frame: Frame, part: Value) -> str:
    if not isinstance(part, str):
        raise TemplateError(f"a part of a name is text, not {type_name(part)}")
    if len(part) > MAX_IDENT or not 1 <= len(encoded(frame, part)) <= MAX_IDENT or "\0" in part:
        message = f"a part of a name has 1 to {MAX_IDENT} bytes and no zero character"
        raise TemplateError(message, code=TemplateError.VALUE)
    return '"' + part.replace('"', '""') + '"'
