"""`playbook`: runs another playbook as a child execution (rules I4, K37)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.values import Value
from noetl_core.wire.children import NOT_FOUND
from noetl_worker.tools.base import ChildEnd, ToolContext


class PlaybookArgs(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    playbook: str = Field(min_length=1)
    workload: dict[str, object] | None = None
    wait: StrictBool | None = None


class PlaybookTool:
    """Starts a child and, unless told otherwise, waits for its end."""

    kind: ClassVar[str] = "playbook"
    Args: ClassVar[type[BaseModel]] = PlaybookArgs

    async def run(self, args: PlaybookArgs, ctx: ToolContext) -> Outcome:
        wait = args.wait is not False
        given = ctx.call.inputs.get("workload")
        workload: dict[str, Value] = given if isinstance(given, dict) else {}
        end = await ctx.children.run(
            ctx.call.label, ctx.call.task_run, args.playbook, workload, wait=wait
        )
        if end.refused is not None:
            source = end.refused.source or self.kind
            return Outcome(error=replace(end.refused, source=source))
        if not wait:
            return Outcome(result={"execution": end.name, "execution_id": end.execution_id})
        if end.phase == "Succeeded":
            return Outcome(result=end.result)
        return Outcome(result=end.result, error=_failure(args.playbook, end))


def _failure(playbook: str, end: ChildEnd) -> TaskError:
    if end.reason == NOT_FOUND:
        message = end.message or f"there is no playbook {playbook}"
        return TaskError(
            kind=ErrorKind.NOT_FOUND, code="PLAYBOOK", message=message, source="playbook"
        )
    who = end.name or end.execution_id or playbook
    message = f"the child execution {who} of {playbook} ended {end.phase}, {end.reason}"
    if end.message:
        message += f": {end.message}"
    return TaskError(
        kind=ErrorKind.CHILD_FAILED, code=end.reason, message=message, source="playbook"
    )
