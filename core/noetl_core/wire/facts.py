"""Facts of a worker as JSON, and back with every field checked (section J).

A report is about one run, so its facts do not repeat which: the reader stamps step and run on them,
and no worker can speak for another's. The ends of runs are no facts here, they travel as `end`.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields

from noetl_core.engine.events import (
    CONTEXT,
    FACTS,
    CtxPatched,
    Fact,
    LoopOpened,
    Source,
    StepDone,
    StepFailed,
)
from noetl_core.values import Value, type_name
from noetl_core.wire.reading import MAX_TEXT, Malformed

MAX_FACTS = 1_000
"""Facts of one report."""

ALLOWED = frozenset(
    {name for name, kind in FACTS.items() if kind.source is Source.WORKER}
    | {CtxPatched.name, LoopOpened.name}
) - {StepDone.name, StepFailed.name}
"""What a worker may say."""

_CLASSES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "None": (type(None),),
    "dict[str, Value]": (dict,),
    "list[Value]": (list,),
    "list[str]": (list,),
    "list[int]": (list,),
}
_OUTSIDE = frozenset({"patch_id"})
"""Fields that only the control plane fills in."""


@dataclass(frozen=True, slots=True)
class _Field:
    """One payload field of a kind of fact."""

    name: str
    classes: frozenset[type] | None
    """None: any value."""
    required: bool
    texts: bool
    """It is a list of texts."""


def _fields(kind: type[Fact]) -> tuple[_Field, ...]:
    return tuple(
        _Field(
            field.name,
            _classes(str(field.type)),
            field.default is MISSING and field.default_factory is MISSING,
            "list[str]" in str(field.type),
        )
        for field in fields(kind)
        if field.name not in CONTEXT
    )


def _classes(annotation: str) -> frozenset[type] | None:
    parts = [part.strip() for part in annotation.split("|")]
    if "Value" in parts:
        return None
    return frozenset(known for part in parts for known in _CLASSES[part])


_FIELDS = {name: _fields(FACTS[name]) for name in ALLOWED}


def fact_json(fact: Fact) -> dict[str, Value]:
    """A fact as a report carries it."""
    found: dict[str, Value] = {"name": fact.name}
    if fact.task is not None:
        found["task"] = fact.task
    if fact.attempt is not None:
        found["attempt"] = fact.attempt
    if fact.iteration is not None:
        found["iteration"] = fact.iteration
    payload = fact.payload()
    if payload:
        found["payload"] = payload
    return found


def read_fact(data: Value, where: str, step: str | None, run_id: str) -> Fact:
    """The fact that a worker sent; raises `Malformed`."""
    if not isinstance(data, dict):
        raise Malformed(f"{where}: expected an object, got {type_name(data)}")
    name = data.get("name")
    if not isinstance(name, str):
        raise Malformed(f"{where}.name: expected text, got {type_name(name)}")
    if name not in ALLOWED:
        known = "a worker does not report it" if name in FACTS else "no such event"
        raise Malformed(f"{where}.name: `{name[:80]}`: {known}")
    payload = data.get("payload", {})
    if not isinstance(payload, dict):
        raise Malformed(f"{where}.payload: expected an object, got {type_name(payload)}")
    given = _checked(_FIELDS[name], payload, where)
    given["step"] = step
    given["run_id"] = run_id
    _read_context(data, where, given)
    return FACTS[name](**given)  # type: ignore[arg-type]  # every field was checked


def _read_context(data: dict[str, Value], where: str, given: dict[str, Value]) -> None:
    for key in ("task", "iteration"):
        value = data.get(key)
        if value is not None and (not isinstance(value, str) or len(value) > MAX_TEXT):
            raise Malformed(f"{where}.{key}: expected text, got {type_name(value)}")
        given[key] = value
    attempt = data.get("attempt")
    if attempt is not None and (type(attempt) is not int or attempt < 0):
        raise Malformed(f"{where}.attempt: expected a whole number, got {type_name(attempt)}")
    given["attempt"] = attempt


def _checked(known: tuple[_Field, ...], payload: dict[str, Value], where: str) -> dict[str, Value]:
    """The fields of a payload that are known here, each of its type."""
    given: dict[str, Value] = {}
    for field in known:
        if field.name not in payload:
            if field.required:
                raise Malformed(f"{where}.payload.{field.name}: missing")
            continue
        value = payload[field.name]
        if field.classes is not None and type(value) not in field.classes:
            raise _wrong(field, value, where)
        if field.name in _OUTSIDE:
            raise Malformed(f"{where}.payload.{field.name}: not for a worker to say")
        if field.texts and isinstance(value, list) and not all(type(v) is str for v in value):
            raise Malformed(f"{where}.payload.{field.name}: expected a list of texts")
        given[field.name] = value
    return given


def _wrong(field: _Field, value: Value, where: str) -> Malformed:
    wanted = " or ".join(sorted({type_name(kind()) for kind in field.classes or ()}))
    message = f"expected {wanted}, got {type_name(value)}"
    return Malformed(f"{where}.payload.{field.name}: {message}")
