"""What tools give back, made fit for the log: `drive` passes every outcome through here.

The log is JSON whose whole numbers have 64 bits and whose texts are Unicode. Half of a surrogate
pair becomes U+FFFD; a longer number, or a value that is nested too deeply, makes the outcome an
error that says where it stands.
"""

from __future__ import annotations

from dataclasses import replace

import orjson

from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.values import MAX_DEPTH, Value, is_storable_integer

_ROOM = 254 - MAX_DEPTH
"""How much deeper than a value JSON may be nested when it is written."""


class Unstorable(Exception):
    """A value that cannot be kept as it is."""


def storable(outcome: Outcome, source: str) -> Outcome:
    """The outcome with a result and texts that events can hold."""
    error = outcome.error
    if error is not None:
        error = replace(error, message=_text(error.message))
        outcome = replace(outcome, error=error)
    if _is_fit(outcome.result) and _is_fit(dict(outcome.helpers)):
        return outcome
    try:
        result = _fit(outcome.result, "result", 0)
        helpers = {key: _fit(value, key, 0) for key, value in outcome.helpers.items()}
    except Unstorable as refusal:
        told = TaskError(
            kind=ErrorKind.SCHEMA, code="NOT_STORABLE", message=str(refusal), source=source
        )
        return replace(outcome, result=None, helpers={}, error=error or told)
    return replace(outcome, result=result, helpers=helpers)


def _is_fit(value: Value) -> bool:
    """Whether it can be written as it is, with room for what will stand around it."""
    wrapped = value
    for _ in range(_ROOM):
        wrapped = [wrapped]
    try:
        orjson.dumps(wrapped)
    except TypeError:
        return False
    return True


def _fit(value: Value, path: str, depth: int) -> Value:
    if depth > MAX_DEPTH:
        raise Unstorable(f"the result is nested more than {MAX_DEPTH} levels deep")
    match value:
        case str():
            return _text(value)
        case list():
            return [_fit(one, f"{path}[{index}]", depth + 1) for index, one in enumerate(value)]
        case dict():
            return {_text(k): _fit(one, f"{path}.{k}", depth + 1) for k, one in value.items()}
        case int() if not is_storable_integer(value):
            raise Unstorable(f"{_text(path)} is a whole number that needs more than 64 bits")
        case _:
            return value


def _text(text: str) -> str:
    if text.isascii():
        return text
    # Both halves of a pair may stand beside each other: together they are a character.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
