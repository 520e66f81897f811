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
    fact_of,
)
from noetl_core.values import Value, type_name
from noetl_core.wire.reading import Malformed, Reader

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
    reader = Reader(data, where)
    name = reader.text("name")
    if name not in ALLOWED:
        known = "a worker does not report it" if name in FACTS else "no such event"
        raise Malformed(f"{where}.name: `{name}`: {known}")
    attempt = reader.value("attempt")
    context: dict[str, Value] = {
        "step": step,
        "run_id": run_id,
        "task": reader.text_or_none("task"),
        "attempt": None if attempt is None else reader.whole("attempt"),
        "iteration": reader.text_or_none("iteration"),
    }
    payload = reader.mapping("payload")
    _check(_FIELDS[name], payload, where)
    return fact_of(name, context, payload)


def _check(known: tuple[_Field, ...], payload: dict[str, Value], where: str) -> None:
    for field in known:
        if field.name not in payload:
            if field.required:
                raise Malformed(f"{where}.payload.{field.name}: missing")
            continue
        value = payload[field.name]
        if field.name in _OUTSIDE:
            raise Malformed(f"{where}.payload.{field.name}: not for a worker to say")
        if field.classes is not None and type(value) not in field.classes:
            wanted = " or ".join(sorted(type_name(kind()) for kind in field.classes))
            message = f"expected {wanted}, got {type_name(value)}"
            raise Malformed(f"{where}.payload.{field.name}: {message}")
        if field.texts and value and not all(type(item) is str for item in _items(value)):
            raise Malformed(f"{where}.payload.{field.name}: expected a list of texts")


def _items(value: Value) -> list[Value]:
    return value if isinstance(value, list) else []
