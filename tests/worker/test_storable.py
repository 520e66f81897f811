"""What tools give back is made fit for the log (rules H1, J): numbers, texts, depth."""

from __future__ import annotations

import orjson
import pytest

from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.values import MAX_DEPTH, Value
from noetl_worker.storable import storable


def nested(levels: int) -> Value:
    value: Value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [None, 2**64 - 1, -(2**63), "a\0b 😀", {"k": [1.5, True]}, nested(MAX_DEPTH)], ids=repr
)
def test_J_what_fits_is_left_alone(value: Value) -> None:
    outcome = Outcome(result=value)
    assert storable(outcome, "python") is outcome


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**400], ids=["over", "under", "long"])
def test_J_a_number_of_more_than_64_bits_is_refused_with_its_place(number: int) -> None:
    outcome = storable(Outcome(result={"a": [0, number]}), "http")
    assert outcome.result is None
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.source) == (ErrorKind.SCHEMA, "http")
    assert outcome.error.message == "result.a[1] is a whole number that needs more than 64 bits"


def test_J_a_value_that_is_nested_too_deeply_is_refused() -> None:
    error = storable(Outcome(result=nested(MAX_DEPTH + 1)), "python").error
    assert error is not None
    assert f"more than {MAX_DEPTH} levels" in error.message


def test_J_half_of_a_surrogate_pair_becomes_the_replacement_character() -> None:
    outcome = storable(
        Outcome(result={"a\ud800": ["b\udc00", "\ud83d\ude00"]}, helpers={"py": "\ud800"}), "http"
    )
    assert outcome.result == {"a\ufffd": ["b\ufffd", "😀"]}
    assert outcome.helpers == {"py": "\ufffd"}
    orjson.dumps(outcome.result)


def test_J_the_message_of_an_error_is_text() -> None:
    error = TaskError(kind=ErrorKind.UNKNOWN, message="bad \ud800 text")
    outcome = storable(Outcome(error=error, result=2**70), "python")
    assert outcome.error is not None
    assert outcome.error.message == "bad \ufffd text"
    assert outcome.result is None, "what cannot be kept is left out; the error stays"
