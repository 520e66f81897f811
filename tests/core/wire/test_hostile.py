"""Whatever a peer sends, reading it ends in a message or in a `WireError`, never otherwise."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl_core import wire
from noetl_core.values import Value
from tests.support.wire_examples import EXAMPLES

leaves = (
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(max_size=5)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def places(value: Value, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            found += places(item, (*path, at))
    return found


def changed(value: Value, path: tuple[str | int, ...], new: Value) -> Value:
    whole = copy.deepcopy(value)
    at: Value = whole
    for key in path[:-1]:
        at = at[key]  # type: ignore[index,call-overload]
    at[path[-1]] = new  # type: ignore[index,call-overload]
    return whole


@pytest.mark.parametrize("name", sorted(EXAMPLES))
@settings(max_examples=(settings.default or settings()).max_examples // 5)
@given(data=st.data())
def test_a_message_with_anything_anywhere_is_read_or_refused(
    name: str, data: st.DataObject
) -> None:
    good = EXAMPLES[name].as_json()
    path = data.draw(st.sampled_from(places(good)))
    sent = changed(good, path, data.draw(values))
    try:
        message = type(EXAMPLES[name]).of(sent)  # type: ignore[attr-defined]
    except wire.WireError:
        return
    again = type(message).of(message.as_json())
    assert repr(again) == repr(message)


@given(values)
def test_anything_at_all_is_read_or_refused(sent: Value) -> None:
    for example in EXAMPLES.values():
        try:
            type(example).of(sent)  # type: ignore[attr-defined]
        except wire.WireError:
            continue
