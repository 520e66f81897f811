"""Places where a process of the campaign may end itself, by chance.

The product knows nothing of this: the campaign's processes wrap its methods with `around`. The
chances come from the environment: `CHAOS_FAILPOINTS="commit.before=0.002,ack=0.001"`.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def _chances() -> dict[str, float]:
    given = os.environ.get("CHAOS_FAILPOINTS", "")
    parts = [part.partition("=") for part in given.split(",") if part]
    return {name: float(chance) for name, _, chance in parts}


def happens(name: str) -> bool:
    return random.random() < _chances().get(name, 0.0)


def reach(name: str) -> None:
    """Perhaps the end of this process, without any warning."""
    if happens(name):
        os.kill(os.getpid(), signal.SIGKILL)


def around(
    work: Callable[P, Awaitable[R]], before: str | None = None, after: str | None = None
) -> Callable[P, Awaitable[R]]:
    """The same with a failpoint on either side."""

    @wraps(work)
    async def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if before is not None:
            reach(before)
        found = await work(*args, **kwargs)
        if after is not None:
            reach(after)
        return found

    return wrapped
