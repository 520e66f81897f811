"""Finds tools by their kind, checks what tasks give them, and runs them.

Tools, ours and those of others, are entry points of the group `noetl.tools` (name = kind, value = a
class as in `base`). Listing kinds imports none of them. The worker's driver calls `run`; the
checker may ask `kinds` for what is plugged in.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from pydantic import ValidationError

from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.tools import BUILT_IN, ToolKind
from noetl_worker.tools.base import Tool, ToolContext, failed

GROUP = "noetl.tools"
OWN_DISTRIBUTION = "noetl-operator"

_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is no key of this tool",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "dict_type": "must be a mapping",
    "list_type": "must be a list",
    "none_required": "must be null",
    "greater_than": "is too small",
    "greater_than_equal": "is too small",
    "less_than": "is too large",
    "less_than_equal": "is too large",
}
"""What is wrong with a key, by pydantic's name for it. Its own texts may quote what was given, and
that may be a secret."""


class ToolRegistry:
    """The tools that are installed."""

    def __init__(self, points: Mapping[str, EntryPoint] | None = None) -> None:
        self._points = found() if points is None else points
        self._tools: dict[str, Tool] = {}

    def kinds(self) -> list[str]:
        """The kinds that are there, without importing any."""
        return sorted(self._points)

    def get(self, kind: str) -> Tool | None:
        """The tool of a kind, imported on first use; None where there is none."""
        if kind not in self._tools:
            point = self._points.get(kind)
            if point is None:
                return None
            self._tools[kind] = cast("Tool", point.load()())
        return self._tools[kind]

    async def run(self, ctx: ToolContext) -> Outcome:
        """Run the task of a context: exactly one outcome, whatever happens."""
        kind = ctx.call.kind
        try:
            tool = self.get(kind)
            if tool is None:
                return self._unknown(kind)
            args = tool.Args.model_validate(ctx.call.inputs)
        except ValidationError as wrong:
            return failed(ErrorKind.SCHEMA, described(wrong), code="BAD_ARGS", source=kind)
        except Exception as error:
            message = f"the tool `{kind}` cannot be loaded: {type(error).__name__}: {error}"
            return failed(ErrorKind.UNKNOWN, message, code="TOOL_BROKEN", source=kind)
        try:
            return await tool.run(args, ctx)
        except Exception as error:
            said = getattr(error, "error", None)
            if isinstance(said, TaskError):
                # What a tool was given to use may fail, too: a result that cannot be stored.
                return Outcome(error=said)
            name = type(error).__name__
            message = f"the tool `{kind}` failed: {name}: {error}"
            return failed(ErrorKind.UNKNOWN, message, code=f"TOOL_{name}", source=kind)

    def _unknown(self, kind: str) -> Outcome:
        message = f"this worker has no tool `{kind}`; it has {', '.join(self.kinds())}"
        return failed(ErrorKind.NOT_FOUND, message, code="NO_TOOL", source=kind)


def found() -> dict[str, EntryPoint]:
    """Entry points by kind. Ours win: nobody replaces a built-in kind by installing something."""
    points: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=GROUP), key=_rank):
        points.setdefault(point.name, point)
    return points


def _rank(point: EntryPoint) -> tuple[bool, str, str]:
    owner = point.dist.name if point.dist is not None else ""
    return (owner != OWN_DISTRIBUTION, owner, point.value)


def known_kinds() -> dict[str, ToolKind]:
    """The kinds as the checker takes them: the built-in ones, and open ones that are plugged in."""
    plugged = {name: ToolKind(name, None) for name in found() if name not in BUILT_IN}
    return {**BUILT_IN, **plugged}


def described(wrong: ValidationError) -> str:
    """What is wrong with the keys of a task, each by name, without what was given."""
    said = []
    for error in wrong.errors(include_url=False, include_input=False):
        path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error["loc"])
        said.append(f"`{path.removeprefix('.')}` {_words(error['type'], error['msg'])}".strip())
    return "; ".join(dict.fromkeys(said))


def _words(kind: str, message: str) -> str:
    if kind in ("value_error", "assertion_error"):
        return message.split(", ", 1)[-1]
    return _WORDS.get(kind, f"is not valid ({kind})")
