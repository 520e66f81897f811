"""`python -m noetl_worker`."""

from __future__ import annotations

import logging
import os
import sys

from noetl_worker.app import main
from noetl_worker.settings import BadSettings, WorkerSettings


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

    uvloop.run(main(settings))
    return 0


if __name__ == "__main__":
    sys.exit(run())
