"""Two other durable engines on the same Postgres, in the same run: what they do in a second.

They are installed into an environment of their own in the user's cache; nothing of the product
needs them. Each runs noop work with two processes, as ours does.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Protocol

import asyncpg

from noetl_cli.local.postgres import LocalPostgres

PACKAGES = ("dbos", "procrastinate", "psycopg[binary]")
GOAL = 3.0
SECONDS = 300

_DBOS = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from dbos import DBOS, DBOSConfig

url, flows, steps, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
DBOS(config={"name": f"bench{number}", "system_database_url": url, "log_level": "ERROR", "run_admin_server": False})

@DBOS.step()
def noop(n):
    return n

@DBOS.workflow()
def flow(count):
    for n in range(count):
        noop(n)

DBOS.launch()
flow(2)
begun = time.monotonic()
with ThreadPoolExecutor(16) as pool:
    list(pool.map(lambda _: DBOS.start_workflow(flow, steps).get_result(), range(flows)))
print("STEPS", flows * steps / (time.monotonic() - begun), flush=True)
DBOS.destroy()
"""  # noqa: E501

_PROCRASTINATE = """
import asyncio, sys, time
from procrastinate import App, PsycopgConnector

app = App(connector=PsycopgConnector(conninfo=sys.argv[1]))

@app.task(name="noop")
async def noop(n):
    return n

async def main():
    async with app.open_async():
        if sys.argv[2] == "prepare":
            await app.schema_manager.apply_schema_async()
            await noop.batch_defer_async(*({"n": n} for n in range(int(sys.argv[3]))))
        else:
            await app.run_worker_async(concurrency=64, wait=False, install_signal_handlers=False, delete_jobs="never")

asyncio.run(main())
"""  # noqa: E501


class Table(Protocol):
    def line(self, title: str, value: str, goal: str = "", good: bool = True) -> None: ...


def compare(server: LocalPostgres, ours: float, table: Table) -> None:
    """Print what each does, and how many times that is ours."""
    python = _environment()
    found = {"DBOS": _dbos(python, server), "procrastinate": _procrastinate(python, server)}
    for name, rate in found.items():
        table.line(f"{name}, steps/s", f"{rate:,.0f}")
    times = ours / max(found.values())
    goal = f"goal ≥ {GOAL:g}"
    table.line("ours : the better of them", f"{times:.1f}", goal, times >= GOAL)


def _environment() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = cache / "noetl-operator" / "bench-peers"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *PACKAGES], check=True)
        (folder / "ready").touch()
    return python


def _database(server: LocalPostgres, name: str) -> str:
    async def create() -> None:
        admin = await asyncpg.connect(server.uri())
        await admin.execute(f"CREATE DATABASE {name}")
        await admin.close()

    asyncio.run(create())
    return f"postgresql://postgres@/{name}?host={server.socket_folder}"


def _dbos(python: Path, server: LocalPostgres, flows: int = 24, steps: int = 40) -> float:
    """Steps of several workflows at once; the sum over two processes."""
    url = _database(server, "peer_dbos")
    warm = [str(python), "-c", _DBOS, url, "1", "1", "0"]
    subprocess.run(warm, check=True, capture_output=True, timeout=SECONDS)
    command = [str(python), "-c", _DBOS, url, str(flows), str(steps)]
    running = [
        subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True) for n in (1, 2)
    ]
    total = 0.0
    for process in running:
        said, _ = process.communicate(timeout=SECONDS)
        total += float(next(x for x in said.splitlines() if x.startswith("STEPS")).split()[1])
    return total


def _procrastinate(python: Path, server: LocalPostgres, jobs: int = 4_000) -> float:
    """Jobs that two workers take from a full queue."""
    url = _database(server, "peer_procrastinate")
    prepare = [str(python), "-c", _PROCRASTINATE, url, "prepare", str(jobs)]
    subprocess.run(prepare, check=True, timeout=SECONDS)
    begun = time.monotonic()
    work = [str(python), "-c", _PROCRASTINATE, url, "work", "0"]
    for process in [subprocess.Popen(work) for _ in range(2)]:
        process.wait(timeout=SECONDS)
    return jobs / (time.monotonic() - begun)
