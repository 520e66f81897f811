"""What people ask of an execution, as data that can wait in the database for its leader.

A command that finds the execution led by another process leaves a wish there; that process applies
it within a second and answers. Applying one twice changes nothing.
"""

from __future__ import annotations

import asyncio
import getpass
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noetl_cli.errors import CliError

if TYPE_CHECKING:
    from noetl_core.engine.triggers import Cancel, Patch, Resume, Suspend
    from noetl_core.values import Value
    from noetl_operator.control import ControlPlane
    from noetl_operator.store.reading import Reading, Wish

ANSWER_S = 15.0
"""How long the leader may take to answer."""
LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of a wish."""

    verdict: str
    message: str | None


def by() -> str:
    """Who asks, for the log."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "cli"


def body(kind: str, **fields: Value) -> dict[str, Value]:
    return {"kind": kind, "by": by(), **fields}


def trigger_of(wish_id: str, given: dict[str, Value]) -> Patch | Suspend | Resume | Cancel:
    """A wish as the engine takes it; a patch is known by the id of its wish."""
    from noetl_core.engine.triggers import Cancel, CancelMode, Patch, Resume, Suspend

    who, reason = str(given.get("by") or "cli"), given.get("reason")
    why = None if reason is None else str(reason)
    match given["kind"]:
        case "patch":
            values = given["set"]
            assert isinstance(values, dict)
            return Patch(id=wish_id, set=values, by=who, reason=why)
        case "suspend":
            return Suspend(by=who, reason=why)
        case "resume":
            return Resume(by=who, reason=why)
        case "cancel":
            return Cancel(mode=CancelMode(str(given["mode"])), by=who, reason=why)
        case other:
            raise ValueError(f"a wish of an unknown kind: {other}")


async def fulfil(plane: ControlPlane, reading: Reading, shard: int) -> None:
    """Apply what others ask of the executions that this process leads."""
    for wish in await reading.wishes(shard):
        await _fulfil_one(plane, reading, wish)


async def _fulfil_one(plane: ControlPlane, reading: Reading, wish: Wish) -> None:
    try:
        trigger = trigger_of(wish.wish_id, wish.body)
    except (ValueError, KeyError) as error:
        await reading.answer(wish.wish_id, {"verdict": "refused", "message": str(error)})
        return
    decision = await plane.router.apply(wish.execution_id, trigger)
    answer: dict[str, Value] = {"verdict": decision.verdict.value, "message": decision.message}
    await reading.answer(wish.wish_id, answer)


async def ask(reading: Reading, execution_id: str, given: dict[str, Value]) -> Asked:
    """Leave a wish with the leader of an execution and wait for the answer."""
    from noetl_operator.store.reading import Wish

    wish = Wish(str(uuid.uuid4()), execution_id, given)
    await reading.wish(wish)
    until = time.monotonic() + ANSWER_S
    try:
        while time.monotonic() < until:
            answer = await reading.answer_of(wish.wish_id)
            if answer is not None:
                message = answer.get("message")
                return Asked(str(answer["verdict"]), None if message is None else str(message))
            await asyncio.sleep(LOOK_S)
    finally:
        await reading.withdraw(wish.wish_id)
    raise CliError(
        "the process that runs the execution does not answer",
        "it may be stopped; once it is gone, `noetl resume --local` goes on",
    )
