"""Names that are derived, never drawn: the same cause always gives the same id.

Scheduling again is idempotent because of this: a token, a run or an event that was made once is
recognised when it is made again.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha1, sha256
from uuid import UUID


def entry_token(execution_id: str) -> str:
    return _derived(execution_id, "entry")


def arc_token(run_id: str, arc: int) -> str:
    """The token that an arc of a finished run makes; also the id of the step-run it becomes."""
    return _derived(run_id, f"arc/{arc}")


def join_run(execution_id: str, step: str, tokens: tuple[str, ...]) -> str:
    """The step-run of a join that consumed these tokens."""
    return _derived(execution_id, f"join/{step}/{','.join(tokens)}")


def final_run(execution_id: str) -> str:
    return _derived(execution_id, "final")


def keychain_run(execution_id: str) -> str:
    """The run that verifies the keychain before the first step."""
    return _derived(execution_id, "keychain")


@lru_cache(maxsize=4096)
def iteration_lease(run_id: str, iteration: str) -> str:
    """What a worker leases for one iteration of a distributed loop."""
    return _derived(run_id, f"iteration/{iteration}")


def child_execution(
    execution_id: str, run_id: str, iteration: str | None, task: str, task_run: int
) -> str:
    """The execution that a `playbook` task starts; a redelivered run finds the same one.

    Execution ids are ordered by time (uuid version 7), which is how the log is partitioned: a child
    takes the time of its parent.
    """
    name = f"{run_id}/{iteration or ''}/{task}/{task_run}"
    drawn = int.from_bytes(sha256(name.encode()).digest()[:10])
    time = UUID(execution_id).int >> 80
    version = (0x7 << 76) | (drawn & ~(0xF << 76))
    return str(UUID(int=(time << 80) | (version & ~(0x3 << 62)) | (0x2 << 62)))


def task_key(run_id: str, task: str) -> str:
    """What a task of a run is about to do, whoever does it."""
    return _derived(run_id, f"task/{task}")


def parts(iteration: str) -> int:
    """How many levels deep an iteration stands: `"2.5"` is two."""
    return iteration.count(".") + 1


def outer(iteration: str, depth: int) -> str:
    """The enclosing iteration at a depth: of `"2.5.1"` at 2 that is `"2.5"`."""
    return ".".join(iteration.split(".")[:depth])


def event_id(execution_id: str, dedup_key: str) -> str:
    return _derived(execution_id, f"event/{dedup_key}")


def _derived(parent: str, name: str) -> str:
    """`uuid5`, written out: three times as fast, and every event needs one."""
    digest = sha1(
        _space(parent) + name.encode("utf-8", "surrogatepass"), usedforsecurity=False
    ).hexdigest()
    variant = _VARIANT[digest[16]]
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"


@lru_cache(maxsize=4096)
def _space(parent: str) -> bytes:
    return bytes.fromhex(parent.replace("-", ""))


_VARIANT = {f"{n:x}": f"{(n & 0x3) | 0x8:x}" for n in range(16)}
