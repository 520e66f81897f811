"""The allow-list of filters and tests (B6).

A filter is a function `(frame, value, *arguments)` registered by `@filters`, a test one registered
by `@tests`. Its annotations are the types it takes, its docstring is its entry in the reference
page, its examples are run by the tests. Arguments are matched with the signature when a template
is compiled and checked against the annotations when it runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ParamSpec, TypeAlias, TypeVar, Unpack, cast

from noetl_core.templates.coerce import EMPTY, coerce_as
from noetl_core.templates.frame import Frame
from noetl_core.templates.undefined import Operand, Undefined, undefined_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from noetl_core.values import Value

P = ParamSpec("P")
R = TypeVar("R")
Run: TypeAlias = "Callable[[Frame, Unpack[tuple[Operand, ...]]], Operand]"

REQUIRED = object()


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a filter or test."""

    name: str
    kind: str
    """The annotation as written: `str`, `int`, `list[Value]` …"""
    default: object = REQUIRED
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Callee:
    """A filter or a test: what it is called, what it takes, what it does."""

    name: str
    group: str
    doc: str
    takes: str
    """The type of the value in front of the bar."""
    parameters: tuple[Parameter, ...]
    run: Run
    examples: tuple[tuple[str, Value], ...]
    aliases: tuple[str, ...] = ()
    keeps_undefined: bool = False
    """Whether it takes an undefined value as such (`default`, `defined`)."""

    @property
    def signature(self) -> str:
        """As the reference page and messages write it: `replace(old, new, count=-1)`."""
        inner = ", ".join(_written(parameter) for parameter in self.parameters)
        return f"{self.name}({inner})" if inner else self.name

    def call(self, frame: Frame, value: Operand, arguments: Sequence[Operand]) -> Operand:
        """Check types and run; what is undefined is empty in a `when` and an error in a value."""
        if value.__class__ is Undefined and not self.keeps_undefined:
            value = _settle(frame, value, self.takes)
        return self.run(
            frame,
            coerce_as(frame, self.takes, value, self.name, ""),
            *self.checked(frame, arguments),
        )

    def checked(self, frame: Frame, arguments: Sequence[Operand]) -> list[Operand]:
        """The arguments, each of the type that its parameter wants."""
        checked: list[Operand] = []
        parameters = self.parameters
        for position, argument in enumerate(arguments):
            parameter = parameters[min(position, len(parameters) - 1)]
            if argument.__class__ is Undefined and parameter.kind != "Operand":
                argument = _settle(frame, argument, parameter.kind)
            checked.append(coerce_as(frame, parameter.kind, argument, self.name, parameter.name))
        return checked


def _settle(frame: Frame, missing: Undefined, kind: str) -> Value:
    if frame.strict:
        raise undefined_error(missing)
    return EMPTY[kind]()


def _written(parameter: Parameter) -> str:
    if parameter.variadic:
        return f"*{parameter.name}"
    if parameter.default is REQUIRED:
        return parameter.name
    default = repr(parameter.default)
    if parameter.default is None or isinstance(parameter.default, bool):
        default = default.lower()
    return f"{parameter.name}={default}"


@dataclass(slots=True)
class Registry:
    """All filters, or all tests, by name; filled while the modules that define them load."""

    word: str
    callees: dict[str, Callee] = field(default_factory=dict)

    def __call__(
        self,
        group: str,
        *examples: tuple[str, Value],
        name: str = "",
        aliases: tuple[str, ...] = (),
        keeps_undefined: bool = False,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Register a function under its own name (or `name`) and its aliases."""

        def register(function: Callable[P, R]) -> Callable[P, R]:
            takes, parameters = _signature(function)
            callee = Callee(
                name=name or function.__name__.rstrip("_"),
                group=group,
                doc=" ".join((function.__doc__ or "").split()),
                takes=takes,
                parameters=parameters,
                # The one place where types are taken on trust: `Callee.call` passes what the
                # annotations name, by position.
                run=cast("Run", function),
                examples=examples,
                aliases=aliases,
                keeps_undefined=keeps_undefined,
            )
            for word in (callee.name, *aliases):
                self.callees[word] = callee
            return function

        return register


def _signature(function: Callable[P, R]) -> tuple[str, tuple[Parameter, ...]]:
    """The type of the value, and the arguments after it, from a function's annotations."""
    _, value, *rest = inspect.signature(function).parameters.values()
    parameters = tuple(
        Parameter(
            one.name.rstrip("_"),
            str(one.annotation),
            REQUIRED if one.default is one.empty else one.default,
            one.kind is one.VAR_POSITIONAL,
        )
        for one in rest
    )
    return str(value.annotation), parameters


filters = Registry("filter")
tests = Registry("test")
