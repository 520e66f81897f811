"""Filters and tests in expressions: found by name, arguments matched, types checked.

Each use becomes a `Prepare`: given a frame it evaluates the arguments once and gives a function
of one value. That makes `x | upper` and `xs | map('upper')` the same thing, and lets the filters
that take a filter (`map`) or a test (`select`) nest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from jinja2 import nodes

from noetl_core.templates import operators
from noetl_core.templates.advice import advise_filter, advise_test
from noetl_core.templates.coerce import coerce_as
from noetl_core.templates.errors import TemplateError, nearest
from noetl_core.templates.filters import filters, tests
from noetl_core.templates.filters.common import attribute_of
from noetl_core.templates.frame import Frame
from noetl_core.templates.registry import REQUIRED, Callee, Parameter, Registry
from noetl_core.templates.undefined import Eval, Operand, Undefined

if TYPE_CHECKING:
    from noetl_core.templates.compiler import Compiler
    from noetl_core.values import Value

Apply: TypeAlias = "Callable[[Operand], Operand]"
Prepare: TypeAlias = "Callable[[Frame], Apply]"

TRUE_OF_UNDEFINED = frozenset(("empty", "ne"))
"""Tests that an undefined value passes in a `when`, and a missing attribute in `selectattr`."""

INNER = 10
"""Work of applying one filter or test to one item."""


class Use(NamedTuple):
    """One use of a filter or test: its name, its arguments as written, and its place."""

    name: str
    args: list[nodes.Expr]
    kwargs: dict[str, nodes.Expr]
    node: nodes.Node


def compile_filter(compiler: Compiler, node: nodes.Filter) -> Eval:
    """`value | name(arguments)`."""
    if node.node is None:
        compiler.problem(node, "B6.syntax", "the filter has no value in front of it")
        return lambda _: None
    value = compiler.compile(node.node)
    prepare = _prepare_filter(compiler, _use(compiler, node))
    return lambda frame: prepare(frame)(value(frame))


def compile_test(compiler: Compiler, node: nodes.Test) -> Eval:
    """`value is name(arguments)`."""
    value = compiler.compile(node.node)
    prepare = _prepare_test(compiler, _use(compiler, node))
    return lambda frame: prepare(frame)(value(frame))


def _use(compiler: Compiler, node: nodes.Filter | nodes.Test) -> Use:
    if node.dyn_args is not None or node.dyn_kwargs is not None:
        message = f"`{node.name}` takes its arguments one by one, not with `*` or `**`"
        compiler.problem(node, "B6.filter-args", message)
    args = [arg for arg in node.args if isinstance(arg, nodes.Expr)]
    kwargs: dict[str, nodes.Expr] = {}
    for pair in node.kwargs:
        if isinstance(pair, nodes.Keyword):
            kwargs[pair.key] = pair.value
    return Use(node.name, args, kwargs, node)


def _prepare_filter(compiler: Compiler, use: Use) -> Prepare:
    special = _SPECIAL.get(use.name)
    callee = _find(compiler, use, filters)
    if callee is None:
        return _nothing
    return special(compiler, use) if special else _ordinary(compiler, use, callee)


def _ordinary(compiler: Compiler, use: Use, callee: Callee) -> Prepare:
    arguments = bind(compiler, use, callee)
    if not arguments:
        return lambda frame: lambda value: callee.call(frame, value, ())

    def prepare(frame: Frame) -> Apply:
        given = [argument(frame) for argument in arguments]
        return lambda value: callee.call(frame, value, given)

    return prepare


def _prepare_test(compiler: Compiler, use: Use, *, lenient: bool = False) -> Prepare:
    """A test; `lenient` where undefined is not an error even in a value."""
    callee = _find(compiler, use, tests)
    if callee is None:
        return _nothing
    arguments = bind(compiler, use, callee)

    def prepare(frame: Frame) -> Apply:
        given = [argument(frame) for argument in arguments]

        def judge(value: Operand) -> Operand:
            if isinstance(value, Undefined) and not callee.keeps_undefined:
                if not lenient:
                    operators.is_missing(frame, value)
                return callee.name in TRUE_OF_UNDEFINED
            return callee.call(frame, value, given)

        return judge

    return prepare


def _nothing(_: Frame) -> Apply:
    raise AssertionError("a template with problems is never evaluated")


def _find(compiler: Compiler, use: Use, registry: Registry) -> Callee | None:
    callee = registry.callees.get(use.name)
    if callee is None:
        word = registry.word
        advice = advise_filter(use.name) if word == "filter" else advise_test(use.name)
        near = nearest(use.name, registry.callees)
        hint = advice or (f"did you mean `{near}`?" if near else "see the list of filters")
        message = f"there is no {word} `{use.name}`"
        compiler.problem(use.node, f"B6.{word}", message, hint=hint, snippet=use.name)
    return callee


def bind(compiler: Compiler, use: Use, callee: Callee) -> list[Eval]:
    """The arguments of a use in the order of the signature; what does not fit is a problem."""
    given: list[nodes.Expr | None] = list(use.args)
    left = dict(use.kwargs)
    for position, parameter in enumerate(callee.parameters):
        if parameter.variadic:
            continue
        if parameter.name in left and position >= len(use.args):
            given += [None] * (position - len(given))
            given.append(left.pop(parameter.name))
        elif parameter.default is REQUIRED and position >= len(given):
            _misfit(compiler, use, callee, f"needs `{parameter.name}`")
            return []
    variadic = any(parameter.variadic for parameter in callee.parameters)
    if left:
        _misfit(compiler, use, callee, f"does not take `{next(iter(left))}=`")
    elif len(given) > len(callee.parameters) and not variadic:
        _misfit(compiler, use, callee, f"takes {len(callee.parameters)} arguments at most")
    else:
        return [
            _argument(compiler, use, callee, one, position) for position, one in enumerate(given)
        ]
    return []


def _misfit(compiler: Compiler, use: Use, callee: Callee, message: str) -> None:
    compiler.problem(
        use.node,
        "B6.filter-args",
        f"`{use.name}` {message}",
        hint=f"write `{callee.signature}`",
        snippet=use.name,
    )


def _argument(
    compiler: Compiler, use: Use, callee: Callee, node: nodes.Expr | None, position: int
) -> Eval:
    parameter = callee.parameters[min(position, len(callee.parameters) - 1)]
    if node is None:
        default = parameter.default
        assert default is None or isinstance(default, bool | int | float | str)
        return lambda _: default
    if isinstance(node, nodes.Const):
        _check_constant(compiler, use, callee, parameter, node.value)
    return compiler.compile(node)


def _check_constant(
    compiler: Compiler, use: Use, callee: Callee, parameter: Parameter, value: Value
) -> None:
    """A constant of the wrong type is known to fail before anything runs."""
    try:
        coerce_as(Frame({}, strict=True), parameter.kind, value, callee.name, parameter.name)
    except TemplateError as error:
        compiler.problem(
            use.node, "B6.filter-args", error.message, hint=error.hint, snippet=use.name
        )


def _default(compiler: Compiler, use: Use) -> Prepare:
    """`default`: the other value is only evaluated where it is needed."""
    arguments = bind(compiler, use, filters.callees["default"])
    other = arguments[0] if arguments else _empty_text
    also_false = arguments[1] if len(arguments) > 1 else None

    def prepare(frame: Frame) -> Apply:
        def choose(value: Operand) -> Operand:
            if isinstance(value, Undefined):
                return other(frame)
            if also_false and not value and operators.truth(frame, also_false(frame)):
                return other(frame)
            return value

        return choose

    return prepare


def _empty_text(_: Frame) -> Operand:
    return ""


def _named(compiler: Compiler, use: Use, skip: int, word: str) -> Use | None:
    """The filter or test that `use` names in its argument number `skip` (B6)."""
    node = use.args[skip]
    if isinstance(node, nodes.Const) and isinstance(node.value, str):
        return Use(node.value, use.args[skip + 1 :], use.kwargs, use.node)
    message = f"the name of the {word} in `{use.name}(…)` must be a text in quotes"
    compiler.problem(use.node, f"B6.{word}", message, hint="write it out", snippet=use.name)
    return None


def _map(compiler: Compiler, use: Use) -> Prepare:
    """`map('filter', …)` and `map(attribute='name', default=…)`."""
    if use.args:
        inner = _named(compiler, use, 0, "filter")
        prepare: Prepare = _nothing
        if inner:
            prepare = compiler.deeper(use.node, lambda: _prepare_filter(compiler, inner), prepare)
        return _over(prepare)
    if "attribute" not in use.kwargs:
        _misfit(compiler, use, filters.callees["map"], "needs a filter's name or `attribute=`")
    elif not use.kwargs.keys() <= {"attribute", "default"}:
        _misfit(compiler, use, filters.callees["map"], "takes `attribute=` and `default=`")
    else:
        attribute = compiler.compile(use.kwargs["attribute"])
        default = compiler.compile(use.kwargs["default"]) if "default" in use.kwargs else None
        return _over(lambda frame: _reader(frame, attribute, default), work=1)
    return _nothing


def _over(inner: Prepare, work: int = INNER) -> Prepare:
    def prepare(frame: Frame) -> Apply:
        apply = inner(frame)

        def mapped(value: Operand) -> Operand:
            values = _list(frame, value, "map")
            frame.items(len(values))
            frame.work(len(values) * work)
            return [operators.as_value(frame, apply(one)) for one in values]

        return mapped

    return prepare


def _list(frame: Frame, value: Operand, callee: str) -> list[Value]:
    if isinstance(value, Undefined):
        operators.is_missing(frame, value)
        return []
    checked = coerce_as(frame, "list[Value]", value, callee, "")
    assert isinstance(checked, list)
    return checked


def _reader(frame: Frame, attribute: Eval, default: Eval | None) -> Apply:
    """Reads an attribute (`a.b.0`) of each item it is given."""
    read = attribute_of(operators.as_value(frame, attribute(frame)))
    if default is None:
        return read
    other = default(frame)

    def read_or(value: Operand) -> Operand:
        found = read(value)
        return other if isinstance(found, Undefined) else found

    return read_or


def _select(wanted: bool, by_attribute: bool) -> Callable[[Compiler, Use], Prepare]:
    """`select`, `reject`, `selectattr`, `rejectattr`."""

    def compile_select(compiler: Compiler, use: Use) -> Prepare:
        if by_attribute and not use.args:
            _misfit(compiler, use, filters.callees[use.name], "needs the name of an attribute")
            return _nothing
        first = 1 if by_attribute else 0
        attribute = compiler.compile(use.args[0]) if by_attribute else None
        test: Prepare = _truth
        if len(use.args) > first:
            named = _named(compiler, use, first, "test")
            test = _prepare_test(compiler, named, lenient=True) if named else _nothing
        elif use.kwargs:
            _misfit(compiler, use, filters.callees[use.name], "takes no such argument")
        return lambda frame: _chooser(frame, use.name, attribute, test, wanted)

    return compile_select


def _truth(_: Frame) -> Apply:
    return lambda value: not isinstance(value, Undefined) and bool(value)


def _chooser(frame: Frame, name: str, attribute: Eval | None, test: Prepare, wanted: bool) -> Apply:
    judge = test(frame)
    read = _reader(frame, attribute, None) if attribute else None

    def choose(value: Operand) -> Operand:
        values = _list(frame, value, name)
        frame.items(len(values))
        frame.work(len(values) * (4 if test is _truth else INNER))
        if read is None:
            return [one for one in values if bool(judge(one)) is wanted]
        return [one for one in values if bool(judge(read(one))) is wanted]

    return choose


_SPECIAL: dict[str, Callable[[Compiler, Use], Prepare]] = {
    "default": _default,
    "d": _default,
    "map": _map,
    "select": _select(True, False),
    "reject": _select(False, False),
    "selectattr": _select(True, True),
    "rejectattr": _select(False, True),
}
