"""An operator, its database and its workers as processes of this machine, on a real API server.

The processes live in the cluster's network. A worker has the token of a Pod that no node runs, so
that it is recognised as one; everything else about it is as in a Pod.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from e2e.cluster import Kubernetes
from noetl_cli.local import verifying
from noetl_cli.local.postgres import LocalPostgres
from noetl_operator.store.postgres import PostgresStore
from noetl_operator.store.reading import Reading
from tests.support.postgres import run_sql

Object = dict[str, Any]

PORT, HEALTH_PORT = 18080, 18081
WAIT_S = 60.0
"""How long a condition may take on a busy machine."""
POLL_S = 0.1


class NeverCame(AssertionError):
    """What was waited for did not come."""


def until(what: str, look: Callable[[], Any], timeout: float = WAIT_S) -> Any:
    """Look until there is something; gives it back."""
    deadline = time.monotonic() + timeout
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise NeverCame(f"{what}: not so after {timeout:g} s")
        time.sleep(POLL_S)


class Stand:
    """Everything that stands beside the API server."""

    def __init__(self, cluster: Kubernetes, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace
        self.folder = Path(tempfile.mkdtemp(prefix="noetl-op-"))
        self.folder.chmod(0o755)
        self.postgres = LocalPostgres(self.folder / "pg")
        self.operator: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []

    def up(self) -> None:
        self.postgres.start()
        self.start_operator()

    def down(self) -> None:
        self.stop_operator()
        for worker in self._workers:
            _end(worker)
        self.postgres.release()
        shutil.rmtree(self.folder, ignore_errors=True)

    # The operator

    @property
    def log(self) -> Path:
        return self.folder / "operator.log"

    def start_operator(self, *, at: int = HEALTH_PORT, **settings: str) -> None:
        """Have one running; `at` is the port where it says that it is ready."""
        given = {
            "NOETL_DATABASE": self.postgres.uri(),
            "NOETL_KUBECONFIG": str(self.cluster.kubeconfig),
            "NOETL_NAMESPACES": self.namespace,
            "NOETL_PORT": str(PORT),
            "NOETL_HEALTH_PORT": str(HEALTH_PORT),
            "NOETL_LEASE_TTL_S": "5",
            "NOETL_HEARTBEAT_S": "1",
            "NOETL_SHARD_TTL_S": "3",
            "NOETL_RESYNC_S": "5",
            **settings,
        }
        self.operator = self._spawn("noetl_operator", given, self.log)
        until("the operator is ready", lambda: self._is_ready(at))

    def _is_ready(self, at: int) -> bool:
        assert self.operator is not None
        assert self.operator.poll() is None, self.log.read_text()[-4000:]
        return self.probe("readyz", at)

    def probe(self, path: str, at: int = HEALTH_PORT) -> bool:
        url = f"http://127.0.0.1:{at}/{path}"
        code = f"import urllib.request as u; u.urlopen({url!r}, timeout=3)"
        words = [*self.cluster.netns, sys.executable, "-c", code]
        return subprocess.run(words, capture_output=True).returncode == 0

    def stop_operator(self, how: int = signal.SIGTERM) -> None:
        if self.operator is not None:
            _end(self.operator, how)
        self.operator = None

    # Workers

    def worker(self, execution: str) -> None:
        """A worker for an Execution, as soon as it has begun."""
        found = until(f"{execution} has begun", lambda: self.status(execution).get("executionId"))
        self.worker_of(f"execution/{found}")

    def serve_all(self, name: str, *steps: Object) -> None:
        """A Playbook whose Executions share one worker, and that worker."""
        executor = {"spec": {"pool": {"scope": "playbook"}}}
        self.apply(self.playbook(name, *steps, executor=executor))
        digest = until(f"{name} is valid", lambda: self.status(name, "playbook").get("digest"))
        short = digest.removeprefix("sha256:")[:12]
        self.worker_of(f"playbook/{self.namespace}/{name}/{short}")

    def differences(self) -> list[str]:
        """Where the log of an execution does not add up, hash by hash, to its state."""
        return asyncio.run(_verify(self.postgres.uri()))

    def live(self, beginning: str) -> set[str]:
        """Executions whose names begin so and that are not over."""
        text = f"""SELECT execution_id FROM noetl.execution
                   WHERE finished_at IS NULL AND starts_with(name, '{beginning}')"""
        return {str(row["execution_id"]) for row in run_sql(self.postgres.uri(), text)}

    def worker_of(self, pool: str) -> None:
        name = f"worker-{len(self._workers)}-{os.getpid()}"
        token = self.token(name, self.pod(name, pool)["metadata"]["uid"])
        given = {
            "NOETL_URL": f"http://127.0.0.1:{PORT}",
            "NOETL_TOKEN": token,
            "NOETL_POOL": pool,
            "NOETL_WORKER": name,
            "NOETL_KEYCHAIN": str(self.folder / "keychain"),
            "NOETL_SCRATCH": str(self.folder / "scratch"),
            "NOETL_STOP_GRACE_S": "0",
        }
        self._workers.append(self._spawn("noetl_worker", given, self.folder / "workers.log"))

    def pod(self, name: str, pool: str) -> Object:
        """A worker Pod that no node runs."""
        text = json.dumps(_pod(name, self.namespace, pool))
        made = self.cluster.kubectl("create", "-f", "-", "-o", "json", input=text)
        found: Object = json.loads(made.stdout)
        return found

    def token(self, pod: str, uid: str, audience: str = "noetl") -> str:
        words = ("create", "token", "default", "-n", self.namespace, f"--audience={audience}")
        bound = ("--bound-object-kind=Pod", f"--bound-object-name={pod}")
        made = self.cluster.kubectl(*words, *bound, f"--bound-object-uid={uid}")
        return made.stdout.strip()

    def _spawn(self, module: str, given: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        words = [*self.cluster.netns, sys.executable, "-m", module]
        with log.open("ab") as said:
            return subprocess.Popen(
                words,
                env={**os.environ, **given},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    # Objects

    def apply(self, *things: Object) -> None:
        self.cluster.apply(things)

    def get(self, kind: str, name: str) -> Object | None:
        words = ("get", kind, name, "-n", self.namespace, "-o", "json", "--ignore-not-found")
        text = self.cluster.kubectl(*words).stdout
        found: Object | None = json.loads(text) if text.strip() else None
        return found

    def status(self, name: str, kind: str = "execution") -> Object:
        """The status alone: a spec may be more than Python's parser takes."""
        words = ("get", kind, name, "-n", self.namespace, "--ignore-not-found")
        text = self.cluster.kubectl(*words, "-o", "jsonpath={.status}").stdout.strip()
        found: Object = json.loads(text) if text else {}
        return found

    def patch(self, name: str, **spec: object) -> None:
        words = ("patch", "execution", name, "-n", self.namespace, "--type=merge", "-p")
        self.cluster.kubectl(*words, json.dumps({"spec": spec}))

    def delete(self, name: str) -> None:
        self.cluster.kubectl("delete", "execution", name, "-n", self.namespace)

    def phase(self, name: str, phase: str) -> Object:
        """The status, once an Execution is in a phase."""

        def look() -> Object | None:
            status = self.status(name)
            return status if status.get("phase") == phase else None

        try:
            found: Object = until(f"{name} is {phase}", look)
        except NeverCame as never:
            raise NeverCame(f"{never}; it is {json.dumps(self.status(name))[:3000]}") from None
        return found

    def playbook(self, name: str, *steps: Object, **sections: object) -> Object:
        return self.resource("Playbook", name, {"workflow": list(steps), **sections})

    def execution(self, name: str, playbook: str, **spec: object) -> Object:
        return self.resource("Execution", name, {"playbookRef": {"name": playbook}, **spec})

    def resource(self, kind: str, name: str, spec: Object) -> Object:
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": "noetl.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def condition(status: Object, kind: str) -> Object:
    found: Object = next(one for one in status["conditions"] if one["type"] == kind)
    return found


async def _verify(uri: str) -> list[str]:
    async with PostgresStore.connect(uri, connections=2) as store:
        found = [str(row["execution_id"]) for row in await store.read("list", None, None, None)]
        assert found, "there is nothing to verify"
        reports = {one: await verifying.verify(Reading(store), one) for one in found}
        return [
            f"{one}: {report.difference}" for one, report in reports.items() if report.difference
        ]


def _pod(name: str, namespace: str, pool: str) -> Object:
    """A Pod that no node takes."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {"noetl.io/pool": pool},
        },
        "spec": {
            "nodeSelector": {"noetl.io/none": "true"},
            "containers": [{"name": "worker", "image": "none"}],
        },
    }


def _end(process: subprocess.Popen[bytes], how: int = signal.SIGTERM) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(how)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
