"""Starts the campaign's processes as forks of one that has imported everything.

So a process that was killed is back within milliseconds, and a minute holds hundreds of deaths.
Reads one JSON object a line: `{"kind": "worker", "env": {…}, "log": "…"}`; answers `{"pid": …}`;
says `{"gone": pid}` when one ends. At the end of its input everything it started is killed.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from e2e.chaos.mutants import apply_from_environment


def _preload() -> dict[str, Callable[[], None]]:
    """Everything that the processes import, and what each of them runs."""
    apply_from_environment()
    import noetl_worker.tools.noop
    import noetl_worker.tools.playbook  # noqa: F401
    from e2e.chaos import operator_process, worker_process

    gc.collect()
    gc.freeze()
    return {"operator": operator_process.main, "worker": worker_process.main}


def _child(run: Callable[[], None], order: dict[str, object]) -> NoReturn:
    os.setsid()
    log = os.open(str(order["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    environment = order["env"]
    assert isinstance(environment, dict)
    os.environ.update(environment)
    logging.basicConfig(
        level=environment.get("CHAOS_LOG", "WARNING"),
        format=f"%(asctime)s {os.getpid()} %(levelname)s %(name)s %(message)s",
    )
    try:
        run()
    except BaseException:
        logging.getLogger(__name__).exception("it ended by itself")
    finally:
        logging.shutdown()
        os._exit(1)


def _say(message: dict[str, int]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _reap(alive: set[int]) -> None:
    while alive:
        pid, _ = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        alive.discard(pid)
        _say({"gone": pid})


def main() -> None:
    mains = _preload()
    alive: set[int] = set()
    while True:
        _reap(alive)
        ready, _, _ = select.select([sys.stdin], [], [], 0.02)
        if not ready:
            continue
        line = sys.stdin.readline()
        if not line:
            break
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _child(mains[order["kind"]], order)
        alive.add(pid)
        _say({"pid": pid})
    for pid in alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
