"""The data plane's core: what a worker does with a leased run, without doing any of it itself.

    plan = compile_plan(playbook, step)         once per playbook digest and step
    pipeline(plan, run, iteration)              a generator: yields requests, receives answers
    LocalLoop(plan, run, items, window)         which iterations of a local loop may start now

`RunScope` is what the lease lends to templates; `requests` says what a driver must be able to do.
"""

from noetl_core.pipeline.loops import LocalLoop
from noetl_core.pipeline.plan import Plan, compile_plan
from noetl_core.pipeline.references import RefCache
from noetl_core.pipeline.requests import (
    Answer,
    Emit,
    Fetch,
    Interrupted,
    Keep,
    PatchAnswer,
    PatchCtx,
    Pipeline,
    PipelineEnd,
    Request,
    RunTask,
    Sleep,
)
from noetl_core.pipeline.run import pipeline
from noetl_core.pipeline.scopes import CtxView, Iteration, RunScope, iter_chain

__all__ = [
    "Answer",
    "CtxView",
    "Emit",
    "Fetch",
    "Interrupted",
    "Iteration",
    "Keep",
    "LocalLoop",
    "PatchAnswer",
    "PatchCtx",
    "Pipeline",
    "PipelineEnd",
    "Plan",
    "RefCache",
    "Request",
    "RunScope",
    "RunTask",
    "Sleep",
    "compile_plan",
    "iter_chain",
    "pipeline",
]
