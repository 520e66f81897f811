"""What operator and worker say to each other: version 1, JSON over HTTP.

Every message is a frozen dataclass with `as_json()` and `of(data)`. Both sides bring their own JSON
codec: plain data comes in, plain data goes out. Nothing here opens a connection.

    POST /v1/lease                  LeaseRequest → LeaseAnswer      long poll for commands
    POST /v1/runs/{lease}/events    Report → ReportAnswer           facts in order, and the end
    POST /v1/runs/{lease}/children  ChildRequest → ChildAnswer      a child execution
    POST /v1/heartbeat              Heartbeat → HeartbeatAnswer     all leases of a worker
    POST /v1/handback               HandBack → nothing              leases of a worker that goes
    PUT, GET /v1/results/{sha256}   content, verified by both sides
    anything refused                Refusal
"""

from noetl_core.wire.beats import HandBack, Heartbeat, HeartbeatAnswer, Held
from noetl_core.wire.children import ChildAnswer, ChildEnd, ChildRequest
from noetl_core.wire.commands import Command, Knows, LeaseAnswer, LeaseRequest, unknown_to
from noetl_core.wire.facts import MAX_FACTS, fact_json, read_fact
from noetl_core.wire.paths import (
    CAPABILITY_HEADER,
    CHILDREN,
    EVENTS,
    HAND_BACK,
    HEARTBEAT,
    LEASE,
    PROTOCOL_HEADER,
    RESULTS,
    Refusal,
    check_content,
    check_header,
    checked_digest,
    children_of,
    events_of,
    result_at,
)
from noetl_core.wire.reading import (
    PROTOCOL,
    Malformed,
    TooMuch,
    WireError,
    WrongProtocol,
)
from noetl_core.wire.reports import Report, ReportAnswer

__all__ = [
    "CAPABILITY_HEADER",
    "CHILDREN",
    "EVENTS",
    "HAND_BACK",
    "HEARTBEAT",
    "LEASE",
    "MAX_FACTS",
    "PROTOCOL",
    "PROTOCOL_HEADER",
    "RESULTS",
    "ChildAnswer",
    "ChildEnd",
    "ChildRequest",
    "Command",
    "HandBack",
    "Heartbeat",
    "HeartbeatAnswer",
    "Held",
    "Knows",
    "LeaseAnswer",
    "LeaseRequest",
    "Malformed",
    "Refusal",
    "Report",
    "ReportAnswer",
    "TooMuch",
    "WireError",
    "WrongProtocol",
    "check_content",
    "check_header",
    "checked_digest",
    "children_of",
    "events_of",
    "fact_json",
    "read_fact",
    "result_at",
    "unknown_to",
]
