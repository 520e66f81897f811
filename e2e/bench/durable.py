"""Measures the durable run on the real path: HTTP, capabilities, redaction, commits, workers.

    python -m e2e.bench.durable [fanout|chain|loop|many|peers …] [--seconds N]

Prints a table, with the processor's time of each part per step-run beside the throughput, and ends
with 1 where a goal is missed. `peers` runs two other engines on the same Postgres in the same run
(installed into an environment of their own).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import asyncpg
import uvloop

from e2e.bench import durable_peers
from noetl_cli.local.postgres import LocalPostgres
from noetl_core.engine.events import StepScheduled
from noetl_core.load import digest, dump, load
from noetl_core.model import Playbook
from noetl_core.values import Value
from noetl_operator.control import ControlPlane, control_plane
from noetl_operator.ingest.peers import SharedToken
from noetl_operator.ingest.web import IngestWeb, serving
from noetl_operator.router import Committed
from noetl_operator.settings import OperatorSettings
from noetl_operator.starting import new_execution_id
from noetl_operator.store.port import NewExecution
from noetl_operator.store.postgres import PostgresStore

FANOUT_GOAL = 2_000.0
CHAIN_P50_GOAL_MS, CHAIN_P99_GOAL_MS = 6.0, 25.0
LOOP_MEMORY_GOAL_MB, LOOP_TENTH_GOAL = 20.0, 1.2
MANY_GOAL = 0.8
WORKERS = 2
CAPACITY = 64


def playbook(text: str) -> Playbook:
    (found,) = load(text)
    assert found.playbook is not None, found.problems
    return found.playbook


FANOUT = """
metadata: {name: fanout}
executor: {spec: {policy: {limits: {max_iterations: 2000000}}}}
workflow:
  - step: each
    loop:
      in: "{{ workload.items }}"
      iterator: item
      spec: {mode: parallel, max_in_flight: 128, policy: {exec: distributed}}
    tool: {kind: noop}
"""
LOCAL = """
metadata: {name: local}
executor: {spec: {policy: {limits: {max_iterations: 2000000}}}}
workflow:
  - step: each
    loop:
      in: "{{ workload.items }}"
      iterator: item
      spec: {mode: sequential}
    tool: {kind: noop}
"""
SMALL = """
metadata: {name: small}
workflow:
  - {step: one, tool: {kind: noop}, next: {arcs: [{step: two}]}}
  - {step: two, tool: {kind: noop}}
"""


def chain(length: int) -> str:
    steps = "".join(
        f"\n  - {{step: s{n}, tool: {{kind: noop}}, next: {{arcs: [{{step: s{n + 1}}}]}}}}"
        for n in range(length - 1)
    )
    last = f"\n  - {{step: s{length - 1}, tool: {{kind: noop}}}}\n"
    return f"metadata: {{name: chain}}\nworkflow:{steps}{last}"


@dataclass(slots=True)
class Place:
    """A running engine."""

    plane: ControlPlane
    server: LocalPostgres
    workers: list[subprocess.Popen[bytes]]
    finished: dict[str, asyncio.Event] = field(default_factory=dict)

    def committed(self, committed: Committed) -> None:
        if committed.transition.state.phase.is_final:
            event = self.finished.pop(committed.transition.execution_id, None)
            if event is not None:
                event.set()

    async def start(self, what: Playbook, workload: dict[str, Value]) -> tuple[str, asyncio.Event]:
        execution_id = new_execution_id(await self.plane.store.now())
        event = self.finished[execution_id] = asyncio.Event()
        request = NewExecution(
            execution_id=execution_id,
            namespace="bench",
            name=what.metadata.name,
            playbook_name=what.metadata.name,
            digest=digest(what),
            document=dump(what),
            workload=workload,
        )
        await self.plane.start(request)
        return execution_id, event

    async def run(self, what: Playbook, workload: dict[str, Value]) -> tuple[str, float]:
        begun = time.monotonic()
        execution_id, event = await self.start(what, workload)
        await event.wait()
        return execution_id, time.monotonic() - begun

    def cpu(self) -> Cpu:
        own = resource.getrusage(resource.RUSAGE_SELF)
        workers = sum(_cpu_of(worker.pid) for worker in self.workers)
        return Cpu(own.ru_utime + own.ru_stime, workers, _postgres_cpu(self.server))


@dataclass(frozen=True, slots=True)
class Cpu:
    """Seconds of the processor."""

    operator: float
    workers: float
    postgres: float

    def per(self, before: Cpu, count: float) -> str:
        spent = (
            (self.operator - before.operator, "operator"),
            (self.workers - before.workers, "workers"),
            (self.postgres - before.postgres, "postgres"),
        )
        return ", ".join(f"{name} {seconds / count * 1e6:.0f}" for seconds, name in spent)


def _cpu_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _postgres_cpu(server: LocalPostgres) -> float:
    """Of the server and of all its processes that live, and of those that ended."""
    main = int((server.folder / "postgres" / "postmaster.pid").read_text().split()[0])
    total = 0.0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == main or int(entry.name) == main:
                    total += _cpu_of(int(entry.name))
    return total


def memory_mb() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 1e6


@contextlib.asynccontextmanager
async def engine(server: LocalPostgres, database: str) -> AsyncIterator[Place]:
    """Control plane and ingest in this process, workers beside it, an empty database."""
    admin = await asyncpg.connect(server.uri())
    await admin.execute(f"CREATE DATABASE {database}")
    await admin.close()
    settings = OperatorSettings()
    async with (
        PostgresStore.connect(server.uri(database)) as store,
        control_plane(store, _NoChildren(), settings, shard=0, holder="bench") as plane,
    ):
        await plane.sweeper.led.wait()
        web = IngestWeb(plane.ingest, SharedToken("bench"), settings)
        async with serving(web.application(), "127.0.0.1", 0) as port:
            workers = [_worker(port, server.folder) for _ in range(WORKERS)]
            place = Place(plane, server, workers)
            plane.router.observers.append(place.committed)
            try:
                await place.run(playbook(SMALL), {})
                yield place
            finally:
                for worker in workers:
                    worker.terminate()
                for worker in workers:
                    await asyncio.to_thread(worker.wait)


class _NoChildren:
    async def request(self, action: object, parent: NewExecution) -> NewExecution:
        raise NotImplementedError


def _worker(port: int, folder: Path) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "NOETL_URL": f"http://127.0.0.1:{port}",
        "NOETL_TOKEN": "bench",
        "NOETL_CAPACITY": str(CAPACITY),
        "NOETL_KEYCHAIN": str(folder / "keychain"),
        "NOETL_SCRATCH": str(folder / "scratch"),
        "NOETL_STOP_GRACE_S": "1",
    }
    return subprocess.Popen([sys.executable, "-m", "noetl_worker"], env=environment)


class Table:
    """Prints each line as it is known, and remembers whether a goal was missed."""

    def __init__(self) -> None:
        self.missed = False

    def line(self, title: str, value: str, goal: str = "", good: bool = True) -> None:
        mark = "" if good else "   MISSED"
        print(f"{title:46} {value:>22}   {goal}{mark}", flush=True)
        self.missed |= not good


async def fanout(place: Place, table: Table, seconds: float) -> float:
    """Iterations of a distributed loop, each leased, run and reported by itself."""
    made = playbook(FANOUT)
    count, size, begun = 0, 4_000, time.monotonic()
    before = place.cpu()
    while (spent := time.monotonic() - begun) < seconds:
        items: list[Value] = list(range(size))
        await place.run(made, {"items": items})
        count += size
    spent = time.monotonic() - begun
    rate = count / spent
    goal = f"goal ≥ {FANOUT_GOAL:,.0f}"
    table.line(f"fan-out, {spent:.0f} s, step-runs/s", f"{rate:,.0f}", goal, rate >= FANOUT_GOAL)
    table.line("  processor, µs per step-run", place.cpu().per(before, count))
    return rate


async def chained(place: Place, table: Table, length: int = 300) -> None:
    """One execution of many steps, one after the other."""
    before = place.cpu()
    execution_id, _ = await place.run(playbook(chain(length)), {})
    events = await place.plane.store.events(execution_id, 0, 100_000)
    times = [
        datetime.fromisoformat(event.timestamp).timestamp()
        for event in events
        if isinstance(event.fact, StepScheduled)
    ]
    gaps = sorted((b - a) * 1000 for a, b in pairwise(times))
    p50, p99 = gaps[len(gaps) // 2], gaps[int(len(gaps) * 0.99)]
    good50, good99 = p50 <= CHAIN_P50_GOAL_MS, p99 <= CHAIN_P99_GOAL_MS
    table.line(f"chain of {length}, p50 per step", f"{p50:.2f} ms", "goal ≤ 6", good50)
    table.line(f"chain of {length}, p99 per step", f"{p99:.2f} ms", "goal ≤ 25", good99)
    table.line("  processor, µs per step-run", place.cpu().per(before, length))


async def local_loop(place: Place, table: Table, count: int = 100_000) -> None:
    """A loop inside of one worker: the operator only writes down what it reports."""
    before = place.cpu()
    begun = time.monotonic()
    execution_id, event = await place.start(playbook(LOCAL), {"items": list(range(count))})
    marks: list[tuple[float, float, int]] = []
    while not event.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), 0.2)
        execution = await place.plane.live.get(execution_id)
        marks.append((time.monotonic() - begun, memory_mb(), execution.state.seq))
    spent = time.monotonic() - begun
    table.line(f"local loop of {count:,}, iterations/s", f"{count / spent:,.0f}")
    table.line("  processor, µs per iteration", place.cpu().per(before, count))
    last = marks[-1][2]
    tenth = [
        next(t for t, _, seq in marks if seq >= last * part) for part in (0.02, 0.1, 0.9, 0.98)
    ]
    ratio = ((tenth[3] - tenth[2]) / 0.08) / ((tenth[1] - tenth[0]) / 0.08)
    early = next(m for _, m, seq in marks if seq >= last * 0.1)
    late = next(m for _, m, seq in marks if seq >= last * 0.95)
    grown = late - early
    table.line("  last tenth : first tenth", f"{ratio:.2f}", "goal ≤ 1.2", ratio <= LOOP_TENTH_GOAL)
    flat = abs(grown) <= LOOP_MEMORY_GOAL_MB
    table.line("  operator's memory grew by", f"{grown:.1f} MB", "goal ± 20", flat)


async def many(place: Place, table: Table, count: int = 10_000) -> None:
    """Many executions queued at once, compared with few."""
    made = playbook(SMALL)
    rates = []
    for size in (100, 100, 100, count):
        rates.append(await _burst(place, made, size))
    few, lots = max(rates[:3]), rates[-1]
    table.line("100 executions at once, executions/s", f"{few:,.0f}")
    good = lots >= few * MANY_GOAL
    table.line(f"{count:,} executions at once, executions/s", f"{lots:,.0f}", "goal ≥ 80 %", good)


async def _burst(place: Place, made: Playbook, size: int) -> float:
    """Executions a second from when all are queued until all have ended."""
    document, key = dump(made), digest(made)
    now = await place.plane.store.now()
    events: dict[str, asyncio.Event] = {}

    async def register() -> None:
        execution_id = new_execution_id(now)
        events[execution_id] = place.finished[execution_id] = asyncio.Event()
        await place.plane.store.create(
            NewExecution(
                execution_id=execution_id,
                namespace="bench",
                name="small",
                playbook_name="small",
                digest=key,
                document=document,
                workload={},
            )
        )

    for _ in range(0, size, 20):
        await asyncio.gather(*(register() for _ in range(20)))
    begun = time.monotonic()
    already = sum(event.is_set() for event in events.values())
    for execution_id in events:
        place.plane.router.poke(execution_id)
    for event in events.values():
        await event.wait()
    return (size - already) / (time.monotonic() - begun)


async def main(given: argparse.Namespace) -> int:
    folder = Path(tempfile.mkdtemp(prefix="noetl-bench-"))
    os.chmod(folder, 0o755)
    server = LocalPostgres(folder)
    await asyncio.to_thread(server.start)
    table = Table()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    parts = given.parts or ["fanout", "chain", "loop", "many", "peers"]
    rate = 0.0
    try:
        async with engine(server, "bench") as place:
            if "fanout" in parts or "peers" in parts:
                rate = await fanout(place, table, given.seconds)
            if "chain" in parts:
                await chained(place, table)
            if "loop" in parts:
                await local_loop(place, table)
            if "many" in parts:
                await many(place, table)
        if "peers" in parts:
            await asyncio.to_thread(durable_peers.compare, server, rate, table)
    finally:
        await asyncio.to_thread(server.release)
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if table.missed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--seconds", type=float, default=60.0)
    sys.exit(uvloop.run(main(parser.parse_args())))
