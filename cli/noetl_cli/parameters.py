"""Arguments and options of the common types, read without the pydantic that typer would import.

Texts, lists of texts, numbers and closed sets are read here, which halves the time of a small
command and lets a wrong word of a set name the nearest right one. Every other type stays typer's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from noetl_cli.errors import UsageError
from noetl_core.problems import nearest

if TYPE_CHECKING:
    from typer._click import Context, Parameter


def lightened(params: list[Parameter]) -> list[Parameter]:
    """The parameters of a command, with our readers where their types allow it."""
    for param in params:
        descriptor: Any = getattr(param, "type_descriptor", None)
        reader = _reader(descriptor)
        if reader is not None and not descriptor.is_ranged:
            param._runtime_param = reader  # type: ignore[attr-defined]  # typer's own cache of it
    return params


def _reader(descriptor: Any) -> Reader | None:
    if descriptor is None or descriptor.is_path or descriptor.is_file:
        return None
    annotation = descriptor.annotation
    if annotation in (str, list[str], int, float, bool):
        return Reader(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return Reader(annotation)
    return None


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the values of one parameter."""

    annotation: Any

    def coerce(self, value: Any, param: Any, ctx: Context) -> Any:
        """What typer calls: words of the command line in, the parameter's value out."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if isinstance(value, (list, tuple)):
            return [str(item) for item in value]
        if self.annotation in (str, list[str]) or isinstance(value, self.annotation):
            return value
        return self._read(str(value), param, ctx)

    def _read(self, word: str, param: Any, ctx: Context) -> Any:
        try:
            return self.annotation(word)
        except ValueError:
            pass
        name = max(param.opts, key=len) if param.param_type_name == "option" else "the argument"
        if self.annotation in (int, float):
            raise UsageError(
                f"{name} takes a number, not `{word}`", f"see `{ctx.command_path} --help`"
            )
        words = [str(member.value) for member in self.annotation]
        close = nearest(word, words)
        hint = f"did you mean `{close}`?" if close else f"see `{ctx.command_path} --help`"
        raise UsageError(f"{name} takes {' or '.join(words)}, not `{word}`", hint)
