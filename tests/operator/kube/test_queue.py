"""The queue of dirty keys."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from noetl_operator.kube.queue import DirtyQueue, Pace

QUICK = Pace(first_s=0.001, longest_s=0.01, quarantined_s=30.0, tries=3)


class Passing(Exception):
    """Somebody else's fault."""


class Bench:
    """A queue at work, and what it did."""

    def __init__(self, work: Callable[[str], Awaitable[float | None]]) -> None:
        self.done: list[str] = []
        self.aside: list[str] = []
        self.news = asyncio.Event()

        async def noted(key: str) -> float | None:
            try:
                return await work(key)
            finally:
                self.done.append(key)
                self.news.set()

        async def quarantine(key: str, error: Exception) -> None:
            self.aside.append(key)

        self.queue: DirtyQueue[str] = DirtyQueue(
            noted,
            is_passing=lambda error: isinstance(error, Passing),
            quarantine=quarantine,
            workers=4,
            pace=QUICK,
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.queue.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, so: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not so():
                self.news.clear()
                await self.news.wait()


async def nothing(key: str) -> None:
    return None


async def test_many_pokes_before_its_turn_are_one() -> None:
    bench = Bench(nothing)
    for _ in range(100):
        bench.queue.poke("a")
    bench.queue.poke("b")
    async with bench.running():
        await bench.until(lambda: "b" in bench.done)
    assert sorted(bench.done) == ["a", "b"]


async def test_a_key_is_worked_on_by_one_at_a_time_and_again_for_what_came_meanwhile() -> None:
    at_once = most = 0
    go, begun = asyncio.Event(), asyncio.Event()

    async def work(key: str) -> None:
        nonlocal at_once, most
        at_once += 1
        begun.set()
        most = max(most, at_once)
        await go.wait()
        at_once -= 1

    bench = Bench(work)
    bench.queue.poke("a")
    async with bench.running():
        await begun.wait()
        bench.queue.poke("a")
        bench.queue.poke("a")
        go.set()
        await bench.until(lambda: len(bench.done) == 2)
    assert most == 1
    assert bench.done == ["a", "a"]


async def test_a_poison_key_is_set_aside_and_does_not_stop_the_others() -> None:
    async def work(key: str) -> None:
        if key == "poison":
            raise ValueError(key)

    bench = Bench(work)
    async with bench.running():
        bench.queue.poke("poison")
        await bench.until(lambda: bench.done.count("poison") == 3)
        bench.queue.poke("good")
        await bench.until(lambda: "good" in bench.done)
    assert bench.aside == ["poison"]
    assert bench.done.count("poison") == 3


async def test_a_failure_of_others_is_tried_again_and_never_set_aside() -> None:
    async def work(key: str) -> None:
        if len(bench.done) < 8:
            raise Passing

    bench = Bench(work)
    bench.queue.poke("a")
    async with bench.running():
        await bench.until(lambda: len(bench.done) == 9)
    assert bench.aside == []


async def test_a_poke_ends_the_wait_of_one_that_was_set_aside() -> None:
    async def work(key: str) -> None:
        raise ValueError

    bench = Bench(work)
    async with bench.running():
        bench.queue.poke("a")
        await bench.until(lambda: len(bench.done) == 3)
        bench.queue.poke("a")
        await bench.until(lambda: len(bench.done) == 4)


async def test_work_may_ask_to_be_done_again_later() -> None:
    async def work(key: str) -> float | None:
        return 0.001 if len(bench.done) < 2 else None

    bench = Bench(work)
    bench.queue.poke("a")
    async with bench.running():
        await bench.until(lambda: len(bench.done) == 3)


async def test_within_keeps_the_earlier_time() -> None:
    bench = Bench(nothing)
    async with bench.running():
        bench.queue.within("a", 0.001)
        bench.queue.within("a", 60.0)
        await bench.until(lambda: bench.done == ["a"])
        bench.queue.within("b", 60.0)
        bench.queue.within("b", 0.001)
        await bench.until(lambda: bench.done == ["a", "b"])
