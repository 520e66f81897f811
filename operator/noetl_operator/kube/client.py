"""The real Kubernetes behind the port: the only importer of `kubernetes.aio`.

Objects travel as plain data; the package brings configuration, credentials and their renewal, and
the connections. Its own retries are off: whoever calls knows better when to try again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from kubernetes.aio import client as api
from kubernetes.aio import config

from noetl_operator.kube import port
from noetl_operator.kube.port import Key, Kind, Object, Reviewed
from noetl_operator.kube.tame import parsed

PAGE = 500
"""Objects that one answer of a list brings."""
LARGE = 200_000
"""Bytes of an answer that is parsed in a thread, so that nobody else has to wait."""
TIMEOUT_S = 30.0
CONNECTIONS = 64
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_JSON = "application/json"

_POD_NAME = "authentication.kubernetes.io/pod-name"
_POD_UID = "authentication.kubernetes.io/pod-uid"
_ACCOUNT = "system:serviceaccount:"


class KubeClient:
    """One API server."""

    def __init__(self, client: api.ApiClient) -> None:
        self._client = client
        self._timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, kubeconfig: Path | None) -> AsyncIterator[KubeClient]:
        """With a kubeconfig; without one as the Pod that this process runs in."""
        configuration = api.Configuration()
        try:
            if kubeconfig is not None:
                await config.load_kube_config(  # type: ignore[no-untyped-call]
                    config_file=str(kubeconfig), client_configuration=configuration
                )
            else:
                config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        except (config.ConfigException, OSError) as error:
            raise port.Unreachable(f"no way to the API server is known: {error}") from None
        configuration.retries = None
        configuration.connection_pool_maxsize = CONNECTIONS
        client = api.ApiClient(configuration)
        client.user_agent = port.MANAGER
        try:
            yield cls(client)
        finally:
            await client.close()  # type: ignore[no-untyped-call]

    async def get(self, key: Key) -> Object:
        return await self._call("GET", _path(key))

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: str | None = None
    ) -> list[Object]:
        query: dict[str, object] = {"limit": PAGE}
        if labels:
            query["labelSelector"] = labels
        found: list[Object] = []
        while True:
            page = await self._call("GET", _collection(kind, namespace), query)
            found += page["items"]
            more = page["metadata"].get("continue")
            if not more:
                return found
            query["continue"] = more

    async def create(self, kind: Kind, namespace: str, body: Object) -> Object:
        headed = {"apiVersion": kind.api_version, "kind": kind.name, **body}
        query = {"fieldManager": port.MANAGER}
        try:
            return await self._call("POST", _collection(kind, namespace), query, headed)
        except port.Conflict as error:
            raise port.Exists(str(error)) from None

    async def delete(self, key: Key, *, uid: str | None = None, grace_s: int | None = None) -> None:
        options: Object = {"propagationPolicy": "Background"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        await self._call("DELETE", _path(key), None, options)

    async def patch(self, key: Key, body: Object) -> Object:
        query = {"fieldManager": port.MANAGER}
        return await self._call("PATCH", _path(key), query, body, _MERGE)

    async def apply_status(self, key: Key, uid: str, status: Object) -> Object:
        body = {
            "apiVersion": key.kind.api_version,
            "kind": key.kind.name,
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": uid},
            "status": status,
        }
        query = {"fieldManager": port.MANAGER, "force": "true"}
        made = await self._call("PATCH", f"{_path(key)}/status", query, body, _APPLY)
        # The API server ignores the uid of a status that is applied: it can only be noticed.
        if port.uid_of(made) != uid:
            raise port.Conflict(f"{key} is another one than {uid}")
        return made

    async def token_review(self, token: str, audience: str) -> Reviewed | None:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [audience]},
        }
        made = await self._call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", None, body)
        return _reviewed(made.get("status", {}), audience)

    async def access_review(self, verb: str, kind: Kind, namespace: str | None = None) -> bool:
        wanted = {"verb": verb, "group": kind.group, "resource": kind.plural}
        if namespace:
            wanted["namespace"] = namespace
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": wanted},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        made = await self._call("POST", path, None, body)
        return bool(made["status"].get("allowed"))

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: Object | None = None,
        content: str = _JSON,
    ) -> Object:
        headers = {"Accept": _JSON, "Content-Type": content}
        try:
            request = await self._client.param_serialize(
                method,
                path,
                query_params=list((query or {}).items()),
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = await self._client.call_api(*request, _request_timeout=self._timeout)
            data = await answer.read()  # type: ignore[no-untyped-call]
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise port.Unreachable(f"{method} {path}: {type(error).__name__}") from None
        if 200 <= answer.status < 300:
            return await _parsed(data)
        raise _error(answer.status, data, f"{method} {path}")


async def _parsed(data: bytes) -> Object:
    """In a thread where it may take a while."""
    if not data:
        return {}
    return parsed(data) if len(data) < LARGE else await asyncio.to_thread(parsed, data)


def _collection(kind: Kind, namespace: str | None) -> str:
    inside = f"/namespaces/{namespace}" if namespace else ""
    return f"{kind.root}{inside}/{kind.plural}"


def _path(key: Key) -> str:
    return f"{_collection(key.kind, key.namespace)}/{key.name}"


_ERRORS: dict[int, type[port.ClusterError]] = {
    400: port.Refused,
    401: port.Denied,
    403: port.Denied,
    404: port.NotFound,
    409: port.Conflict,
    410: port.Gone,
    413: port.Refused,
    415: port.Refused,
    422: port.Refused,
}


def _error(status: int, data: bytes, what: str) -> port.ClusterError:
    """An answer that is no success. What is not known (429, 5xx) passes."""
    try:
        said = orjson.loads(data).get("message", "")
    except (orjson.JSONDecodeError, AttributeError):
        said = data[:200].decode("utf-8", "replace")
    return _ERRORS.get(status, port.Unreachable)(f"{what}: {status} {said}"[:2000])


def _reviewed(status: Mapping[str, Any], audience: str) -> Reviewed | None:
    if not status.get("authenticated") or audience not in status.get("audiences", []):
        return None
    user = status.get("user", {})
    name = str(user.get("username", ""))
    if not name.startswith(_ACCOUNT):
        return None
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    extra = user.get("extra") or {}
    return Reviewed(namespace, account, _only(extra.get(_POD_NAME)), _only(extra.get(_POD_UID)))


def _only(values: object) -> str | None:
    return str(values[0]) if isinstance(values, list) and len(values) == 1 else None
