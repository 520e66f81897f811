"""A playbook's file in its other form: a document, or a Kubernetes object (rule A1).

`convert_text` keeps comments and order and is lossless both ways: what comes out is loaded again
and must be the same playbook. It moves lines (`surgery`); where the text does not allow that, the
data is written anew (`anew`) and the result says so.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from noetl_core.convert import anew
from noetl_core.convert.flow import unflowed
from noetl_core.convert.letters import quoted_letters
from noetl_core.convert.lines import LINE_BREAKS, NotByText, comments_of, split_lines
from noetl_core.convert.surgery import to_document, to_resource
from noetl_core.load import Form, Loaded, load
from noetl_core.model import Metadata
from noetl_core.nodes import MappingNode
from noetl_core.problems import Problem
from noetl_core.source import parse

_MARKER = re.compile(r"(---|\.\.\.)(?=\s|\Z)")


class CannotConvert(Exception):
    """A document that is no playbook; the problems' places are those of the whole file."""

    def __init__(self, message: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Converted:
    """The text in the wanted form, and what a person should know about it."""

    text: str
    notes: tuple[str, ...] = ()


def convert_text(data: bytes | str, to: Form) -> Converted:
    """Every document of a file in the wanted form; one that has it already stays as it is."""
    _refuse_problems(data)
    text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    out: list[str] = []
    notes: list[str] = []
    for piece in _pieces(text):
        done = _convert_piece(piece, to)
        out.append(done.text)
        notes += done.notes
    return Converted("".join(out), tuple(notes))


def _refuse_problems(data: bytes | str) -> None:
    wrong = [problem for each in load(data) if each.has_errors for problem in each.problems]
    if wrong:
        raise CannotConvert("the file is not a valid playbook", tuple(wrong))


def _pieces(text: str) -> list[str]:
    """The text cut at `---` and `...`, which YAML knows nowhere else in column one.

    A marker stands alone, unless its document begins on the same line.
    """
    pieces: list[str] = []
    body: list[str] = []
    for line in split_lines(text):
        if not _MARKER.match(line):
            body.append(line)
            continue
        pieces.append("".join(body))
        alone = _has_no_content(line[3:])
        pieces += [line] if alone else []
        body = [] if alone else [line]
    return [piece for piece in [*pieces, "".join(body)] if piece]


def _convert_piece(piece: str, to: Form) -> Converted:
    lines = split_lines(piece)
    is_marker = len(lines) == 1 and _MARKER.match(piece) and _has_no_content(piece[3:])
    if is_marker or all(_has_no_content(line) or line.startswith("%") for line in lines):
        return Converted(piece)
    loaded, *others = load(piece)
    root = loaded.root
    if others or loaded.playbook is None or not isinstance(root, MappingNode):
        raise CannotConvert("the file is not a valid playbook", tuple(loaded.problems))
    if loaded.form is to:
        return Converted(piece)
    notes = _dropped(root) if to is Form.DOCUMENT else ()
    moved = _by_text(piece, root, loaded.playbook.metadata.name, to)
    if moved is not None and to is Form.RESOURCE:
        moved = quoted_letters(moved)
    if moved is not None and _is_same(loaded, moved, to) and _keeps_comments(piece, root, moved):
        return Converted(moved, notes)
    return _anew(piece, loaded, root, to, notes)


def _has_no_content(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _by_text(piece: str, root: MappingNode, name: str, to: Form) -> str | None:
    """The text with its lines moved; None where it does not allow that."""
    convert = to_resource if to is Form.RESOURCE else to_document
    try:
        if piece[-1:] in LINE_BREAKS:
            return convert(*unflowed(piece, root), name)
        # Lines can only change places when each has its end.
        newline = "\r\n" if "\r\n" in piece else "\n"
        ended = piece + newline
        again = parse(ended)[0].root
        if not isinstance(again, MappingNode):
            return None
        return convert(*unflowed(ended, again), name).removesuffix(newline)
    except NotByText:
        return None


def _is_same(loaded: Loaded, text: str, to: Form) -> bool:
    """Whether a text is the same playbook in the wanted form."""
    again = load(text)
    if len(again) != 1 or again[0].playbook is None:
        return False
    return again[0].form is to and again[0].playbook == loaded.playbook


def _keeps_comments(piece: str, root: MappingNode, text: str) -> bool:
    again = parse(text)[0].root
    if again is None:
        return False
    return not Counter(comments_of(piece, root)) - Counter(comments_of(text, again))


def _anew(
    piece: str, loaded: Loaded, root: MappingNode, to: Form, notes: tuple[str, ...]
) -> Converted:
    assert loaded.playbook is not None
    name = loaded.playbook.metadata.name
    make = anew.resource_data if to is Form.RESOURCE else anew.document_data
    comments = comments_of(piece, root)
    text = anew.written(make(root, name), comments)
    marked = re.match(r"---\s", piece)
    text = f"---\n{text}" if marked else text
    text = quoted_letters(text) if to is Form.RESOURCE else text
    if not _is_same(loaded, text, to):
        raise CannotConvert("this playbook can't be written in the other form without a loss")
    note = "the file's layout can't be kept: its data was written anew"
    said = f"{note}, with the comments at the head" if comments else note
    return Converted(text, (*notes, said))


def _dropped(root: MappingNode) -> tuple[str, ...]:
    """What a Kubernetes object holds that a document has no place for."""
    metadata = root.get("metadata")
    gone = ["status"] if "status" in root.entries else []
    if isinstance(metadata, MappingNode):
        gone += [f"metadata.{key}" for key in metadata.entries if key not in Metadata.keys]
    if not gone:
        return ()
    return (f"left out, since only the cluster uses it: {', '.join(gone)}",)


__all__ = ["CannotConvert", "Converted", "convert_text"]
