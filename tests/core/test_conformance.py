"""Every rule that the core keeps has a test of its name, and the page says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetl_cli import conformance, reference
from noetl_cli.conformance import TESTS, rules_in, rules_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "conformance.md"

CORE = [rule for letter in "CDEHJ" for rule in rules_of(letter) if rule != "D7"]
"""The rules of the engine; D7 is the http tool's."""
CORE_DETAILS = [f"K{number}" for number in [*range(8, 9), *range(10, 30), 33, 40, 41]]

HELD = conformance.tests_by_rule(TESTS)


@pytest.mark.parametrize("rule", [*CORE, *CORE_DETAILS])
def test_every_rule_of_the_core_has_a_test(rule: str) -> None:
    assert HELD.get(rule), f"no test is named test_{rule}_…"


def test_the_page_is_what_the_tests_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference.page("conformance.md"), "run `make docs`"


def test_rules_are_read_from_the_start_of_a_name() -> None:
    assert rules_in("test_C4_K40_next_evaluated_says_C5") == ["C4", "K40"]
    assert rules_in("test_J_a_log") == ["J"]
    assert rules_in("test_A_name") == []
    assert rules_in("test_E2E_is_no_rule") == []
