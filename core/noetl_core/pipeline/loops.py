"""The local levels of a loop, scheduled inside the one worker that leased them (rules E2–E7).

The worker asks `take` for iterations that may start now, runs a pipeline for each and tells `ended`
how it went, until `is_over`. What is kept grows with the iterations in flight, never with those
that ended: each one's result leaves with its fact.

Levels above the first local one are the control plane's; it gives their `iter`s and the list of the
first local level. The lists of levels below are evaluated here, each when its turn comes.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from noetl_core.engine.events import (
    IterationDone,
    IterationFailed,
    IterationStarted,
    LoopOpened,
)
from noetl_core.engine.triggers import EndStatus, RunEnd
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.pipeline.levels import BadLoop, given_items, items_of, too_many, window_of
from noetl_core.pipeline.plan import Plan
from noetl_core.pipeline.requests import Answer, Emit, PipelineEnd, Request
from noetl_core.pipeline.scopes import Iteration, RunScope, iter_chain
from noetl_core.values import Value


@dataclass(slots=True, eq=False)
class _Frame:
    """One open list: that of the lease, or that of an open outer iteration."""

    level: int
    path: str
    """Of the iteration it stands in; empty for the outermost list of the loop."""
    items: list[Value]
    window: int
    iter: dict[str, Value]
    """Of the iteration it stands in."""
    above: _Frame | None
    next: int = 0
    open: int = 0

    @property
    def has_room(self) -> bool:
        return self.next < len(self.items) and self.open < self.window

    @property
    def is_over(self) -> bool:
        return self.next == len(self.items) and self.open == 0


@dataclass(frozen=True, slots=True)
class _Stop:
    """Why nothing new starts."""

    error: TaskError
    task: str | None = None
    iteration: str | None = None


class LocalLoop:
    """The part of a loop that one lease covers. Its generators are driven one at a time."""

    def __init__(
        self,
        plan: Plan,
        run: RunScope,
        items: Value,
        window: int,
        *,
        iters: Sequence[dict[str, Value]] = (),
        path: str | None = None,
        worker: str | None = None,
    ) -> None:
        self._plan, self._run, self._worker = plan, run, worker
        self._items, self._window = items, window
        self._first = len(iters)
        self._outer, self._path = iter_chain(iters), path or ""
        self._ready: list[dict[str, _Frame]] = [{} for _ in plan.levels]
        """Of each level the lists that have room for one more, in the order they got it."""
        self._running: dict[str, _Frame] = {}
        self._begun = False
        self._lists = 0
        """Lists that are open."""
        self._total = 0
        self._stop: _Stop | None = None

    @property
    def is_over(self) -> bool:
        """Nothing runs and nothing will: `end` says how it went."""
        if self._running:
            return False
        return self._stop is not None or (self._begun and self._lists == 0)

    @property
    def stopping(self) -> TaskError | None:
        """Set once nothing new starts: iterations that still run are to be interrupted."""
        return self._stop.error if self._stop else None

    def stop(self, error: TaskError) -> None:
        """End it from outside: cancelled, or out of time (rule K22)."""
        self._stop = self._stop or _Stop(error)

    def end(self) -> RunEnd:
        """How all of it ended; the results are in the facts of the iterations."""
        assert self.is_over, "the loop still runs"
        stop = self._stop
        if stop is None:
            return RunEnd(status=EndStatus.OK)
        cancelled = stop.error.kind is ErrorKind.CANCELLED and stop.iteration is None
        return RunEnd(
            status=EndStatus.CANCELLED if cancelled else EndStatus.ERROR,
            error=stop.error,
            task=stop.task,
            iteration=stop.iteration,
        )

    def take(self, limit: int | None = None) -> Generator[Request, Answer, list[Iteration]]:
        """The iterations that may start now, `limit` at most; yields facts and `Fetch`."""
        taken: list[Iteration] = []
        try:
            if not self._begun:
                yield from self._begin()
            while self._stop is None and (limit is None or len(taken) < limit):
                frame = self._deepest()
                if frame is None:
                    break
                started = yield from self._advance(frame)
                if started is not None:
                    taken.append(started)
        except BadLoop as bad:
            self._stop = self._stop or _Stop(bad.error, iteration=bad.path or None)
        return taken

    def ended(self, path: str, end: PipelineEnd) -> IterationDone | IterationFailed | None:
        """Take note of an ended iteration. Answers the fact to report: none for one cut off."""
        frame = self._running.pop(path)
        frame.open -= 1
        cut_off = self._stop is not None and end.error is not None and self._is_cut(end.error)
        if end.error is not None and not cut_off and not self._plan.best_effort:
            self._stop = self._stop or _Stop(end.error, end.task, path)
        self._settle(frame)
        if end.error is None:
            return IterationDone(
                step=self._plan.step,
                run_id=self._run.run_id,
                iteration=path,
                result=end.result,
                writes=end.writes,
            )
        if cut_off:
            return None
        return IterationFailed(
            step=self._plan.step,
            run_id=self._run.run_id,
            iteration=path,
            task=end.task,
            error=end.error.as_json(),
            writes=end.writes,
        )

    def _is_cut(self, error: TaskError) -> bool:
        return error.kind is ErrorKind.CANCELLED or error == self.stopping

    def _begin(self) -> Generator[Request, Answer, None]:
        self._begun = True
        iterator = self._plan.levels[self._first].iterator
        items = yield from given_items(self._items, iterator, self._run, self._path)
        self._push(_Frame(self._first, self._path, items, self._window, self._outer, None))

    def _deepest(self) -> _Frame | None:
        """The list to go on with: inner ones first, so that what was begun is finished."""
        for ready in reversed(self._ready):
            for frame in ready.values():
                return frame
        return None

    def _advance(self, frame: _Frame) -> Generator[Request, Answer, Iteration | None]:
        """Begin the next element of a list: an iteration, or the list inside of it."""
        index = frame.next
        frame.next += 1
        frame.open += 1
        if not frame.has_room:
            del self._ready[frame.level][frame.path]
        path = f"{frame.path}.{index}" if frame.path else str(index)
        here: dict[str, Value] = {
            self._plan.levels[frame.level].iterator: frame.items[index],
            "index": index,
            "total": len(frame.items),
        }
        if frame.iter:
            here["parent"] = frame.iter
        if frame.level + 1 < len(self._plan.levels):
            yield from self._open(frame, path, here)
            return None
        self._running[path] = frame
        yield Emit(
            IterationStarted(
                step=self._plan.step, run_id=self._run.run_id, iteration=path, worker=self._worker
            )
        )
        return Iteration(path, here)

    def _open(
        self, above: _Frame, path: str, here: dict[str, Value]
    ) -> Generator[Request, Answer, None]:
        level = self._plan.levels[above.level + 1]
        items = yield from items_of(level, self._run, here, path)
        window = yield from window_of(level, self._run, here, path)
        yield Emit(
            LoopOpened(
                step=self._plan.step,
                run_id=self._run.run_id,
                iteration=path,
                total=len(items),
                window=window,
            )
        )
        self._push(_Frame(above.level + 1, path, items, window, here, above))

    def _push(self, frame: _Frame) -> None:
        self._lists += 1
        if frame.level == len(self._plan.levels) - 1:
            self._total += len(frame.items)
            if self._total > self._plan.max_iterations:
                raise too_many(self._plan.max_iterations, frame.path)
        self._settle(frame)

    def _settle(self, frame: _Frame | None) -> None:
        """A list changed: it has room again, or it is over and its iteration with it."""
        while frame is not None and frame.is_over:
            self._lists -= 1
            frame = frame.above
            if frame is not None:
                frame.open -= 1
        if frame is not None and frame.has_room:
            self._ready[frame.level][frame.path] = frame
