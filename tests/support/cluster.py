"""A Kubernetes in memory: the port of the operator, enough of it for tests.

It passes the contract tests of the real one (`e2e/operator/test_client.py`).
"""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import Callable
from typing import Any

from noetl_operator.kube import port
from noetl_operator.kube.port import Key, Kind, Object, Reviewed, key_of


class FakeCluster:
    """Objects by key; every write is counted."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.tokens: dict[str, Reviewed] = {}
        self.writes: list[tuple[str, Key]] = []
        self.down = False
        self.news = asyncio.Event()
        self._versions = itertools.count(1)
        self._uids = itertools.count(1)

    def put(self, kind: Kind, obj: Object) -> Object:
        """An object that somebody else makes or changes."""
        key = key_of(kind, obj)
        before = self.objects.get(key)
        made = copy.deepcopy(obj)
        meta = made["metadata"]
        if before is None:
            meta.setdefault("uid", f"uid-{next(self._uids)}")
            meta.setdefault("creationTimestamp", "2026-11-18T10:00:00Z")
            meta["generation"] = 1
        else:
            meta |= {key: before["metadata"][key] for key in ("uid", "creationTimestamp")}
            changed = before.get("spec") != made.get("spec")
            meta["generation"] = before["metadata"]["generation"] + changed
            if "status" in before:
                made.setdefault("status", before["status"])
        meta["resourceVersion"] = str(next(self._versions))
        self.objects[key] = made
        self.news.set()
        return copy.deepcopy(made)

    async def until(self, so: Callable[[], bool]) -> None:
        """Wait until something that others write is so."""
        async with asyncio.timeout(10):
            while not so():
                self.news.clear()
                await self.news.wait()

    def _there(self, key: Key) -> Object:
        if self.down:
            raise port.Unreachable("down")
        if key not in self.objects:
            raise port.NotFound(str(key))
        return self.objects[key]

    async def get(self, key: Key) -> Object:
        return copy.deepcopy(self._there(key))

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: str | None = None
    ) -> list[Object]:
        if self.down:
            raise port.Unreachable("down")
        wanted = dict(one.split("=") for one in labels.split(",")) if labels else {}
        return [
            copy.deepcopy(obj)
            for key, obj in self.objects.items()
            if key.kind is kind
            and namespace in (None, key.namespace)
            and wanted.items() <= (obj["metadata"].get("labels") or {}).items()
        ]

    async def create(self, kind: Kind, namespace: str, body: Object) -> Object:
        headed = {"apiVersion": kind.api_version, "kind": kind.name, **body}
        headed["metadata"] = {**body["metadata"], "namespace": namespace}
        key = key_of(kind, headed)
        if self.down:
            raise port.Unreachable("down")
        if key in self.objects:
            raise port.Exists(str(key))
        self.writes.append(("create", key))
        return self.put(kind, headed)

    async def delete(self, key: Key, *, uid: str | None = None, grace_s: int | None = None) -> None:
        self._same(key, uid)
        self.writes.append(("delete", key))
        del self.objects[key]

    async def patch(self, key: Key, body: Object) -> Object:
        there = self._there(key)
        self.writes.append(("patch", key))
        return self.put(key.kind, _merged(there, body))

    async def apply_status(self, key: Key, uid: str, status: Object) -> Object:
        there = self._there(key)
        self.writes.append(("status", key))
        made = self.put(key.kind, {**there, "status": copy.deepcopy(status)})
        self._same(key, uid)
        return made

    def _same(self, key: Key, uid: str | None) -> Object:
        there = self._there(key)
        if uid is not None and there["metadata"]["uid"] != uid:
            raise port.Conflict(f"{key} is another one")
        return there

    async def token_review(self, token: str, audience: str) -> Reviewed | None:
        if self.down:
            raise port.Unreachable("down")
        return self.tokens.get(token) if audience == port.AUDIENCE else None

    async def access_review(self, verb: str, kind: Kind, namespace: str | None = None) -> bool:
        return True


def _merged(there: Any, body: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(body, dict):
        return body
    base = dict(there) if isinstance(there, dict) else {}
    for key, value in body.items():
        if value is None:
            base.pop(key, None)
        else:
            base[key] = _merged(base.get(key), value)
    return base
