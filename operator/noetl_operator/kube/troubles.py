"""What holds up the Pods of executions, in words, for their statuses.

The launcher notes troubles while it looks; when the look is over, those of the look before are
forgotten, and whoever shows them is told where something changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from noetl_operator.live import Live, UnknownExecution

KEYCHAIN = ""
"""Stands for the check of the keychain, which is no step."""


class Troubles:
    """By execution and step."""

    def __init__(self, live: Live, changed: Callable[[str], None]) -> None:
        self._live, self._changed = live, changed
        self._pools: dict[str, dict[str, str]] = defaultdict(dict)
        self._steps: dict[str, dict[str, str]] = defaultdict(dict)
        self._told: dict[str, dict[str, str]] = {}

    def of(self, execution_id: str) -> Mapping[str, str]:
        """Step → words; the empty step is the check of the keychain."""
        return self._told.get(execution_id, {})

    def pool(self, execution_id: str, pool: str, words: str) -> None:
        """All steps of an execution that wait in a pool are held up."""
        self._pools[execution_id][pool] = words

    def step(self, execution_id: str, step: str | None, words: str) -> None:
        self._steps[execution_id][step or KEYCHAIN] = words

    def clear(self) -> None:
        self._pools.clear()
        self._steps.clear()

    async def publish(self) -> None:
        """The look is over."""
        now: dict[str, dict[str, str]] = {}
        for execution_id in self._pools.keys() | self._steps.keys():
            by_step = await self._by_step(execution_id, self._pools.get(execution_id, {}))
            now[execution_id] = by_step | self._steps.get(execution_id, {})
        before, self._told = self._told, now
        self.clear()
        for execution_id in before.keys() | now.keys():
            if before.get(execution_id) != now.get(execution_id):
                self._changed(execution_id)

    async def _by_step(self, execution_id: str, pools: Mapping[str, str]) -> dict[str, str]:
        if not pools:
            return {}
        try:
            execution = await self._live.get(execution_id)
        except UnknownExecution:
            return {}
        steps = [KEYCHAIN, *execution.program.steps]
        found = {step: pools.get(execution.request.pool_of(step)) for step in steps}
        return {step: words for step, words in found.items() if words}
