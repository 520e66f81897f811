"""What a worker reports: in order, retried, bounded, and what becomes of each answer."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from noetl_core.engine.events import CtxPatched, Fact, StepStarted, TaskDone
from noetl_core.engine.triggers import EndStatus, RunEnd, Verdict
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.wire import Held, Knows, Refusal
from noetl_core.wire.batches import LogLine, ReportsAnswer, RunAnswer
from noetl_worker import telling as limits
from noetl_worker.client import Refused, Unreachable
from noetl_worker.report import Reporter
from noetl_worker.telling import Telling

RUN = "00000000-0000-5000-8000-000000000001"
OK = RunEnd(status=EndStatus.OK)


class Lines:
    """Some lines of a log."""

    def __init__(self, count: int = 0) -> None:
        self.left = [LogLine(line=n, at="now", stream="stdout", text="x") for n in range(count)]

    def take(self, most: int) -> tuple[LogLine, ...]:
        taken, self.left = self.left[:most], self.left[most:]
        return tuple(taken)


def telling(lease: str = "l", epoch: int = 1, lines: int = 0) -> Telling:
    stopped: list[TaskError] = []
    held = Held(lease_id=lease, epoch=epoch, capability="c")
    made = Telling(held, RUN, "s", Lines(lines), lambda f: f, lambda urgent: None, stopped.append)
    return made


def fact(n: int = 0, size: int = 1) -> Fact:
    return TaskDone(step="s", run_id=RUN, task="t", attempt=n, result="x" * size)


def patch(value: int = 1) -> CtxPatched:
    return CtxPatched(step="s", run_id=RUN, set={"k": value}, by="s/t", reason=None)


def answer(verdict: Verdict, expected: int = 0, message: str | None = None) -> RunAnswer:
    return RunAnswer(lease_id="l", verdict=verdict, expected=expected, message=message)


def body(told: Any) -> Any:
    return orjson.loads(orjson.dumps(told.body))


async def test_facts_are_numbered_and_kept_until_they_are_taken() -> None:
    one = telling()
    await one.say(fact(1))
    first = one.next_report()
    assert first is not None
    await one.say(fact(2))
    again = one.next_report()
    assert again is not None
    assert [f["attempt"] for f in body(again)["report"]["facts"]] == [1, 2]
    one.answered(first, answer(Verdict.ACCEPTED))
    rest = one.next_report()
    assert rest is not None
    sent = body(rest)["report"]
    assert (sent["first"], [f["attempt"] for f in sent["facts"]]) == (1, [2])


async def test_a_post_that_had_arrived_already_counts_as_taken() -> None:
    one = telling()
    await one.say(fact())
    told = one.next_report()
    assert told is not None
    one.answered(told, answer(Verdict.DUPLICATE))
    assert (one.sent, one.over.done()) == (1, False)
    assert one.next_report() is None


async def test_the_end_goes_with_the_last_fact_and_not_before() -> None:
    one = telling()
    for n in range(limits.MAX_FACTS + 1):
        await one.say(fact(n))
    ending = asyncio.create_task(one.finish(OK))
    await asyncio.sleep(0)
    first = one.next_report()
    assert first is not None
    assert (first.facts, first.is_last) == (limits.MAX_FACTS, False)
    one.answered(first, answer(Verdict.ACCEPTED))
    assert one.has_more(first)
    last = one.next_report()
    assert last is not None
    assert (last.facts, last.is_last) == (1, True)
    one.answered(last, answer(Verdict.ACCEPTED))
    assert await ending is Verdict.ACCEPTED


async def test_the_end_waits_for_what_was_printed() -> None:
    one = telling(lines=limits.MAX_LINES + 5)
    one.end = b'{"status":"ok"}'
    first = one.next_report()
    assert first is not None
    assert not first.is_last
    one.answered(first, answer(Verdict.ACCEPTED))
    assert one.has_more(first)
    last = one.next_report()
    assert last is not None
    assert (len(body(last)["logs"]), last.is_last) == (5, True)


async def test_a_post_is_bounded_by_its_size_and_takes_at_least_one_fact() -> None:
    one = telling()
    for n in range(3):
        await one.say(fact(n, size=limits.MAX_BYTES + 1))
    told = one.next_report()
    assert told is not None
    assert told.facts == 1


async def test_whoever_says_too_much_waits() -> None:
    one = telling()
    for n in range(limits.MAX_WAITING):
        await one.say(fact(n))
    more = asyncio.create_task(one.say(fact()))
    await asyncio.sleep(0)
    assert not more.done()
    told = one.next_report()
    assert told is not None
    one.answered(told, answer(Verdict.ACCEPTED))
    await more


@pytest.mark.parametrize("verdict", [Verdict.ACCEPTED, Verdict.DUPLICATE])
async def test_E7_a_write_is_the_last_of_its_post_and_waits_for_its_verdict(
    verdict: Verdict,
) -> None:
    one = telling()
    await one.say(fact(1))
    writing = asyncio.create_task(one.write(patch()))
    await asyncio.sleep(0)
    await one.say(fact(2))
    told = one.next_report()
    assert told is not None
    assert [f["name"] for f in body(told)["report"]["facts"]] == ["task.done", "ctx.patched"]
    one.answered(told, answer(verdict))
    assert (await writing).error is None
    rest = one.next_report()
    assert rest is not None
    assert body(rest)["report"]["first"] == 2


async def test_E7_a_write_is_not_taken_because_an_earlier_post_was() -> None:
    """The post that is under way when the write comes may hold nothing but lines of a log."""
    one = telling(lines=3)
    logs_only = one.next_report()
    assert logs_only is not None
    writing = asyncio.create_task(one.write(patch()))
    await asyncio.sleep(0)
    one.answered(logs_only, answer(Verdict.ACCEPTED))
    await asyncio.sleep(0)
    assert not writing.done()
    told = one.next_report()
    assert told is not None
    one.answered(told, answer(Verdict.CONFLICT, expected=0, message="no"))
    error = (await writing).error
    assert error is not None
    assert (error.kind, error.message) == (ErrorKind.CTX_CONFLICT, "no")
    assert not one.over.done()


async def test_E7_a_refused_write_leaves_no_number_behind() -> None:
    one = telling()
    await one.say(fact(1))
    writing = asyncio.create_task(one.write(patch()))
    await asyncio.sleep(0)
    told = one.next_report()
    assert told is not None
    one.answered(told, answer(Verdict.TOO_LARGE, expected=1))
    error = (await writing).error
    assert error is not None
    assert error.kind is ErrorKind.LIMIT
    await one.say(fact(2))
    rest = one.next_report()
    assert rest is not None
    assert body(rest)["report"]["first"] == 1


async def test_K33_a_fact_that_is_not_taken_ends_the_run_with_that() -> None:
    one = telling()
    for n in range(3):
        await one.say(fact(n))
    told = one.next_report()
    assert told is not None
    one.answered(told, answer(Verdict.TOO_LARGE, expected=1, message="too large"))
    await one.say(fact(9))
    last = one.next_report()
    assert last is not None
    sent = body(last)["report"]
    assert (sent["first"], sent["facts"], sent["end"]["status"]) == (1, [], "error")
    assert sent["end"]["error"]["message"] == "too large"
    ending = asyncio.create_task(one.finish(OK))
    await asyncio.sleep(0)
    one.answered(last, answer(Verdict.ACCEPTED))
    assert await ending is Verdict.ACCEPTED


async def test_K24_a_lease_in_other_hands_says_nothing_more() -> None:
    one = telling()
    await one.say(fact())
    writing = asyncio.create_task(one.write(patch()))
    await asyncio.sleep(0)
    told = one.next_report()
    assert told is not None
    one.answered(told, answer(Verdict.GONE))
    error = (await writing).error
    assert error is not None
    assert error.kind is ErrorKind.CANCELLED
    assert await one.finish(OK) is Verdict.GONE
    await one.say(fact())
    assert one.next_report() is None


class Client:
    """An operator that answers as it is told to."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.posts: list[Any] = []

    async def reports(self, message: dict[str, Any]) -> ReportsAnswer:
        sent = orjson.loads(orjson.dumps(message))
        self.posts.append(sent)
        said = self.script.pop(0) if self.script else Verdict.ACCEPTED
        if isinstance(said, Exception):
            raise said
        if callable(said):
            said = said(sent)
            if isinstance(said, Exception):
                raise said
        answers = [RunAnswer(lease_id=one["lease_id"], verdict=said) for one in sent["reports"]]
        return ReportsAnswer(answers=tuple(answers))


def reporter(client: Client) -> Reporter:
    return Reporter(client, "w", "default", Knows, lambda answer: None)  # type: ignore[arg-type]


async def told_by(client: Client, *tellings: Telling) -> list[Verdict]:
    made = reporter(client)
    for one in tellings:
        one.wake = made.wake
        made.open(one)
    running = asyncio.create_task(made.run())
    try:
        async with asyncio.timeout(10):
            return list(await asyncio.gather(*(one.finish(OK) for one in tellings)))
    finally:
        running.cancel()


async def test_runs_share_a_post_and_its_free_slots() -> None:
    client = Client()
    found = await told_by(client, telling("a"), telling("b"))
    assert found == [Verdict.ACCEPTED] * 2
    (post,) = client.posts
    assert [one["lease_id"] for one in post["reports"]] == ["a", "b"]
    assert post["capacity"] == 2


async def test_a_post_without_an_answer_is_sent_again_as_it_was() -> None:
    client = Client(Unreachable("away"), Unreachable("away"))
    one = telling()
    await one.say(fact())
    assert await told_by(client, one) == [Verdict.ACCEPTED]
    assert len(client.posts) == 3
    assert client.posts[0] == client.posts[1] == client.posts[2]


async def test_a_report_that_cannot_be_taken_costs_no_other_run_anything() -> None:
    def refuse(post: Any) -> Any:
        leases = [one["lease_id"] for one in post["reports"]]
        told = [one["report"].get("end", {}).get("status") for one in post["reports"]]
        if "bad" in leases and "error" not in told:
            return Refused(400, Refusal(code="malformed", message="what is this"))
        return Verdict.ACCEPTED

    client = Client(*[refuse] * 20)
    bad, good = telling("bad"), telling("good")
    await bad.say(StepStarted(step="s", run_id=RUN, worker="w"))
    assert await told_by(client, bad, good) == [Verdict.ACCEPTED] * 2
    last = [p for p in client.posts if p["reports"][0]["lease_id"] == "bad"][-1]
    assert last["reports"][0]["report"]["end"]["error"]["code"] == "REPORT"


async def test_a_lease_that_comes_back_is_told_of_beside_the_old_one() -> None:
    client = Client()
    made = reporter(client)
    old, new = telling(epoch=1), telling(epoch=2)
    made.open(old)
    made.open(new)
    made.close(old)
    running = asyncio.create_task(made.run())
    new.wake = made.wake
    assert await asyncio.wait_for(new.finish(OK), 10) is Verdict.ACCEPTED
    running.cancel()
