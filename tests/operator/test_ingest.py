"""The ingest over real HTTP: who may call, what is refused, and what a worker is answered."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from noetl_core.engine.triggers import Cancel, CancelMode
from noetl_operator.ingest.capability import Capabilities
from tests.support.control import CHAIN, OK, SINGLE, STARTED, Control, controlled, reports

PATCH = {"name": "ctx.patched", "payload": {"set": {"seen": 1}, "by": "one/t", "reason": None}}


@pytest.fixture
async def control(store_uri: str) -> AsyncIterator[Control]:
    async with controlled(store_uri, max_report_bytes=100_000, max_result_bytes=200_000) as found:
        yield found


async def test_an_unknown_token_is_refused_whatever_it_is_made_of(control: Control) -> None:
    for token in ("", "wrong", "x" * 5000, "ünï", "the-token2"):
        status, answer = await control.call("/v1/lease", {}, Authorization=f"Bearer {token}")
        assert status == 401, token
        assert answer["code"] == "unauthenticated"
    status, _ = await control.call("/v1/lease", {}, Authorization="Basic the-token")
    assert status == 401


async def test_header_bytes_that_are_no_text_are_refused(control: Control) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", control.port)
    writer.write(
        b"POST /v1/lease HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \xff\xfe\r\n"
        b"Content-Length: 2\r\nConnection: close\r\n\r\n{}"
    )
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer.split(b" ")[1] in (b"400", b"401"), answer[:200]


async def test_another_protocol_is_refused_with_both_versions(control: Control) -> None:
    for version in ("2", "", "one"):
        status, answer = await control.call("/v1/lease", {}, **{"Noetl-Protocol": version})
        assert status == 400
        assert "1" in answer["message"]
    body = {"protocol": 2, "worker": "w", "pool": "default", "capacity": 1}
    assert (await control.call("/v1/lease", body))[0] == 400


async def test_sizes_are_refused_before_anyone_is_asked_who_they_are(control: Control) -> None:
    status, answer = await control.call("/v1/reports", b"x" * 100_001, Authorization="Bearer no")
    assert (status, answer["code"]) == (413, "too_large")
    digest = hashlib.sha256(b"").hexdigest()
    big = b"x" * 200_001
    status, _ = await control.call(f"/v1/results/{digest}", big, "PUT", Authorization="Bearer no")
    assert status == 413


async def test_a_body_of_unknown_length_has_the_same_limit(control: Control) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(30):
            yield b"x" * 10_000

    url = f"{control.url}/v1/reports"
    async with control.http.post(url, data=pieces(), headers=control.headers) as answer:
        assert answer.status == 413


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"null", b"[]", b'{"protocol": 1}', b"\xff\xfe", b'{"protocol": 1, "reports": 7}'],
)
async def test_what_is_not_a_message_is_refused_in_words(control: Control, body: bytes) -> None:
    for path in ("/v1/reports", "/v1/lease", "/v1/heartbeat", "/v1/handback"):
        status, answer = await control.call(path, body)
        assert status == 400, (path, answer)
        assert answer["message"]


async def test_unknown_paths_and_methods_are_refused(control: Control) -> None:
    assert (await control.call("/v1/nothing", {}))[0] == 404
    assert (await control.call("/v1/lease", b"", "GET"))[0] == 405


async def test_a_forged_capability_is_good_for_nothing(control: Control) -> None:
    execution_id = await control.start(SINGLE)
    (command,) = await control.lease()
    for forged in (
        "",
        command["capability"][:-1],
        command["capability"].replace(".", ".0"),
        Capabilities(b"another key").sign(execution_id, command["lease_id"], 1),
    ):
        for changed in ({"capability": forged},):
            status, _ = await control.report({**command, **changed}, facts=[STARTED])
            assert status in (400, 403), forged
    other_epoch = {**command, "epoch": 2}
    assert (await control.report(other_epoch, facts=[STARTED]))[0] == 403
    assert "step.started" not in await control.names(execution_id)


async def test_a_capability_is_not_good_for_another_lease(control: Control) -> None:
    await control.start(SINGLE)
    await control.start(SINGLE)
    one, two = await control.lease(2)
    mixed = {**one, "capability": two["capability"]}
    assert (await control.report(mixed, facts=[STARTED]))[0] == 403


async def test_a_run_is_reported_and_the_next_command_comes_with_the_answer(
    control: Control,
) -> None:
    execution_id = await control.start(CHAIN)
    (command,) = await control.lease()
    status, answer = await control.report(command, 1, facts=[STARTED, PATCH], end=OK)
    assert status == 200
    assert [one["verdict"] for one in answer["answers"]] == ["accepted"]
    (following,) = answer["commands"]
    assert (following["step"], following["epoch"]) == ("two", 1)
    assert following["ctx"] == {"seen": 1}
    await control.report(following, facts=[STARTED], end=OK)
    assert (await control.names(execution_id))[-1] == "workflow.finished"


async def test_the_same_post_twice_is_taken_once(control: Control) -> None:
    execution_id = await control.start(SINGLE)
    (command,) = await control.lease()
    first = [await control.report(command, facts=[STARTED]) for _ in range(2)]
    assert [answer["answers"][0]["verdict"] for _, answer in first] == ["accepted", "duplicate"]
    ends = [await control.report(command, facts=[STARTED], end=OK) for _ in range(2)]
    assert [answer["answers"][0]["verdict"] for _, answer in ends] == ["accepted", "gone"]
    names = await control.names(execution_id)
    assert names.count("step.started") == names.count("step.done") == 1


async def test_a_post_that_comes_too_early_or_too_late_changes_nothing(control: Control) -> None:
    execution_id = await control.start(SINGLE)
    (command,) = await control.lease()
    _, early = await control.report(command, first=3, facts=[STARTED])
    assert early["answers"][0]["verdict"] == "ahead"
    await control.plane.router.apply(execution_id, Cancel(mode=CancelMode.NOW))
    before = await control.names(execution_id)
    _, late = await control.report(command, facts=[STARTED], end=OK)
    assert late["answers"][0]["verdict"] == "gone"
    assert await control.names(execution_id) == before


async def test_many_reports_go_in_one_post_and_each_has_its_answer(control: Control) -> None:
    ids = [await control.start(SINGLE) for _ in range(5)]
    commands = await control.lease(5)
    body = reports(commands[0], facts=[STARTED], end=OK)
    for command in commands[1:]:
        body["reports"] += reports(command, facts=[STARTED], end=OK)["reports"]
    _, answer = await control.call("/v1/reports", body)
    assert [one["verdict"] for one in answer["answers"]] == ["accepted"] * 5
    assert [one["lease_id"] for one in answer["answers"]] == [c["lease_id"] for c in commands]
    for execution_id in ids:
        assert (await control.names(execution_id))[-1] == "workflow.finished"


async def test_K33_a_fact_that_is_too_large_is_not_taken_and_said_so(control: Control) -> None:
    text = SINGLE.replace(
        "workflow:", "executor: {spec: {policy: {limits: {max_payload_bytes: 2048}}}}\nworkflow:"
    )
    await control.start(text)
    (command,) = await control.lease()
    large = {"name": "task.done", "task": "t", "attempt": 1, "payload": {"result": "x" * 5000}}
    _, answer = await control.report(command, facts=[STARTED, large])
    assert answer["answers"][0]["verdict"] == "too_large"
    assert answer["answers"][0]["expected"] == 1


async def test_a_fact_the_database_cannot_hold_hurts_nobody_else(control: Control) -> None:
    await control.start(SINGLE)
    good = await control.start(SINGLE)
    bad_command, good_command = await control.lease(2)
    poison = {"name": "task.started", "task": "a\0b", "attempt": 1, "payload": {"kind": "noop"}}

    async def keep_posting(command: Any, **report: Any) -> tuple[int, Any]:
        return await control.report(command, **report)

    answers = await asyncio.gather(
        keep_posting(bad_command, facts=[STARTED, poison]),
        keep_posting(good_command, facts=[STARTED], end=OK),
    )
    assert answers[1][1]["answers"][0]["verdict"] == "accepted"
    assert answers[0][0] in (400, 500)
    assert (await control.names(good))[-1] == "workflow.finished"


async def test_a_request_for_work_wakes_when_there_is_some(control: Control) -> None:
    waiting = asyncio.create_task(control.lease(1, wait_s=10.0))
    await asyncio.sleep(0.05)
    begun = time.monotonic()
    await control.start(SINGLE)
    (command,) = await waiting
    assert command["step"] == "one"
    assert time.monotonic() - begun < 0.9, "it was found by polling, not woken"


async def test_a_heartbeat_tells_what_is_cancelled_and_what_is_gone(control: Control) -> None:
    cancelled = await control.start(SINGLE)
    await control.start(SINGLE)
    commands = await control.lease(2)
    first = next(c for c in commands if c["execution"]["id"] == cancelled)
    other = next(c for c in commands if c is not first)
    await control.report(first, facts=[STARTED])
    await control.report(other, facts=[STARTED], end=OK)
    await control.plane.router.apply(cancelled, Cancel(mode=CancelMode.GRACEFUL))
    keys = ("lease_id", "epoch", "capability")
    held = [{key: command[key] for key in keys} for command in (first, other)]
    status, answer = await control.call(
        "/v1/heartbeat", {"protocol": 1, "worker": "w", "leases": held}
    )
    assert status == 200
    assert answer["cancelled"] == [first["lease_id"]]
    assert answer["gone"] == [other["lease_id"]]


async def test_a_run_that_is_handed_back_is_given_to_another_at_once(control: Control) -> None:
    execution_id = await control.start(SINGLE)
    (command,) = await control.lease()
    held = {key: command[key] for key in ("lease_id", "epoch", "capability")}
    body = {"protocol": 1, "worker": "w", "leases": [held], "reason": "it stops"}
    assert (await control.call("/v1/handback", body))[0] == 200
    (again,) = await control.lease(worker="other")
    assert (again["lease_id"], again["epoch"]) == (command["lease_id"], 2)
    assert "step.redelivered" in await control.names(execution_id)
    _, late = await control.report(command, facts=[STARTED], end=OK)
    assert late["answers"][0]["verdict"] == "gone"


async def test_H1_a_result_is_stored_under_its_digest_in_the_name_of_a_lease(
    control: Control,
) -> None:
    await control.start(SINGLE)
    (command,) = await control.lease()
    named = {
        "Noetl-Capability": command["capability"],
        "Noetl-Lease": command["lease_id"],
        "Noetl-Epoch": str(command["epoch"]),
    }
    content = b'{"a": [1, 2]}'
    path = f"/v1/results/{hashlib.sha256(content).hexdigest()}"
    assert (await control.call(path, content, "PUT"))[0] == 403
    assert (await control.call(path, b"other", "PUT", **named))[0] == 422
    assert (await control.call(path, content, "PUT", **named))[0] == 200
    assert (await control.call(path, b"", "GET", **named)) == (200, content)
    assert (await control.call("/v1/results/" + "0" * 64, b"", "GET", **named))[0] == 404
    assert (await control.call("/v1/results/../../etc", b"", "GET", **named))[0] in (400, 404)
