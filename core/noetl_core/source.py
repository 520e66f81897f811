"""YAML text → documents, each a tree of nodes that know where they stand (rule K2).

The way in for every author's text: the loader reads playbooks from here, so that every problem
has a line and a column. Input is hostile: its size is bounded here and its shape in `compose`,
and no construct runs code. What can't be read gives a problem, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from noetl_core.compose import (
    MAX_DEPTH,
    MAX_NODES,
    Composer,
    Unreadable,
    unreadable,
)
from noetl_core.nodes import (
    Entry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    kind_of,
    plain_value,
)
from noetl_core.problems import Problem, ProblemList

MAX_BYTES = 8 * 1024 * 1024
"""The largest file that is read. A Kubernetes object is far smaller; generated documents may be
large."""
MAX_DOCUMENTS = 1000
"""How many documents of one file are read."""

EMPTY_HINT = "a playbook starts with `metadata:` and `workflow:`; see `noetl schema playbook`"
_TOO_LARGE = "keep data out of the playbook: pass it as workload, or fetch it in a step"
_LONE_RETURN = re.compile("\r(?!\n)")
_LINE_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file: its root (None when it can't be read at all) and what YAML said of
    it."""

    root: Node | None
    problems: tuple[Problem, ...]
    text: str
    letters: tuple[Problem, ...] = ()
    """Warnings of `y` and `n`, which concern a file in resource form only."""


def parse(data: bytes | str) -> list[Document]:
    """Every document of a file. A file that can't be read gives one document without a root.

    Callers that read files need no more than `MAX_BYTES + 1` bytes of one: what is longer is
    refused.
    """
    try:
        # A lone carriage return is a line break to YAML; one character stays one.
        text = _LONE_RETURN.sub("\n", _decode(data))
    except Unreadable as stop:
        return [Document(None, (stop.problem,), "")]
    documents: list[Document] = []
    problems, letters = ProblemList(), ProblemList()
    try:
        for root in _roots(text, problems, letters):
            documents.append(Document(root, problems.take(), text, letters.take()))
            if len(documents) > MAX_DOCUMENTS:
                message = f"the file holds more than {MAX_DOCUMENTS:,} documents"
                raise Unreadable(unreadable(message, root.line, root.column))
    except Unreadable as stop:
        documents.append(Document(None, (*problems.take(), stop.problem), text))
    written = [d for d in documents if d.problems or not _is_nothing(d.root)]
    return written or [Document(None, (unreadable("the file is empty", 1, 1, EMPTY_HINT),), text)]


def _is_nothing(root: Node | None) -> bool:
    return isinstance(root, ScalarNode) and root.value is None


def _decode(data: bytes | str) -> str:
    if len(data) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES // 1024 // 1024} MiB"
        raise Unreadable(unreadable(message, 1, 1, _TOO_LARGE))
    if isinstance(data, str):
        text = data.removeprefix("\ufeff")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Unreadable(_bad_character(text, error.start)) from None
        return text
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        before = data[data.rfind(b"\n", 0, error.start) + 1 : error.start]
        column = len(before.decode("utf-8", "replace")) + 1
        hint = "save the file as UTF-8"
        raise Unreadable(unreadable("the file is not UTF-8 text", line, column, hint)) from None


def _bad_character(text: str, at: int) -> Problem:
    line, column = _place(text, at)
    message = f"the character {text[at]!a} is not allowed in YAML"
    return unreadable(message, line, column, 'write it as an escape in "…", or leave it out')


def _place(text: str, at: int) -> tuple[int, int]:
    """Line and column of a character, by the line breaks that YAML knows."""
    line, start = 1, 0
    for found in _LINE_BREAK.finditer(text, 0, at):
        line, start = line + 1, found.end()
    return line, at - start + 1


def _roots(text: str, problems: ProblemList, letters: ProblemList) -> Iterator[Node]:
    try:
        next_event = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text).get_event
        while not isinstance(event := next_event(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                yield Composer(text, problems, letters).compose(next_event)
    except yaml.MarkedYAMLError as error:
        raise Unreadable(_syntax_problem(text, error)) from None
    except yaml.reader.ReaderError as error:
        at = error.position if isinstance(error.position, int) else 0
        raise Unreadable(_bad_character(text, min(at, len(text) - 1))) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise Unreadable(unreadable(f"not YAML: {first}", 1, 1)) from None


def _syntax_problem(text: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    said = str(error.problem)
    written = _line(text, line)
    hint = None
    if "\t" in written[: len(written) - len(written.lstrip())] or "'\\t'" in said:
        hint = "indent with spaces: YAML does not allow tabs there"
    elif "{{" in written and ("{" in said or "mapping" in said or "flow" in said):
        hint = 'a value that begins with {{ must be in quotes: "{{ … }}"'
    elif "mapping values are not allowed" in said:
        hint = "put the value in quotes if it contains `: `, or check the indentation"
    message = ": ".join(part for part in (error.context, error.problem) if part)
    return unreadable(f"not YAML: {message}", line, column, hint)


def _line(text: str, line: int) -> str:
    start, number = 0, 1
    for found in _LINE_BREAK.finditer(text):
        if number == line:
            return text[start : found.start()][:1000]
        start, number = found.end(), number + 1
    return text[start : start + 1000] if number == line else ""


__all__ = [
    "EMPTY_HINT",
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_DOCUMENTS",
    "MAX_NODES",
    "Document",
    "Entry",
    "MappingNode",
    "Node",
    "ScalarNode",
    "SequenceNode",
    "kind_of",
    "parse",
    "plain_value",
]
