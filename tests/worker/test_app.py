"""A worker against a real control plane: it runs, survives restarts, and goes in peace."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from noetl_core.outcomes import Outcome
from noetl_core.wire import LeaseAnswer
from noetl_worker.app import Worker
from noetl_worker.client import OperatorClient
from noetl_worker.settings import BadSettings, WorkerSettings
from noetl_worker.tools.noop import NoopTool
from tests.support.control import SINGLE, TOKEN, Control, controlled
from tests.support.postgres import postgres_server
from tests.support.stores import store_template, store_uri

__all__ = ["postgres_server", "store_template", "store_uri"]


class Slow(NoopTool):
    """A `noop` that waits until it may end."""

    def __init__(self) -> None:
        self.calls = 0
        self.running = asyncio.Event()
        self.go_on = asyncio.Event()

    async def run(self, args: Any, ctx: Any) -> Outcome:
        self.calls += 1
        self.running.set()
        await self.go_on.wait()
        return await super().run(args, ctx)


@contextlib.asynccontextmanager
async def working(
    url: str, folder: Path, tool: Slow | None = None, **more: Any
) -> AsyncIterator[Worker]:
    settings = WorkerSettings(
        url=url, token=TOKEN, scratch=folder / "scratch", keychain=folder / "keychain", **more
    )
    worker = Worker(settings, OperatorClient(settings))
    if tool is not None:
        worker._registry._tools["noop"] = tool
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await running


async def finished(control: Control, execution_id: str) -> list[str]:
    async with asyncio.timeout(20):
        while (await control.names(execution_id))[-1] != "workflow.finished":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return await control.names(execution_id)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def test_a_run_goes_from_lease_to_end(store_uri: str, tmp_path: Path) -> None:
    async with controlled(store_uri) as control, working(control.url, tmp_path):
        names = await finished(control, await control.start())
    assert names.count("step.done") == 2


async def test_a_restart_of_the_operator_is_invisible_to_a_run(
    store_uri: str, tmp_path: Path
) -> None:
    tool, port = Slow(), free_port()
    async with contextlib.AsyncExitStack() as stack:
        async with controlled(store_uri, "first", port=port) as first:
            execution_id = await first.start(SINGLE)
            await stack.enter_async_context(working(first.url, tmp_path, tool))
            await tool.running.wait()
        tool.go_on.set()
        async with controlled(store_uri, "second", port=port) as second:
            names = await finished(second, execution_id)
            await stack.aclose()
    assert "step.redelivered" not in names
    assert tool.calls == 1


async def test_a_worker_finds_the_replica_that_leads(store_uri: str, tmp_path: Path) -> None:
    async with (
        controlled(store_uri, "first") as leader,
        controlled(store_uri, "second", leads=False) as standby,
    ):
        nowhere = f"http://127.0.0.1:{free_port()}"
        urls = f"{nowhere}, {standby.url}/,{leader.url}"
        async with working(urls, tmp_path):
            await finished(leader, await leader.start())


async def test_a_worker_that_has_to_go_hands_back_what_it_cannot_end(
    store_uri: str, tmp_path: Path
) -> None:
    async with controlled(store_uri) as control:
        execution_id, tool = await control.start(SINGLE), Slow()
        async with working(control.url, tmp_path, tool, stop_grace_s=0.05):
            await tool.running.wait()
        names = await control.names(execution_id)
        assert names[-1] == "step.redelivered"
        async with working(control.url, tmp_path):
            await finished(control, execution_id)


async def test_K24_a_lease_that_comes_back_to_its_worker_is_run_anew(
    store_uri: str, tmp_path: Path
) -> None:
    """A worker that was silent too long gets its own lost run again."""
    async with controlled(store_uri, lease_ttl_s=20.0) as control:
        execution_id, tool = await control.start(SINGLE), Slow()
        async with working(control.url, tmp_path, tool):
            await tool.running.wait()
            tool.running.clear()
            await control.store._pool.execute("UPDATE noetl.step_run SET lease_until = now()")
            await tool.running.wait()
            tool.go_on.set()
            names = await finished(control, execution_id)
    assert names.count("step.redelivered") == names.count("step.done") == 1
    assert tool.calls == 2


async def test_a_command_whose_workload_was_forgotten_is_handed_back(
    store_uri: str, tmp_path: Path
) -> None:
    """Never run with an empty workload instead of the one that is missing."""
    async with controlled(store_uri) as control:
        execution_id = await control.start(SINGLE)
        (given,) = await control.lease()
        async with working(control.url, tmp_path) as worker:
            worker._begin(LeaseAnswer.of({"protocol": 1, "commands": [given]}).commands)
            names = await finished(control, execution_id)
    assert names.count("step.redelivered") == 1


async def test_no_more_runs_at_once_than_its_capacity(store_uri: str, tmp_path: Path) -> None:
    async with controlled(store_uri) as control:
        ids, tool = [await control.start(SINGLE) for _ in range(5)], Slow()
        async with working(control.url, tmp_path, tool, capacity=2):
            await tool.running.wait()
            await asyncio.sleep(0.2)
            assert tool.calls == 2
            tool.go_on.set()
            for execution_id in ids:
                await finished(control, execution_id)


def test_settings_name_what_is_wrong_and_never_what_was_given() -> None:
    with pytest.raises(BadSettings, match="NOETL_CAPACITY") as wrong:
        WorkerSettings.from_environment(
            {"NOETL_URL": "http://a", "NOETL_CAPACITY": "hunter2", "NOETL_TOKEN": "hunter2"}
        )
    assert "hunter2" not in str(wrong.value)
    with pytest.raises(BadSettings, match="NOETL_URL"):
        WorkerSettings.from_environment({})
