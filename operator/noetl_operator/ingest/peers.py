"""Who calls: the port behind which tokens are checked.

In a cluster a TokenReview answers for the Pod's projected token; a local run has one random token.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Peer:
    """A worker that was recognised, and the pools it may serve."""

    name: str
    pools: frozenset[str] | None = None
    """None: any."""

    def is_called(self, worker: str) -> bool:
        """Whether it may lease under this name: whoever is bound to pools, only under its own."""
        return self.pools is None or worker == self.name.rpartition("/")[2]

    def may_serve(self, pool: str) -> bool:
        return self.pools is None or pool in self.pools


class Authenticator(Protocol):
    async def identify(self, token: str) -> Peer | None:
        """Whose token this is, or None."""


class SharedToken:
    """One token for all workers of a local run."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def identify(self, token: str) -> Peer | None:
        shown = token.encode("utf-8", "surrogatepass")
        return Peer("local") if hmac.compare_digest(shown, self._token) else None
