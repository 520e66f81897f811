"""The data folder of local runs: where it is, what stands in it, who uses it now.

    postgres/, postgres.log     the embedded server: the logs of all runs
    processes/NAME.lock         one per process that leads executions, locked while it lives
    private/NAME/               its secrets and the folders of its step-runs; gone when it ends
    executions/ID.json          what a later `resume` or `rerun` needs to know; never a secret

A process that is killed lets go of its lock by itself; whoever comes next removes what it left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from noetl_cli.errors import UsageError


def default_folder() -> Path:
    """`noetl/` in the user's data folder."""
    given = os.environ.get("XDG_DATA_HOME", "")
    base = Path(given) if os.path.isabs(given) else Path.home() / ".local" / "share"
    return base / "noetl"


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered of an execution beside its log."""

    file: str | None = None
    """The playbook's file; children are found beside it."""
    playbooks: list[str] = field(default_factory=list)
    """Folders in which children are found too."""
    secrets: str | None = None
    """Where its secrets were read from."""
    scratch_entry: str | None = None
    scratch_database: str | None = None


class DataFolder:
    """One data folder."""

    def __init__(self, path: str | None) -> None:
        self.given = path
        self.path = Path(path).absolute() if path else default_folder()

    @property
    def option(self) -> str:
        """How a command that works on this folder is told so."""
        import shlex

        return f" --data {shlex.quote(self.given)}" if self.given else ""

    @property
    def is_used(self) -> bool:
        """Whether anything was ever run here."""
        return (self.path / "postgres" / "PG_VERSION").exists()

    def make(self) -> None:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in ("processes", "private", "executions"):
                (self.path / name).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{self.path}: can't be used as data folder: {error.strerror}",
                "another one can be given with --data",
            ) from None

    def is_alive(self, holder: str) -> bool:
        """Whether the process of this name still lives."""
        path = self._lock_of(holder)
        try:
            with path.open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def private(self, holder: str) -> Path:
        """The folder that only this process uses."""
        return self.path / "private" / holder

    @contextlib.contextmanager
    def process(self) -> Iterator[str]:
        """This process under a name of its own, with a private folder while it lives."""
        self.make()
        self._sweep()
        holder = f"noetl-{os.getpid()}-{secrets.token_hex(4)}"
        path = self._lock_of(holder)
        with path.open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.private(holder).mkdir(mode=0o700)
            try:
                yield holder
            finally:
                shutil.rmtree(self.private(holder), ignore_errors=True)
                path.unlink(missing_ok=True)

    def _lock_of(self, holder: str) -> Path:
        return self.path / "processes" / f"{Path(holder).name}.lock"

    def _sweep(self) -> None:
        """Remove what processes that were killed left behind."""
        for lock in (self.path / "processes").glob("*.lock"):
            if not self.is_alive(lock.stem):
                shutil.rmtree(self.private(lock.stem), ignore_errors=True)
                lock.unlink(missing_ok=True)

    # What is remembered

    def remember(self, execution_id: str, memory: Memory) -> None:
        path = self._memory_of(execution_id)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(asdict(memory)))
        new.replace(path)

    def recall(self, execution_id: str) -> Memory:
        try:
            found = json.loads(self._memory_of(execution_id).read_text())
        except (OSError, ValueError):
            return Memory()
        known = {name: value for name, value in found.items() if name in Memory.__slots__}
        return Memory(**known)

    def _memory_of(self, execution_id: str) -> Path:
        return self.path / "executions" / f"{execution_id}.json"
