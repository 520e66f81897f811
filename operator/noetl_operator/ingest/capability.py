"""What a lease is worth: a signed note that its holder may speak about this one run.

Two layers guard the ingest: a token says which worker is calling, a capability which lease it was
given. Every replica signs with the same key, which only the database holds.
"""

from __future__ import annotations

import hmac


class Capabilities:
    """Signs leases and checks what workers show."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, execution_id: str, lease_id: str, epoch: int) -> str:
        """`<execution>.<signature>`: the execution is needed to find the run, and is signed too."""
        return f"{execution_id}.{self._signature(execution_id, lease_id, epoch)}"

    def execution_of(self, capability: str, lease_id: str, epoch: int) -> str | None:
        """The execution that this capability is good for, or None."""
        execution_id, _, shown = capability.partition(".")
        wanted = self._signature(execution_id, lease_id, epoch)
        return execution_id if _same(shown, wanted) else None

    def _signature(self, execution_id: str, lease_id: str, epoch: int) -> str:
        text = f"{execution_id}/{lease_id}/{epoch}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, text, "sha256").hex()


def _same(shown: str, wanted: str) -> bool:
    """Headers may hold bytes that are no text; they are just not the same."""
    return hmac.compare_digest(shown.encode("utf-8", "surrogatepass"), wanted.encode())
