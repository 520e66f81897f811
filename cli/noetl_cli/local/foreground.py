"""A run in the foreground: follow it, heed Ctrl-C and the time limit, end when all of it has.

`run`, `rerun`, `resume` and the cancelling of an execution that nobody leads come here; they differ
in how the execution gets into this process (`Begin`).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noetl_cli.errors import CliError
from noetl_cli.local import opening, scratch, wishes
from noetl_cli.local.display import Display
from noetl_cli.local.engine import Engine, Setup, engine
from noetl_cli.local.hints import approval
from noetl_cli.local.interrupts import Interrupts

if TYPE_CHECKING:
    from noetl_operator.router import Committed
    from noetl_operator.store.port import Snapshot

TICK_S = 0.1
"""How often the display moves, wishes are looked for and workers are watched."""

Begin = Callable[[Engine], Awaitable[str]]
"""Brings the execution into this process; answers its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreground:
    """A run that this process leads until it ends."""

    setup: Setup
    begin: Begin
    display: Display
    interrupts: Interrupts
    timeout: float | None = None
    keep: bool = False

    def run(self) -> Ended:
        """Run it; answers how it stands when this process lets go of it."""
        with self.setup.data.process() as holder:
            return opening.run(self._run(holder))

    async def _run(self, holder: str) -> Ended:
        self.interrupts.attach()
        async with engine(self.setup, holder) as running:
            follower = Follower(self, running)
            running.plane.router.observers.append(follower.committed)
            snapshot = await follower.follow()
            address = await self._settle_scratch(running, snapshot)
        return Ended(snapshot, address)

    async def _settle_scratch(self, running: Engine, snapshot: Snapshot) -> str | None:
        """Drop the scratch database, or say where it is."""
        given = self.setup.scratch
        if given is None:
            return None
        if self.keep:
            return scratch.address(running.server, given.database)
        if snapshot.state.phase.is_final:
            await scratch.drop(running.server, given.database)
        return None


@dataclass(frozen=True, slots=True)
class Ended:
    """How an execution stands at the end of the command."""

    snapshot: Snapshot
    scratch: str | None = None
    """The address of a scratch database that was kept."""


class Follower:
    """Watches one execution and all its descendants until nothing is left to do here."""

    def __init__(self, foreground: Foreground, running: Engine) -> None:
        self._given, self._engine = foreground, running
        self._display = foreground.display
        self._stirred = asyncio.Event()
        self._root: str | None = None
        self._early: list[Committed] = []
        self._live: set[str] = set()
        self._waiting: set[str] = set()
        self._heeded = 0
        self._told_of_gate = False
        self._until: float | None = None
        self._failure: BaseException | None = None
        foreground.interrupts.listener = self._stirred.set

    # What the router tells

    def committed(self, committed: Committed) -> None:
        if self._root is None:
            self._early.append(committed)
            return
        execution_id = committed.transition.execution_id
        state = committed.transition.state
        for event in committed.transition.events:
            self._display.take(event, execution_id == self._root)
        (self._live.discard if state.phase.is_final else self._live.add)(execution_id)
        waits = state.phase.value == "Waiting"
        (self._waiting.add if waits else self._waiting.discard)(execution_id)
        if state.phase.is_final or waits:
            self._stirred.set()

    # The one loop

    async def follow(self) -> Snapshot:
        """Until the execution and its children have ended, or it is left waiting."""
        started = time.monotonic()
        root = await self._given.begin(self._engine)
        await self._recall(root)
        self._root = root
        self._live.add(root)
        for committed in self._early:
            self.committed(committed)
        if self._given.timeout is not None:
            self._until = started + self._given.timeout
        ticking = asyncio.create_task(self._tick())
        try:
            while not await self._is_over(root):
                await self._wait()
        finally:
            ticking.cancel()
            await asyncio.gather(ticking, return_exceptions=True)
        self._display.end(self._engine.plane.clock.now())
        snapshot = await self._engine.plane.store.load(root)
        assert snapshot is not None
        return snapshot

    async def _recall(self, root: str) -> None:
        """Show what an execution did before it came here."""
        own = [one.transition for one in self._early if one.transition.execution_id == root]
        before = own[0].expected if own else 0
        if before:
            async for event in self._engine.reading.outline(root):
                if event.seq <= before:
                    self._display.recall(event)

    async def _wait(self) -> None:
        left = None if self._until is None else max(0.0, self._until - time.monotonic())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stirred.wait(), left)
        self._stirred.clear()

    async def _is_over(self, root: str) -> bool:
        if self._failure is not None:
            raise self._failure
        if self._given.interrupts.count > self._heeded:
            await self._heed_interrupt(root)
        if self._until is not None and time.monotonic() >= self._until:
            if self._live and self._live <= self._waiting and root in self._live:
                return True
            self._until = None
            await self._cancel_live(deadline=True)
        if self._live == {root} == self._waiting and not self._told_of_gate:
            self._tell_of_gate(root)
        if self._live:
            return False
        if await self._engine.reading.unfinished(self._engine.shard):
            # A child that was asked for and is not made yet.
            asyncio.get_running_loop().call_later(0.02, self._stirred.set)
            return False
        return True

    async def _heed_interrupt(self, root: str) -> None:
        self._heeded = self._given.interrupts.count
        if self._heeded > 1:
            self._display.say("cancelling at once")
            await self._cancel_live(now=True)
            return
        self._display.say("cancelling; press Ctrl-C again to end it at once")
        await self._cancel_live()

    async def _cancel_live(self, *, now: bool = False, deadline: bool = False) -> None:
        from noetl_core.engine.triggers import Cancel, CancelMode

        wish = Cancel(
            mode=CancelMode.NOW if now else CancelMode.GRACEFUL,
            by=None if deadline else wishes.by(),
            deadline=deadline,
        )
        # Whoever has a parent here is cancelled by it.
        first = [self._root] if self._root in self._live else sorted(self._live)
        for execution_id in first:
            if execution_id is not None:
                await self._engine.plane.router.apply(execution_id, wish)

    def _tell_of_gate(self, root: str) -> None:
        self._told_of_gate = True
        asyncio.get_running_loop().create_task(self._say_how_to_approve(root))

    async def _say_how_to_approve(self, root: str) -> None:
        execution = await self._engine.plane.live.get(root)
        for line in approval(execution.program, execution.state, self._given.setup.data):
            self._display.say(line)

    # Beside it

    async def _tick(self) -> None:
        """Move the display, replace workers that died, do what others ask for."""
        from noetl_operator.store.port import StoreError

        rest_at = time.monotonic() + 0.4
        while True:
            await asyncio.sleep(TICK_S)
            try:
                self._display.tick(self._engine.plane.clock.now())
                if rest_at is not None and time.monotonic() > rest_at:
                    self._engine.workers.start()
                    rest_at = float("inf")
                for name in self._engine.workers.lost():
                    await self._engine.reading.expire_owner(name)
                await wishes.fulfil(self._engine.plane, self._engine.reading, self._engine.shard)
            except StoreError:
                # The server may have been killed: whoever uses it next starts it again.
                await asyncio.to_thread(self._engine.server.start)
            except CliError as error:
                self._failure = error
                self._stirred.set()
                return
