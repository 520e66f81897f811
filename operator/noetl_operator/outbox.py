"""What committed transitions ask for outside of their own execution: children and their parents.

Each action is done at least once and is safe to do twice: a child's id is derived, a child that was
cancelled stays cancelled, and a parent recognises an end it was told before.
"""

from __future__ import annotations

from typing import Protocol, assert_never

from noetl_core.engine.state import Phase
from noetl_core.engine.triggers import (
    Cancel,
    CancelChild,
    CancelMode,
    ChildEnded,
    CreateChild,
    TellParent,
)
from noetl_core.values import Value
from noetl_operator.live import UnknownExecution
from noetl_operator.router import Router
from noetl_operator.starting import start_of
from noetl_operator.store import port
from noetl_operator.store.durable import DurableStore


class Children(Protocol):
    """Where the playbooks of children come from."""

    async def request(self, action: CreateChild, parent: port.NewExecution) -> port.NewExecution:
        """The child as an execution. A playbook that is not there or not valid still is one: it
        ends at once, with `problems` that say why."""


class Actor:
    """Carries actions out."""

    def __init__(self, store: DurableStore, router: Router, children: Children) -> None:
        self._store, self._router, self._children = store, router, children

    async def act(self, action: port.Action) -> None:
        effect = action.effect
        match effect:
            case CreateChild():
                await self._create(action.execution_id, effect)
            case CancelChild():
                await self._cancel(effect)
            case TellParent():
                await self._tell(action.execution_id, effect.parent)
            case _:
                assert_never(effect)

    async def _create(self, parent_id: str, effect: CreateChild) -> None:
        parent = await self._store.load(parent_id)
        if parent is None or parent.state.phase is Phase.CANCELLED:
            return
        request = await self._children.request(effect, parent.request)
        await self._store.create(request)
        await self._router.apply(request.execution_id, start_of(request))

    async def _cancel(self, effect: CancelChild) -> None:
        wish = Cancel(mode=CancelMode(effect.mode), by="parent", reason="the parent was cancelled")
        try:
            await self._router.apply(effect.child, wish)
        except UnknownExecution:
            # It was asked for and never made: the request comes first in the outbox.
            return

    async def _tell(self, child: str, parent: dict[str, Value]) -> None:
        snapshot = await self._store.load(child)
        if snapshot is None:
            return
        state = snapshot.state
        ended = ChildEnded(
            child=child,
            phase=state.phase.value,
            reason=state.reason or "",
            message=state.message,
            result=state.result,
        )
        try:
            await self._router.apply(str(parent["execution_id"]), ended)
        except UnknownExecution:
            return
