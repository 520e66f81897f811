"""The page that says which tests hold which rule: gathered from the names of the tests.

A test is named after the rules it holds: `test_C4_C5_an_arc_…`. `reference` writes the page; it
needs a checkout, because tests are not installed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parents[2] / "tests"

SECTIONS: Final[dict[str, tuple[str, int]]] = {
    "A": ("Document", 6),
    "B": ("Templates", 7),
    "C": ("Admission and routing", 12),
    "D": ("Pipeline and task policy", 9),
    "E": ("Loops", 7),
    "F": ("Spec layering", 1),
    "G": ("Keychain", 3),
    "H": ("Results", 3),
    "I": ("Tools", 7),
    "J": ("Events", 0),
    "K": ("Details", 47),
}
"""Every section of the language: its title and how many rules it has (J is one rule)."""

_RULES: Final = re.compile(r"(?:J|[A-K][1-9][0-9]?)(?=_)")

_CASE: Final = re.compile(r"^- name: (\S+)$", re.MULTILINE)
"""A case that is data: a playbook and what comes of it."""

_INTRODUCTION: Final = """\
# Conformance

Every rule of the [language](language.md) and the tests that hold it. A test carries the rules in
its name; `pytest -k C5` runs those of one rule. Beside them, made playbooks are compared with a
naive interpreter and run under thousands of faulty schedules (`tests/properties`).
"""


def conformance_page(tests: Path = TESTS) -> str:
    """The table of rules and tests."""
    found = tests_by_rule(tests)
    parts = [_INTRODUCTION]
    for letter, (title, _) in SECTIONS.items():
        parts += [f"## {letter}. {title}\n", "| Rule | Tests |", "|---|---|"]
        parts += [_row(rule, found.get(rule, [])) for rule in rules_of(letter)]
        parts.append("")
    return "\n".join(parts)


def rules_of(letter: str) -> list[str]:
    count = SECTIONS[letter][1]
    return [f"{letter}{number}" for number in range(1, count + 1)] or [letter]


def tests_by_rule(tests: Path) -> dict[str, list[tuple[str, str]]]:
    """Rule → (file, test), in order."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        name = path.relative_to(tests).as_posix()
        for test in _names(path):
            for rule in rules_in(test):
                found.setdefault(rule, []).append((name, test))
    for path in sorted(tests.glob("conformance/*.yaml")):
        for case in _CASE.findall(path.read_text(encoding="utf-8")):
            for rule in rules_in(case):
                found.setdefault(rule, []).append((path.relative_to(tests).as_posix(), case))
    return found


def rules_in(test: str) -> list[str]:
    """The rules that a test's name begins with."""
    rest = test.removeprefix("test_")
    rules: list[str] = []
    while match := _RULES.match(rest):
        rules.append(match.group())
        rest = rest[match.end() + 1 :]
    return rules


def _names(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name.startswith("test_"):
                    yield name


def _row(rule: str, tests: list[tuple[str, str]]) -> str:
    by_file: dict[str, list[str]] = {}
    for file, test in tests:
        by_file.setdefault(file, []).append(f"`{test}`")
    cells = [f"{file}: {', '.join(names)}" for file, names in by_file.items()]
    return f"| {rule} | {'<br>'.join(cells) or '–'} |"
