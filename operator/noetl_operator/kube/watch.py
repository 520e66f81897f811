"""Tells what changes in the cluster: the only importer of kopf.

kopf runs in a thread and a loop of its own, because at its end it cancels every task of the loop it
is in. Its handlers hand each object over to our loop and do nothing else. What it misses (a delete
while the connection was down) is found by comparing with a fresh list: `compare`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kopf
from kopf._core.engines import peering

from noetl_operator.kube.port import MANAGER, Key, Kind, Object, key_of, uid_of
from noetl_operator.kube.tame import deep_thread, tamed

_log = logging.getLogger(__name__)

STOP_S = 1.0
"""How long kopf may take to end."""
RESTART_S = 2.0
"""The pause before kopf is started again, should it ever end by itself."""
BACKOFFS = (0.2, 0.5, 1.0, 1.0, 2.0, *[3.0] * 1000)
"""The pauses before an API server that does not answer is tried again: it may be back any moment,
and kopf's own pauses grow until they are longer than its restart took."""
_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


@dataclass(frozen=True, slots=True)
class Watched:
    """A kind to watch, all of it or what has certain labels."""

    kind: Kind
    labels: str | None = None


Changed = Callable[[Key], None]


class Watch:
    """The last seen objects, by key; `changed` is called in our loop for every one that changes."""

    def __init__(
        self,
        watched: Sequence[Watched],
        changed: Changed,
        *,
        namespaces: Sequence[str] = (),
        kubeconfig: Path | None = None,
    ) -> None:
        self._watched, self._changed = watched, changed
        self._namespaces, self._kubeconfig = tuple(namespaces), kubeconfig
        self._seen: dict[Key, Object] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def get(self, key: Key) -> Object | None:
        return self._seen.get(key)

    def every(self, kind: Kind) -> list[Object]:
        return [obj for key, obj in self._seen.items() if key.kind is kind]

    def compare(self, kind: Kind, listed: Iterable[Object], known: Mapping[Key, str]) -> None:
        """A fresh list of a kind: what it has new, and what of `known` (what was there before it
        was asked for) it lacks, has changed. What the watch brought meanwhile is newer than it."""
        there: set[Key] = set()
        for obj in listed:
            key = key_of(kind, obj)
            there.add(key)
            before = self._seen.get(key)
            if before is None or _is_newer(obj, before):
                self._take(key, _own(obj))
        for key, uid in known.items():
            before = self._seen.get(key)
            if key not in there and before is not None and uid_of(before) == uid:
                self._seen.pop(key)
                self._changed(key)

    def known(self, kind: Kind) -> dict[Key, str]:
        """The uids of what is there, by key."""
        return {key: uid_of(obj) for key, obj in self._seen.items() if key.kind is kind}

    def forget(self, key: Key) -> None:
        """The object is known to be gone."""
        self._seen.pop(key, None)

    def _take(self, key: Key, obj: Object) -> None:
        self._seen[key] = obj
        self._changed(key)

    def _event(self, kind: Kind, what: str | None, obj: Object) -> None:
        """One event of a watch, in our loop."""
        key = key_of(kind, obj)
        if what != "DELETED":
            self._take(key, obj)
            return
        before = self._seen.get(key)
        if before is None or uid_of(before) == uid_of(obj):
            self._seen.pop(key, None)
        self._changed(key)

    def start(self) -> None:
        """Begin to watch, for the loop that this is called in."""
        loop = asyncio.get_running_loop()
        self._thread = deep_thread(lambda: self._run(loop), "kopf")

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    async def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, STOP_S)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._stop.is_set():
            try:
                with asyncio.Runner() as runner:
                    runner.run(self._watching(loop))
            except (Exception, asyncio.CancelledError):
                _log.exception("the watch ended; it starts again")
            self._stop.wait(RESTART_S)

    async def _watching(self, loop: asyncio.AbstractEventLoop) -> None:
        registry = kopf.OperatorRegistry()
        self._register(registry, loop)
        where: dict[str, Any] = {"clusterwide": True}
        if self._namespaces:
            where = {"namespaces": self._namespaces}
        await kopf.operator(
            registry=registry,
            settings=self._settings(),
            standalone=True,
            # Else kopf asks for the user's name, and in a container there may be none.
            identity=peering.Identity(MANAGER),
            stop_flag=self._stop,
            **where,
        )

    def _register(self, registry: kopf.OperatorRegistry, loop: asyncio.AbstractEventLoop) -> None:
        @kopf.on.login(registry=registry, id="login")
        def login(**_: Any) -> kopf.ConnectionInfo:
            return connection(self._kubeconfig)

        for one in self._watched:
            self._register_kind(registry, loop, one.kind)

    def _register_kind(
        self, registry: kopf.OperatorRegistry, loop: asyncio.AbstractEventLoop, kind: Kind
    ) -> None:
        async def see(event: Any, **_: Any) -> None:
            with contextlib.suppress(RuntimeError):  # our loop is closed: we are ending
                loop.call_soon_threadsafe(self._event, kind, event["type"], _own(event["object"]))

        kopf.on.event(
            group=kind.group,
            version=kind.version,
            plural=kind.plural,
            registry=registry,
            id=f"see-{kind.plural}",
        )(see)

    def _settings(self) -> kopf.OperatorSettings:
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.networking.error_backoffs = BACKOFFS
        # We restart kopf ourselves; it must never kill the process.
        settings.process.ultimate_exiting_timeout = None
        for one in self._watched:
            if one.labels:
                settings.watching.label_selectors[one.kind.plural] = one.labels
        return settings


def _own(obj: Mapping[str, Any]) -> Object:
    """An object to keep, without what nobody here reads."""
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**tamed(obj), "metadata": meta}


def _is_newer(obj: Mapping[str, Any], than: Mapping[str, Any]) -> bool:
    """By resource versions, which grow; where they are no numbers, any other one is newer."""
    new, old = (str(one["metadata"].get("resourceVersion", "")) for one in (obj, than))
    if new.isdecimal() and old.isdecimal():
        return int(new) > int(old)
    return new != old


def connection(kubeconfig: Path | None) -> kopf.ConnectionInfo:
    """How kopf reaches the API server: as this Pod, or as a kubeconfig says."""
    if kubeconfig is None:
        host, at = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        name = f"[{host}]" if ":" in host else host
        return kopf.ConnectionInfo(
            server=f"https://{name}:{at}",
            ca_path=str(_TOKEN.with_name("ca.crt")),
            token=_TOKEN.read_text().strip(),
        )
    return _of_kubeconfig(kubeconfig)


def _of_kubeconfig(path: Path) -> kopf.ConnectionInfo:
    import yaml

    text = yaml.safe_load(path.read_text())
    context = _named(text["contexts"], text["current-context"], "context")
    cluster = _named(text["clusters"], context["cluster"], "cluster")
    user = _named(text["users"], context["user"], "user")
    return kopf.ConnectionInfo(
        server=cluster["server"],
        ca_path=cluster.get("certificate-authority"),
        ca_data=cluster.get("certificate-authority-data"),
        insecure=cluster.get("insecure-skip-tls-verify"),
        certificate_path=user.get("client-certificate"),
        certificate_data=user.get("client-certificate-data"),
        private_key_path=user.get("client-key"),
        private_key_data=user.get("client-key-data"),
        token=user.get("token"),
    )


def _named(entries: list[dict[str, Any]], name: str, field: str) -> dict[str, Any]:
    found: dict[str, Any] = next(entry[field] for entry in entries if entry["name"] == name)
    return found
