"""What a leased run lends to the templates of its pipelines: the scopes of rule B4.

The worker makes one `RunScope` per lease and keeps it for all iterations of a local loop, so that
what one of them writes to `ctx` is there for the next (rule K28).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from noetl_core.engine import ids
from noetl_core.pipeline.references import RefCache
from noetl_core.values import Value


class CtxView:
    """`ctx` as a lease sees it: as it stood when it was leased, plus its own accepted writes.

    A write makes a new mapping: whoever read the old one keeps what was read.
    """

    __slots__ = ("value",)

    def __init__(self, value: dict[str, Value] | None = None) -> None:
        self.value: dict[str, Value] = value or {}

    def write(self, patch: dict[str, Value]) -> None:
        self.value = {**self.value, **patch}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScope:
    """Everything of a leased run that its templates may read."""

    run_id: str
    execution: dict[str, Value]
    """`{id, name, namespace}`."""
    workload: dict[str, Value] = field(default_factory=dict)
    args: dict[str, Value] = field(default_factory=dict)
    ctx: CtxView = field(default_factory=CtxView)
    keychain: dict[str, Value] = field(default_factory=dict)
    """Read anew for every task: the worker may refresh its entries while the run goes on."""
    cache: RefCache = field(default_factory=RefCache)

    def names(self) -> dict[str, Value]:
        """The scopes that all templates in the worker see, `iter` and the pipeline's aside."""
        return {
            "workload": self.workload,
            "ctx": self.ctx.value,
            "args": self.args,
            "execution": self.execution,
            "execution_id": self.execution.get("id"),
        }


@dataclass(frozen=True, slots=True)
class Iteration:
    """One innermost iteration of a loop."""

    path: str
    """`"7"`, nested `"2.5"` (rule K27)."""
    iter: dict[str, Value]
    """`iter` as templates see it, with `parent` inside (rule E4)."""


def iter_chain(iters: Iterable[dict[str, Value]]) -> dict[str, Value]:
    """`iter` of the innermost of these iterations, given outermost first."""
    chain: dict[str, Value] = {}
    for one in iters:
        chain = {**one, "parent": chain} if chain else dict(one)
    return chain


def idempotency_key(run_id: str, iteration: str | None, label: str, entry: int) -> str:
    """Names what a task is about to do, for whoever must not do it twice.

    Retries and redeliveries of one entry into a task share it; entering the task again by a jump
    gives another. It does not depend on how often earlier tasks were tried.
    """
    return ids.task_key(run_id, f"{iteration or ''}/{label}/{entry}")
