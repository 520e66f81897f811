"""`dataclasses.replace` for the records of a state, at half its price: every event needs a few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)

_KNOWN: dict[type, tuple[tuple[str, ...], Callable[[object], tuple[object, ...]]]] = {}


def replace(one: T, /, **changes: object) -> T:
    """The same record with some fields changed."""
    kind = type(one)
    known = _KNOWN.get(kind)
    if known is None:
        names = tuple(field.name for field in fields(kind))
        assert len(names) > 1, "a getter of one name gives no tuple"
        known = _KNOWN[kind] = names, attrgetter(*names)
    names, values = known
    return kind(**dict(zip(names, values(one), strict=True)) | changes)
