"""Rules D5, I4, I6, I7, K37, K39: noop, secrets, playbook."""

import pytest

from noetl_core.model import KeychainKind
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_worker.keychain import KeychainError
from noetl_worker.tools.base import ChildEnd
from tests.support.tools import Bench


async def test_I7_noop_gives_its_result(bench: Bench) -> None:
    assert (await bench.run("noop", result={"a": [1]})).result == {"a": [1]}
    assert (await bench.run("noop")).error is None


async def test_K39_secrets_names_fields_and_shows_none(bench: Bench) -> None:
    bench.credential("db", KeychainKind.BASIC, username="me", password="canary")
    outcome = await bench.run("secrets", auth="db")
    assert outcome.result == {"name": "db", "kind": "basic", "fields": ["password", "username"]}
    assert bench.keychain.refreshed == ["db"]


async def test_I6_an_entry_that_cannot_be_had_is_an_error(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = await bench.run("secrets", auth="nobody")
    assert unknown.error is not None
    assert unknown.error.kind is ErrorKind.NOT_FOUND

    async def gone(name: str) -> None:
        raise KeychainError("keychain entry db: the Secret db has no key x")

    monkeypatch.setattr(bench.keychain, "refresh", gone)
    lost = await bench.run("secrets", auth="db")
    assert lost.error is not None
    assert (lost.error.kind, lost.error.code) == (ErrorKind.AUTH, "KEYCHAIN")


async def test_I4_a_child_that_succeeds_gives_its_result(bench: Bench) -> None:
    bench.children.end = ChildEnd(execution_id="e", name="c", phase="Succeeded", result=[1])
    outcome = await bench.run("playbook", playbook="load/daily", workload={"a": 1})
    assert (outcome.error, outcome.result) == (None, [1])
    assert bench.children.asked == [("work", 0, "load/daily", {"a": 1}, True)]


async def test_K37_a_failed_child_has_its_reason_as_code(bench: Bench) -> None:
    bench.children.end = ChildEnd(
        execution_id="e", name="c-1", phase="Failed", reason="StepFailed", message="no disk"
    )
    outcome = await bench.run("playbook", playbook="daily")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.code) == (ErrorKind.CHILD_FAILED, "StepFailed")
    for word in ("c-1", "daily", "Failed", "no disk"):
        assert word in outcome.error.message


async def test_K37_without_waiting_the_child_is_named(bench: Bench) -> None:
    bench.children.end = ChildEnd(execution_id="e", name="c")
    outcome = await bench.run("playbook", playbook="daily", wait=False)
    assert outcome.result == {"execution": "c", "execution_id": "e"}
    assert bench.children.asked[0][-1] is False


async def test_K37_a_refused_child_is_what_the_operator_says(bench: Bench) -> None:
    refused = TaskError(kind=ErrorKind.NOT_FOUND, message="there is no playbook nobody")
    bench.children.end = ChildEnd(execution_id=None, refused=refused)
    outcome = await bench.run("playbook", playbook="nobody")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.source) == (ErrorKind.NOT_FOUND, "playbook")


async def test_K37_bad_keys(bench: Bench) -> None:
    outcome = await bench.run("playbook", playbook="", wait="yes", workload=[1])
    assert outcome.error is not None
    assert outcome.error.kind is ErrorKind.SCHEMA
    for key in ("`playbook`", "`wait`", "`workload`"):
        assert key in outcome.error.message
