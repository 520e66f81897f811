"""The workload of a run: the playbook's own, then `--workload`, then `--set` and `--set-json`.

Maps merge deep, lists are replaced, and a path may reach into a list by number (`a.0.b`). What is
wrong with an argument is wrong usage, and its message names the path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from noetl_cli import files
from noetl_cli.errors import UsageError
from noetl_core.layers import merge, merge_values
from noetl_core.nodes import plain_value
from noetl_core.problems import Severity
from noetl_core.source import parse
from noetl_core.values import MAX_DEPTH, Value, is_storable_integer

Path: TypeAlias = tuple[str, ...]
_DOT = re.compile(r"(?<!\\)\.")
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, slots=True)
class Setting:
    """One `--set` or `--set-json`."""

    option: str
    path: Path
    value: Value

    @property
    def label(self) -> str:
        return ".".join(self.path)


def setting(option: str, text: str) -> Setting:
    """Read `path=value`."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise UsageError(
            f"{option} takes path=value, not `{text[:80]}`", f"for example {option} limits.pages=3"
        )
    words = _words(path.strip())
    if not all(words):
        raise UsageError(f"{option} {path}: the path has an empty part")
    read = _json if option == "--set-json" else _yaml
    return Setting(option, words, read(option, path, value))


def _words(path: str) -> Path:
    """The parts of a path; a backslash makes the next character a plain one."""
    return tuple(re.sub(r"\\(.)", r"\1", word) for word in _DOT.split(path))


def _json(option: str, path: str, text: str) -> Value:
    try:
        value: Value = json.loads(text, parse_constant=_no_constant, parse_int=_integer)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        message = "it holds half of a surrogate pair, which is no character"
        raise UsageError(f"{option} {path}: {message}") from None
    except ValueError as error:
        raise UsageError(f"{option} {path}: the value is not JSON: {error}") from None
    except RecursionError:
        raise UsageError(f"{option} {path}: the value is nested too deeply") from None
    if _depth(value) > MAX_DEPTH:
        raise UsageError(f"{option} {path}: the value is nested too deeply")
    return value


def _integer(digits: str) -> Value:
    if len(digits) > 21 or not is_storable_integer(int(digits)):
        raise ValueError(f"the number {digits[:40]} needs more than 64 bits; write it in quotes")
    return int(digits)


def _depth(value: Value) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)


def _no_constant(word: str) -> Value:
    raise ValueError(f"{word} has no value in JSON")


def _yaml(option: str, path: str, text: str) -> Value:
    if text.strip() in _NOTHING:
        return None
    documents = parse(text)
    wrong = [p.message for d in documents for p in d.problems if p.severity is Severity.ERROR]
    root = documents[0].root
    if wrong or len(documents) != 1 or root is None:
        said = wrong[0] if wrong else "it holds several documents"
        raise UsageError(
            f"{option} {path}: the value is not YAML: {said}", "quote it, or use --set-json"
        )
    return plain_value(root)


def read_file(name: str) -> dict[str, Value]:
    """The mapping of a `--workload` file."""
    source = files.read(name)
    documents = parse(source.data)
    wrong = [p for d in documents for p in d.problems if p.severity is Severity.ERROR]
    if wrong:
        first = wrong[0]
        where = f"{source.label}:{first.line}:{first.column}"
        raise UsageError(f"{where}: the workload can't be read: {first.message}", first.hint)
    root = documents[0].root
    value = None if root is None else plain_value(root)
    if len(documents) != 1 or not isinstance(value, dict):
        raise UsageError(f"{source.label}: a workload is one mapping of names to values")
    return value


def composed(
    own: dict[str, Value], given: Iterable[dict[str, Value]], settings: Sequence[Setting]
) -> dict[str, Value]:
    """The workload that a run has."""
    workload = dict(own)
    for layer in given:
        workload = merge(workload, layer)
    for one in settings:
        changed = _set(workload, one, 0)
        assert isinstance(changed, dict)
        workload = changed
    return workload


def _set(into: Value, one: Setting, depth: int) -> Value:
    """A value with one place of it changed; what is not on the way is shared."""
    if depth == len(one.path):
        return _over(into, one.value)
    word = one.path[depth]
    if isinstance(into, list):
        index = _index(into, one, depth)
        return [*into[:index], _set(into[index], one, depth + 1), *into[index + 1 :]]
    if into is None:
        into = {}
    if not isinstance(into, dict):
        here = ".".join(one.path[:depth])
        raise UsageError(
            f"{one.option} {one.label}: workload.{here} is {_kind(into)}, which has no `{word}`"
        )
    return {**into, word: _set(into.get(word), one, depth + 1)}


def _over(old: Value, new: Value) -> Value:
    return None if new is None else merge_values(old, new)


def _index(items: list[Value], one: Setting, depth: int) -> int:
    word, here = one.path[depth], ".".join(one.path[:depth])
    if not (word.isascii() and word.isdigit()):
        raise UsageError(
            f"{one.option} {one.label}: workload.{here} is a list, and `{word}` is no number"
        )
    if int(word) >= len(items):
        raise UsageError(
            f"{one.option} {one.label}: workload.{here} has {len(items)} items, there is no {word}",
            "numbers start at 0; a whole list can be given with --set-json",
        )
    return int(word)


def _kind(value: Value) -> str:
    if isinstance(value, bool):
        return "a boolean"
    return "a text" if isinstance(value, str) else "a number"
