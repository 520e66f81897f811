"""`python -m noetl_operator`."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

import uvloop

from noetl_operator.app import serve
from noetl_operator.kube.port import ClusterError
from noetl_operator.settings import BadSettings, OperatorSettings

FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def main() -> int:
    logging.basicConfig(level=os.environ.get("NOETL_LOG_LEVEL", "INFO").upper(), format=FORMAT)
    # kopf tells of every object it sees.
    logging.getLogger("kopf").setLevel(logging.WARNING)
    # It wonders about running in a thread, which is where we want it.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
    try:
        settings = OperatorSettings.from_environment(os.environ)
        settings.dsn()
    except BadSettings as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings))
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
