"""`python -m noetl_worker`."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import sys

from noetl_worker.app import main
from noetl_worker.settings import BadSettings, WorkerSettings

PR_SET_DUMPABLE = 4


def run() -> int:
    logging.basicConfig(
        level=os.environ.get("NOETL_LOG_LEVEL", "WARNING"),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    try:
        settings = WorkerSettings.from_environment(os.environ)
    except BadSettings as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        return 2
    import uvloop

    _close_to_children()
    # What is imported stays; what comes and goes with runs is rarely cyclic.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    uvloop.run(main(settings))
    return 0


def _close_to_children() -> None:
    """Keep the code of python tasks, which runs under our own user, out of our memory and
    environment (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(run())
