"""Child executions from the worker's side: ask for one, wait for its end (rule I4).

A run that waits holds no slot: the worker takes other commands meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager

from noetl_core.engine.triggers import Verdict
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.values import Value
from noetl_core.wire import ChildAnswer, ChildRequest, Heartbeat, Held
from noetl_core.wire import ChildEnd as WireEnd
from noetl_worker.client import PAUSES_S, ClientError, OperatorClient, Refused
from noetl_worker.tools.base import ChildEnd

FIRST_LOOK_S = 0.02
LAST_LOOK_S = 1.0
"""A child is asked about soon at first, then less and less often."""


class LeaseChildren:
    """Children of the runs of one lease."""

    def __init__(
        self,
        client: OperatorClient,
        held: Held,
        iteration: str | None,
        without_slot: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._client, self._held, self._iteration = client, held, iteration
        self._without_slot = without_slot

    async def run(
        self, task: str, task_run: int, playbook: str, workload: dict[str, Value], *, wait: bool
    ) -> ChildEnd:
        """Start a child execution; with `wait`, return when it is finished."""
        request = ChildRequest(
            epoch=self._held.epoch,
            task=task,
            task_run=task_run,
            playbook=playbook,
            iteration=self._iteration,
            workload=workload,
            wait=wait,
        )
        answer = await self._ask(request)
        if answer.verdict is not Verdict.ACCEPTED or answer.child is None:
            kind = ErrorKind.LIMIT if answer.verdict is Verdict.REFUSED else ErrorKind.CANCELLED
            message = answer.message or "the run is in other hands"
            return ChildEnd(
                execution_id=None,
                refused=TaskError(kind=kind, message=message, code="CHILD", source="playbook"),
            )
        if not wait:
            return ChildEnd(execution_id=answer.child, name=answer.execution)
        end = answer.end
        if end is None:
            with self._without_slot():
                end = await self._end_of(answer.child)
        return ChildEnd(
            execution_id=end.child,
            name=answer.execution,
            phase=end.phase,
            reason=end.reason,
            message=end.message,
            result=end.result,
        )

    async def _ask(self, request: ChildRequest) -> ChildAnswer:
        attempt = 0
        while True:
            try:
                return await self._client.child(self._held, request)
            except Refused as refused:
                return ChildAnswer(verdict=Verdict.REFUSED, message=str(refused))
            except ClientError:
                await asyncio.sleep(PAUSES_S[min(attempt, len(PAUSES_S) - 1)])
                attempt += 1

    async def _end_of(self, child: str) -> WireEnd:
        pause = FIRST_LOOK_S
        while True:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LAST_LOOK_S)
            try:
                answer = await self._client.heartbeat(
                    Heartbeat(worker=self._held.lease_id, children=(child,))
                )
            except ClientError:
                continue
            if answer.children:
                return answer.children[0]
