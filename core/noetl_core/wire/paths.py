"""Where messages go, what stands in their headers, and how a refusal looks."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from noetl_core.values import Value
from noetl_core.wire.reading import PROTOCOL, Malformed, Reader, WireError, check_protocol

PREFIX = f"/v{PROTOCOL}"
LEASE = f"{PREFIX}/lease"
REPORTS = f"{PREFIX}/reports"
HEARTBEAT = f"{PREFIX}/heartbeat"
HAND_BACK = f"{PREFIX}/handback"
CHILDREN = f"{PREFIX}/runs/{{lease}}/children"
RESULTS = f"{PREFIX}/results/{{digest}}"
"""Content under the SHA-256 of its bytes: PUT to store, GET to read."""

PROTOCOL_HEADER = "Noetl-Protocol"
"""On every request and every answer: the version of the protocol."""
CAPABILITY_HEADER = "Noetl-Capability"
"""On every call about one run: what came with its command."""

LEASE_HEADER = "Noetl-Lease"
EPOCH_HEADER = "Noetl-Epoch"
"""On calls about a result: in the name of which lease it is stored or read."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


def children_of(lease_id: str) -> str:
    return CHILDREN.format(lease=lease_id)


def result_at(digest: str) -> str:
    return RESULTS.format(digest=checked_digest(digest))


def checked_digest(text: str) -> str:
    """The name of a result, as a path may hold it."""
    if not _DIGEST.fullmatch(text):
        raise Malformed(f"`{text[:80]}` is no SHA-256 in small hexadecimal digits")
    return text


def check_content(digest: str, content: bytes) -> None:
    """Refuse content that is not what its name says, on either side."""
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise Malformed(f"the content has the digest {found}, not {digest[:64]}")


def check_header(value: str | None, whose: str) -> None:
    """Refuse a peer of another version by `PROTOCOL_HEADER`."""
    spoken: Value = int(value) if value and value.isascii() and value.isdigit() else value
    check_protocol(spoken, whose)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The body of every answer that is no success."""

    code: str
    """Stable: what a program acts on."""
    message: str
    """What a person reads."""
    retry: bool = False
    """The same request may succeed later."""

    def as_json(self) -> dict[str, Value]:
        return {"error": {"code": self.code, "message": self.message, "retry": self.retry}}

    @classmethod
    def of(cls, data: Value) -> Refusal:
        reader = Reader(data, "refusal").inner("error")
        if reader is None:
            raise Malformed("refusal.error: missing")
        message = reader.words_or_none("message")
        return cls(code=reader.text("code"), message=message or "", retry=reader.flag("retry"))

    @classmethod
    def of_error(cls, error: WireError) -> Refusal:
        return cls(code=error.code, message=str(error))
