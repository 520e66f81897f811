"""`noop`: a place for a policy. Its `result`, if it has one; else `_prev` passes (rules D5, I7)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from noetl_core.outcomes import Outcome
from noetl_core.values import Value
from noetl_worker.tools.base import ToolContext


class NoopArgs(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    result: object = None


class NoopTool:
    """Does nothing, well."""

    kind: ClassVar[str] = "noop"
    Args: ClassVar[type[BaseModel]] = NoopArgs

    async def run(self, args: NoopArgs, ctx: ToolContext) -> Outcome:
        # That `_prev` passes where there is no result is the pipeline's doing.
        result: Value = ctx.call.inputs.get("result")
        return Outcome(result=result)
