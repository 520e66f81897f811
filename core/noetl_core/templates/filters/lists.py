"""Filters on lists: parts, order, groups, and one filter or test applied to every item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetl_core.templates.errors import TemplateError
from noetl_core.templates.filters.common import (
    attribute_of,
    charge_sort,
    column,
    hashable,
    sort_keys,
)
from noetl_core.templates.frame import ENTRY, LIST, Frame, width
from noetl_core.templates.limits import LIMITS
from noetl_core.templates.operators import join_text
from noetl_core.templates.registry import filters
from noetl_core.templates.undefined import Operand, Undefined
from noetl_core.values import type_name

if TYPE_CHECKING:
    from noetl_core.values import Value

GROUP = "Lists"


@filters(GROUP, ("[1, 2] | length", 2), ("'abc' | length", 3), aliases=("count",))
def length(frame: Frame, value: list[Value] | dict[str, Value] | str) -> int:
    """The number of items, of entries or of characters."""
    return len(value)


@filters(GROUP, ("[1, 2] | first", 1), ("[] | first | default('none')", "none"))
def first(frame: Frame, value: list[Value] | str) -> Operand:
    """The first item or character; undefined where there is none."""
    return value[0] if value else Undefined((), what="the first item of an empty list")


@filters(GROUP, ("[1, 2] | last", 2), ("'abc' | last", "c"))
def last(frame: Frame, value: list[Value] | str) -> Operand:
    """The last item or character; undefined where there is none."""
    return value[-1] if value else Undefined((), what="the last item of an empty list")


@filters(
    GROUP,
    ("[1, 2, 'x'] | join(', ')", "1, 2, x"),
    ("[{'n': 'a'}, {'n': 'b'}] | join('-', attribute='n')", "a-b"),
)
def join(frame: Frame, value: list[Value], d: str = "", attribute: str | None = None) -> str:
    """The items (or one attribute of each) as one text, with `d` between them."""
    found = column(frame, value, attribute)
    frame.items(len(found) * 2)
    frame.memory(len(d) * width(d) * len(found))
    pieces: list[Operand] = []
    for one in found:
        pieces += (one, d)
    return join_text(frame, pieces[:-1])


@filters(
    GROUP,
    ("[3, 1, 2] | sort", [1, 2, 3]),
    ("['b', 'A'] | sort(reverse=true)", ["b", "A"]),
    ("[{'n': 2}, {'n': 1}] | sort(attribute='n')", [{"n": 1}, {"n": 2}]),
)
def sort(
    frame: Frame,
    value: list[Value],
    reverse: bool = False,
    case_sensitive: bool = False,
    attribute: str | None = None,
) -> list[Value]:
    """The items in order: numbers, then texts, then null; equal ones keep their order.

    `attribute` may name several, with commas: `'team,name'`. Lists and mappings have no order of
    their own.
    """
    order: list[int] = list(range(len(value)))
    frame.items(len(value) * 2)
    names: list[str | None] = [None] if attribute is None else [*attribute.split(",", 10)]
    for name in reversed(names):
        by = column(frame, value, name)
        keys = sort_keys(frame, by, case_sensitive=case_sensitive, what="sort")
        charge_sort(frame, keys)
        order.sort(key=keys.__getitem__, reverse=reverse)
    return [value[place] for place in order]


@filters(
    GROUP,
    ("['a', 'A', 'b'] | unique", ["a", "b"]),
    ("[1, true, '1', 1.0] | unique", [1, True, "1"]),
    ("[[1], [1], [2]] | unique", [[1], [2]]),
)
def unique(
    frame: Frame, value: list[Value], case_sensitive: bool = False, attribute: str | None = None
) -> list[Value]:
    """The items without repetitions (or without repetitions of an attribute), first ones kept."""
    found = column(frame, value, attribute)
    seen: set[object] = set()
    kept: list[Value] = []
    _charge_table(frame, len(value))
    for one, by in zip(value, found, strict=True):
        key = _folded(frame, by, case_sensitive)
        if key not in seen:
            seen.add(key)
            kept.append(one)
    return kept


def _charge_table(frame: Frame, count: int) -> None:
    """Charge a table with a place for each of `count` items."""
    frame.items(count * 2)
    frame.memory(count * ENTRY)


def _folded(frame: Frame, value: Value, case_sensitive: bool) -> object:
    if isinstance(value, str):
        frame.work(len(value) >> 4)
        if not case_sensitive:
            frame.like(value, 1 if value.isascii() else 3)
            return value.lower()
    return hashable(frame, value)


@filters(GROUP, ("[1, 2, 3] | reverse", [3, 2, 1]), ("'abc' | reverse", "cba"))
def reverse(frame: Frame, value: list[Value] | str) -> list[Value] | str:
    """The items or characters from the last to the first."""
    if isinstance(value, str):
        frame.like(value)
    else:
        frame.items(len(value))
    return value[::-1]


@filters(
    GROUP,
    ("'abc' | list", ["a", "b", "c"]),
    ("{'a': 1} | list", ["a"]),
    ("[1, 2] | list", [1, 2]),
)
def list_(frame: Frame, value: list[Value] | str) -> list[Value]:
    """A list as it is, the keys of a mapping, the characters of a text."""
    if isinstance(value, list):
        return value
    frame.items(len(value))
    # One character outside ASCII is an object of its own.
    frame.memory(0 if value.isascii() else len(value) * 76)
    return [*value]


@filters(
    GROUP,
    ("['a', 'b'] | map('upper')", ["A", "B"]),
    ("[{'n': {'m': 1}}, {}] | map(attribute='n.m', default=0)", [1, 0]),
    ("[[1, 2], [3]] | map('sum')", [3, 3]),
)
def map_(frame: Frame, value: list[Value], filter_: str, *arguments: Value) -> list[Value]:
    """A filter applied to every item, or with `attribute=` (and `default=`) one attribute of each.

    The filter's name stands in quotes, its own arguments after it.
    """
    raise AssertionError("compiled in calls")


@filters(
    GROUP,
    ("[0, 1, '', 'a'] | select", [1, "a"]),
    ("[1, 2, 3] | select('gt', 1)", [2, 3]),
)
def select(frame: Frame, value: list[Value], test: str = "", *arguments: Value) -> list[Value]:
    """The items that pass a test; without one those that are true."""
    raise AssertionError("compiled in calls")


@filters(GROUP, ("[1, 2, 3] | reject('odd')", [2]), ("[none, 1] | reject('none')", [1]))
def reject(frame: Frame, value: list[Value], test: str = "", *arguments: Value) -> list[Value]:
    """The items that do not pass a test; without one those that are not true."""
    raise AssertionError("compiled in calls")


@filters(
    GROUP,
    ("[{'ok': true}, {'ok': false}, {}] | selectattr('ok')", [{"ok": True}]),
    ("[{'n': 1}, {'n': 2}] | selectattr('n', 'eq', 2)", [{"n": 2}]),
)
def selectattr(
    frame: Frame, value: list[Value], attribute: str, test: str = "", *arguments: Value
) -> list[Value]:
    """The items of which an attribute passes a test; without one those where it is true."""
    raise AssertionError("compiled in calls")


@filters(
    GROUP,
    ("[{'n': 1}, {}] | rejectattr('n', 'defined')", [{}]),
    ("[{'n': 1}, {'n': 2}] | rejectattr('n', 'gt', 1)", [{"n": 1}]),
)
def rejectattr(
    frame: Frame, value: list[Value], attribute: str, test: str = "", *arguments: Value
) -> list[Value]:
    """The items of which an attribute does not pass a test; without one those where it is false."""
    raise AssertionError("compiled in calls")


@filters(
    GROUP,
    (
        "[{'t': 'b', 'n': 1}, {'t': 'a', 'n': 2}, {'t': 'b', 'n': 3}] | groupby('t')",
        [
            {"grouper": "a", "list": [{"t": "a", "n": 2}]},
            {"grouper": "b", "list": [{"t": "b", "n": 1}, {"t": "b", "n": 3}]},
        ],
    ),
    ("[{'t': 'x'}, {}] | groupby('t', default='-') | map(attribute='grouper')", ["-", "x"]),
)
def groupby(
    frame: Frame,
    value: list[Value],
    attribute: str,
    default: Value = None,
    case_sensitive: bool = False,
) -> list[Value]:
    """The items by the value of an attribute: a list of `{grouper, list}` in the order of groupers.

    An item without the attribute has `default` for it.
    """
    read = attribute_of(attribute)
    _charge_table(frame, len(value))
    by: list[Value] = []
    for one in value:
        found = read(one)
        by.append(default if isinstance(found, Undefined) else found)
    keys = sort_keys(frame, by, case_sensitive=case_sensitive, what="groupby")
    charge_sort(frame, keys)
    frame.memory(len(value) * (2 * LIST + 2 * ENTRY))
    groups: list[Value] = []
    members: list[Value] = []
    last_key: object = None
    for place in sorted(range(len(keys)), key=keys.__getitem__):
        if not groups or keys[place] != last_key:
            members = []
            groups.append({"grouper": by[place], "list": members})
            last_key = keys[place]
        members.append(value[place])
    return groups


@filters(
    GROUP,
    ("[1, 2, 3, 4, 5] | batch(2)", [[1, 2], [3, 4], [5]]),
    ("[1, 2, 3] | batch(2, 0)", [[1, 2], [3, 0]]),
)
def batch(frame: Frame, value: list[Value], linecount: int, fill_with: Value = None) -> list[Value]:
    """Lists of `linecount` items each; the last one is filled with `fill_with`, if given."""
    if linecount < 1:
        raise TemplateError("linecount of batch is 1 or more", code=TemplateError.VALUE)
    count = -(-len(value) // linecount)
    frame.items(len(value) + count)
    frame.work(count * 2)
    frame.memory(count * LIST)
    rows = [value[start : start + linecount] for start in range(0, len(value), linecount)]
    if rows and fill_with is not None:
        missing = linecount - len(rows[-1])
        frame.items(missing)
        rows[-1] = rows[-1] + [fill_with] * missing
    return [*rows]


@filters(
    GROUP,
    ("[1, 2, 3, 4, 5] | slice(2)", [[1, 2, 3], [4, 5]]),
    ("[1, 2, 3] | slice(2, 0)", [[1, 2], [3, 0]]),
)
def slice_(frame: Frame, value: list[Value], slices: int, fill_with: Value = None) -> list[Value]:
    """So many lists of about the same length, one after the other."""
    if slices < 1:
        raise TemplateError("slices of slice is 1 or more", code=TemplateError.VALUE)
    frame.items(len(value) + slices * 2)
    frame.memory(slices * LIST)
    each, more = divmod(len(value), slices)
    rows: list[Value] = []
    start = 0
    for number in range(slices):
        end = start + each + (number < more)
        short = fill_with is not None and more and number >= more
        rows.append([*value[start:end], fill_with] if short else value[start:end])
        start = end
    return rows


@filters(
    GROUP,
    ("[1, [2, [3]]] | flatten", [1, 2, 3]),
    ("[1, [2, [3]]] | flatten(1)", [1, 2, [3]]),
)
def flatten(frame: Frame, value: list[Value], levels: int | None = None) -> list[Value]:
    """The items of lists inside the list in place of them, all the way down or `levels` deep."""
    depth = LIMITS.data_depth if levels is None else levels
    flat = value
    for _ in range(min(depth, LIMITS.data_depth + 1)):
        frame.items(len(flat))
        if not any(isinstance(one, list) for one in flat):
            return flat
        longer: list[Value] = []
        for one in flat:
            if isinstance(one, list):
                frame.items(len(one))
                longer += one
            else:
                longer.append(one)
        flat = longer
    if levels is None:
        raise TemplateError("the list is nested too deep to flatten", code=TemplateError.BUDGET)
    return flat


@filters(GROUP, ("[1, 2] | zip(['a', 'b', 'c'])", [[1, "a"], [2, "b"]]))
def zip_(frame: Frame, value: list[Value], *others: Value) -> list[Value]:
    """Lists of the items at the same place of each list, as long as the shortest one."""
    columns: list[list[Value]] = [value]
    for other in others:
        if not isinstance(other, list):
            raise TemplateError(f"zip takes lists, not {type_name(other)}")
        columns.append(other)
    count = min(map(len, columns))
    frame.items(count * (len(columns) + 2))
    frame.memory(count * LIST)
    return [[*row] for row in zip(*columns, strict=False)]


@filters(
    GROUP,
    ("[1, 2, 3] | intersect([2, 3, 4])", [2, 3]),
)
def intersect(frame: Frame, value: list[Value], other: list[Value]) -> list[Value]:
    """The items, without repetitions, that also stand in `other`."""
    wanted = _known(frame, other)
    return [one for key, one in _by_key(frame, value) if key in wanted]


@filters(GROUP, ("[1, 2, 3] | difference([2])", [1, 3]))
def difference(frame: Frame, value: list[Value], other: list[Value]) -> list[Value]:
    """The items, without repetitions, that do not stand in `other`."""
    unwanted = _known(frame, other)
    return [one for key, one in _by_key(frame, value) if key not in unwanted]


@filters(GROUP, ("[1, 2] | union([2, 3])", [1, 2, 3]))
def union(frame: Frame, value: list[Value], other: list[Value]) -> list[Value]:
    """The items of both lists, without repetitions."""
    frame.items(len(value) + len(other))
    return [one for _, one in _by_key(frame, value + other)]


def _known(frame: Frame, values: list[Value]) -> set[object]:
    _charge_table(frame, len(values))
    return {_folded(frame, one, True) for one in values}


def _by_key(frame: Frame, values: list[Value]) -> list[tuple[object, Value]]:
    """Each different item once, with what stands for it."""
    _charge_table(frame, len(values))
    table: dict[object, Value] = {}
    for one in values:
        table.setdefault(_folded(frame, one, True), one)
    frame.memory(len(table) * LIST)
    return [*table.items()]
