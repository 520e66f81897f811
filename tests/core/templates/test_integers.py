"""Whole numbers of templates have 64 bits, as events can hold (rules B7, J)."""

from __future__ import annotations

import pytest

from noetl_core.templates import TemplateError, TemplateProblems, render
from noetl_core.values import Value

LARGEST = 2**64 - 1


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ n + 0 }}", LARGEST),
        ("{{ -9223372036854775807 - 1 }}", -(2**63)),
        ("{{ '18446744073709551615' | int }}", LARGEST),
        ("{{ '[18446744073709551615]' | fromjson }}", [LARGEST]),
        ("{{ '\"\\\\ud83d\\\\ude00\"' | fromjson }}", "😀"),
    ],
)
def test_B7_numbers_of_64_bits_are_fine(template: str, value: Value) -> None:
    assert render(template, {"n": LARGEST}) == value


@pytest.mark.parametrize(
    "template",
    [
        "{{ n + 1 }}",
        "{{ n * n }}",
        "{{ -n }}",
        "{{ [n, n] | sum }}",
        "{{ '18446744073709551616' | int }}",
        "{{ '1e30' | int }}",
        "{{ 1e30 | int }}",
        "{{ 'ffffffffffffffffff' | int(base=16) }}",
        "{{ '18446744073709551616' | fromjson }}",
        "{{ '{\"a\": [-9223372036854775809]}' | fromjson }}",
        "{{ '\"\\\\ud800\"' | fromjson }}",
        "{{ 18446744073709551616 }}",
    ],
)
def test_B7_larger_numbers_and_halves_of_characters_are_errors(template: str) -> None:
    with pytest.raises((TemplateError, TemplateProblems)):
        render(template, {"n": LARGEST})
