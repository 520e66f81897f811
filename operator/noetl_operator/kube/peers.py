"""Who calls, in a cluster: the token of a worker Pod, and the pools that this Pod may serve.

A TokenReview tells whose token it is and which Pod it is bound to; the Pod's annotation names its
pool. Whoever may make Pods in a namespace may claim a pool of that namespace, and of no other: the
namespace is the border of trust, as it is for Secrets. Answers are remembered for a short while.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict

from noetl_operator.ingest.peers import Peer
from noetl_operator.kube import port
from noetl_operator.kube.pools import PoolName, Scope
from noetl_operator.kube.port import AUDIENCE, POD, POOL, Cluster, Key, Reviewed
from noetl_operator.kube.watch import Watch
from noetl_operator.store.objects import Objects
from noetl_operator.store.port import Unavailable

REMEMBERED_S = 60.0
"""How long an answer is good; a Pod that is gone may be believed as long."""
REFUSED_S = 5.0
"""How long a refusal is: a Pod may be known a moment later."""
MOST = 10_000


class KubePeers:
    """An `Authenticator` that asks the API server."""

    def __init__(self, cluster: Cluster, watch: Watch, objects: Objects) -> None:
        self._cluster, self._watch, self._objects = cluster, watch, objects
        self._known: OrderedDict[bytes, tuple[float, Peer | None]] = OrderedDict()

    async def identify(self, token: str) -> Peer | None:
        if not token:
            return None
        # Never the token itself: what is in memory may end up in a dump.
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        until, peer = self._known.get(digest, (0.0, None))
        if time.monotonic() >= until:
            peer = await self._ask(token)
            pause = REMEMBERED_S if peer is not None else REFUSED_S
            self._known[digest] = time.monotonic() + pause, peer
            while len(self._known) > MOST:
                self._known.popitem(last=False)
        return peer

    async def _ask(self, token: str) -> Peer | None:
        try:
            reviewed = await self._cluster.token_review(token, AUDIENCE)
            return None if reviewed is None else await self._peer(reviewed)
        except (port.Unreachable, port.Denied) as error:
            # Whose token it is cannot be said now: the worker tries again.
            raise Unavailable(f"the token cannot be reviewed: {error}") from None

    async def _peer(self, reviewed: Reviewed) -> Peer | None:
        if reviewed.pod is None:
            return None
        key = Key(POD, reviewed.namespace, reviewed.pod)
        pod = self._watch.get(key)
        if pod is None or pod["metadata"]["uid"] != reviewed.pod_uid:
            try:
                pod = await self._cluster.get(key)
            except port.NotFound:
                return None
        if pod["metadata"]["uid"] != reviewed.pod_uid:
            return None
        pool = (pod["metadata"].get("annotations") or {}).get(POOL)
        if pool is None or not await self._belongs(pool, reviewed.namespace):
            return None
        return Peer(f"{reviewed.namespace}/{reviewed.pod}", frozenset({pool}))

    async def _belongs(self, pool: str, namespace: str) -> bool:
        """Whether a pool is one of this namespace."""
        name = PoolName.parse(pool)
        if name is None:
            return False
        if name.scope is Scope.PLAYBOOK:
            return name.namespace == namespace
        return await self._objects.namespace(name.execution_id) == namespace
