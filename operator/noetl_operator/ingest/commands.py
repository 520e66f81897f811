"""Leased commands as workers get them: with `ctx` as it is now, and what they do not hold yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from noetl_core.engine.triggers import Enqueue
from noetl_core.load import dump
from noetl_core.values import Value
from noetl_core.wire import Command, Knows, unknown_to
from noetl_operator.clock import StoreClock
from noetl_operator.ingest.capability import Capabilities
from noetl_operator.live import Execution
from noetl_operator.router import Router
from noetl_operator.store.port import Leased


@dataclass(frozen=True, slots=True)
class Given:
    """A command in the hands of a worker."""

    execution_id: str
    epoch: int
    command: Enqueue
    stop: bool = False


def given_of(leased: Leased) -> Given:
    body = dict(leased.command)
    iters = body.pop("iters", None) or []
    command = Enqueue(**body, iters=tuple(iters))  # type: ignore[arg-type]  # written from one
    return Given(leased.execution_id, leased.epoch, command, leased.stop)


@dataclass(frozen=True, slots=True)
class Packed:
    """Commands and what goes along with them."""

    commands: tuple[Command, ...]
    playbooks: dict[str, Value]
    workloads: dict[str, Value]


class Packer:
    """Makes messages of leased commands."""

    def __init__(
        self, router: Router, clock: StoreClock, capabilities: Capabilities, ttl_s: float
    ) -> None:
        self._router, self._clock, self._capabilities = router, clock, capabilities
        self._ttl_s = ttl_s

    async def pack(self, given: Sequence[Given], knows: Knows) -> Packed:
        await self._router.warm([one.execution_id for one in given])
        held = {one.execution_id: await self._router.settled(one.execution_id) for one in given}
        commands = tuple(self._command(one, held[one.execution_id]) for one in given)
        digests, executions = unknown_to(knows, commands)
        playbooks: dict[str, Value] = {}
        for execution in held.values():
            playbook = execution.program.playbook
            if execution.program.digest in digests and playbook is not None:
                playbooks.setdefault(execution.program.digest, dump(playbook))
        workloads: dict[str, Value] = {one: held[one].program.workload for one in executions}
        return Packed(commands, playbooks, workloads)

    def _command(self, given: Given, execution: Execution) -> Command:
        command = given.command
        sign = self._capabilities.sign
        return Command.of_enqueue(
            command,
            epoch=given.epoch,
            capability=sign(given.execution_id, command.lease_id, given.epoch),
            ttl_s=self._ttl_s,
            execution=execution.program.execution,
            digest=execution.program.digest,
            ctx=execution.state.ctx,
            remaining_s=self._remaining(command.deadline_at),
            stop=given.stop,
        )

    def _remaining(self, deadline_at: str | None) -> float | None:
        if deadline_at is None:
            return None
        left = datetime.fromisoformat(deadline_at) - datetime.fromisoformat(self._clock.now())
        return max(0.0, left.total_seconds())
