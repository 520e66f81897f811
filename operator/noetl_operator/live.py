"""Executions that are in motion, kept ready in memory: their program and their state.

Only a cache: whatever is here can be read again from the store. The router fills it, and drops an
execution whenever a commit about it did not go as expected.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from noetl_core.engine.program import Program
from noetl_core.engine.state import State
from noetl_core.load import load_data
from noetl_operator.store.port import EventStore, NewExecution, Snapshot


@dataclass(slots=True)
class Execution:
    """One live execution."""

    request: NewExecution
    program: Program
    state: State


class UnknownExecution(LookupError):
    """There is no execution of this id."""


class Live:
    """The most recently used executions, at most `capacity` of them."""

    def __init__(self, store: EventStore, capacity: int) -> None:
        self._store = store
        self._capacity = capacity
        self._held: OrderedDict[str, Execution] = OrderedDict()

    async def get(self, execution_id: str) -> Execution:
        found = self._held.get(execution_id)
        if found is None:
            snapshot = await self._store.load(execution_id)
            if snapshot is None:
                raise UnknownExecution(execution_id)
            found = Execution(snapshot.request, program_of(snapshot), snapshot.state)
            self._held[execution_id] = found
            while len(self._held) > self._capacity:
                self._held.popitem(last=False)
        self._held.move_to_end(execution_id)
        return found

    def drop(self, execution_id: str) -> None:
        self._held.pop(execution_id, None)

    def clear(self) -> None:
        self._held.clear()


def program_of(snapshot: Snapshot) -> Program:
    """The program of a stored execution; its playbook was checked before it was stored."""
    request = snapshot.request
    return Program.of(
        load_data(request.document).playbook if request.document else None,
        execution_id=request.execution_id,
        name=request.name,
        namespace=request.namespace,
        workload=request.workload,
        digest=request.digest,
        playbook_name=request.playbook_name,
    )
