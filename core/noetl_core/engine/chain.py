"""The hash chain of a log: each event's hash covers the one before it.

A row that was changed, removed or put in later breaks the chain from there on. The store links
what it appends; `verify` follows the chain again.
"""

from __future__ import annotations

import hashlib

from noetl_core.engine.events import Event


def link(before: bytes, event: Event, payload: str) -> bytes:
    """The hash of an event whose payload was written as this very text."""
    fact = event.fact
    parts = (
        event.execution_id,
        str(event.seq),
        event.event_id,
        fact.name,
        event.timestamp,
        event.source,
        fact.step or "",
        fact.run_id or "",
        fact.task or "",
        "" if fact.attempt is None else str(fact.attempt),
        fact.iteration or "",
        payload,
    )
    text = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(before + text).digest()
