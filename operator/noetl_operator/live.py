"""Executions that are in motion, kept ready in memory: their program and their state.

Only a cache: whatever is here can be read again from the store. The router fills it, and drops an
execution whenever a commit about it did not go as expected.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from noetl_core.engine.program import Program
from noetl_core.engine.state import State
from noetl_core.layers import merge
from noetl_core.load import load_data
from noetl_operator.store.durable import DurableStore
from noetl_operator.store.port import NewExecution, Snapshot

MOST_PATTERNS = 200
"""Compiled playbooks that are kept."""


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

    def __init__(self, store: DurableStore, capacity: int) -> None:
        self._store = store
        self._capacity = capacity
        self._held: OrderedDict[str, Execution] = OrderedDict()
        self._patterns: OrderedDict[str, Program] = OrderedDict()

    async def get(self, execution_id: str) -> Execution:
        found = self._held.get(execution_id)
        if found is None:
            snapshot = await self._store.load(execution_id)
            if snapshot is None:
                raise UnknownExecution(execution_id)
            found = self._hold(snapshot)
        self._held.move_to_end(execution_id)
        return found

    async def warm(self, executions: Iterable[str]) -> None:
        """Read those that are not at hand, all at once."""
        missing = [one for one in executions if one not in self._held]
        if len(missing) > 1:
            for snapshot in await self._store.load_many(missing):
                self._hold(snapshot)

    def _hold(self, snapshot: Snapshot) -> Execution:
        execution_id = snapshot.request.execution_id
        # Somebody else may have read it meanwhile; there is only one.
        found = self._held.get(execution_id)
        if found is None:
            found = Execution(snapshot.request, self._program(snapshot), snapshot.state)
            self._held[execution_id] = found
            while len(self._held) > self._capacity:
                self._held.popitem(last=False)
        return found

    def _program(self, snapshot: Snapshot) -> Program:
        """Compiled once per playbook; executions differ in little."""
        request = snapshot.request
        pattern = self._patterns.get(request.digest)
        if pattern is None or pattern.playbook is None:
            pattern = self._patterns[request.digest] = program_of(snapshot)
            while len(self._patterns) > MOST_PATTERNS:
                self._patterns.popitem(last=False)
            return pattern
        self._patterns.move_to_end(request.digest)
        execution_id = request.execution_id
        return replace(
            pattern,
            name=request.playbook_name or pattern.playbook.metadata.name,
            workload=merge(pattern.playbook.workload, request.workload),
            execution={"id": execution_id, "name": request.name, "namespace": request.namespace},
            execution_id=execution_id,
        )

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
