"""The page of codes is complete: every code of the core stands in it (rule K46)."""

from __future__ import annotations

import pathlib
import re

import pytest

from noetl_core import legacy

ROOT = pathlib.Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "checks.md"
CODE = re.compile(r'"([A-K]\d{1,2}\.[a-z][a-z0-9-]*)"')
MADE_UP = re.compile(r'f"([A-K]\d{1,2}\.[a-z0-9-]*)\{')


def _sources() -> list[str]:
    return [path.read_text() for path in sorted((ROOT / "core").rglob("*.py"))]


def _codes() -> set[str]:
    written = {code for text in _sources() for code in CODE.findall(text)}
    words = {word.code for table in legacy.WORDS.values() for word in table.values()}
    return written | words | {"B6.filter", "B6.test"}


def test_K46_every_code_stands_in_the_reference() -> None:
    listed = set(re.findall(r"`([A-K]\d{1,2}\.[a-z0-9-]+)`", PAGE.read_text()))
    assert sorted(_codes() - listed) == [], "add these to docs/reference/checks.md"
    assert sorted(listed - _codes()) == [], "no code is called so any more"


def test_K46_codes_are_written_out_where_they_are_used() -> None:
    put_together = {start for text in _sources() for start in MADE_UP.findall(text)}
    assert put_together <= {"A5.legacy-", "A5.post-v10-", "K5.", "B6."}


@pytest.mark.parametrize("code", ["A1.yaml", "A1.missing", "A4.unknown-key"])
def test_K46_these_codes_never_change(code: str) -> None:
    assert code in _codes()
