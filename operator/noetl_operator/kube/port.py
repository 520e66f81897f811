"""What the rooms of `kube` need of a Kubernetes, in their own words.

`client` stands behind this port with the real API, tests with one in memory; the same contract
tests hold for both.

    ClusterError
    ├── NotFound       there is no such object
    ├── Exists         an object of this name is there already
    ├── Conflict       the object is another one than was meant, or moved on
    ├── Gone           a list or a watch is too old to go on with
    ├── Denied         the operator has no right to do this
    ├── Refused        the API server does not take the object as it is
    └── Unreachable    no answer, or none that means anything: try again
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Object: TypeAlias = dict[str, Any]
"""An object of the API as data."""

GROUP = "noetl.io"
MANAGER = "noetl-operator"
"""The field manager of everything the operator applies."""

EXECUTION_ID = "noetl.io/execution-id"
"""Annotation of a child: the execution that its parent asked for."""
PARENT = "noetl.io/parent"
"""Label of a child: the name of its parent, as far as a label can hold it."""
POOL = "noetl.io/pool"
"""Annotation of a worker Pod: the pool that it may serve."""
AUDIENCE = "noetl"
"""Whom the tokens of workers are meant for."""


class ClusterError(Exception):
    """Something the cluster refused or could not do."""


class NotFound(ClusterError):
    """There is no such object."""


class Exists(ClusterError):
    """An object of this name is there already."""


class Conflict(ClusterError):
    """The object is another one than was meant, or moved on."""


class Gone(ClusterError):
    """A list or a watch is too old to go on with."""


class Denied(ClusterError):
    """The operator has no right to do this."""


class Refused(ClusterError):
    """The API server does not take the object as it is."""


class Unreachable(ClusterError):
    """No answer, or none that means anything: try again."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource of the API."""

    group: str
    version: str
    plural: str
    name: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """Where the API server serves it."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"


PLAYBOOK = Kind(GROUP, "v1", "playbooks", "Playbook")
EXECUTION = Kind(GROUP, "v1", "executions", "Execution")
POD = Kind("", "v1", "pods", "Pod")
JOB = Kind("batch", "v1", "jobs", "Job")
EVENT = Kind("", "v1", "events", "Event")


@dataclass(frozen=True, slots=True)
class Key:
    """One object, whether it is there or not."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.name} {self.namespace}/{self.name}"


def key_of(kind: Kind, obj: Mapping[str, Any]) -> Key:
    meta = obj["metadata"]
    return Key(kind, meta.get("namespace", ""), meta["name"])


def uid_of(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"]["uid"])


def generation_of(obj: Mapping[str, Any]) -> int:
    return int(obj["metadata"].get("generation", 1))


@dataclass(frozen=True, slots=True)
class Reviewed:
    """Whose token it is: a ServiceAccount, and the Pod that the token is bound to."""

    namespace: str
    service_account: str
    pod: str | None = None
    pod_uid: str | None = None


class Cluster(Protocol):
    """A Kubernetes, as far as the operator may use it."""

    async def get(self, key: Key) -> Object:
        """Raises NotFound."""

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: str | None = None
    ) -> list[Object]:
        """All objects of a kind; without a namespace those of every one."""

    async def create(self, kind: Kind, namespace: str, body: Object) -> Object:
        """Raises Exists."""

    async def delete(self, key: Key, *, uid: str | None = None, grace_s: int | None = None) -> None:
        """With what depends on it, in the background. Raises NotFound, and Conflict where the
        object of this name is another one."""

    async def patch(self, key: Key, body: Object) -> Object:
        """A merge patch. Raises NotFound."""

    async def apply_status(self, key: Key, uid: str, status: Object) -> Object:
        """Server-side apply of the whole status. Raises NotFound; Conflict where the object of
        this name is another one: that one then has this status until its own is written."""

    async def token_review(self, token: str, audience: str) -> Reviewed | None:
        """Whose token it is; None where it is nobody's, or not meant for this audience."""

    async def access_review(self, verb: str, kind: Kind, namespace: str | None = None) -> bool:
        """Whether the operator itself may do something."""
