"""What operator and worker say to each other: version 1, JSON over HTTP.

Every message is a frozen dataclass with `as_json()` and `of(data)`. Both sides bring their own JSON
codec: plain data comes in, plain data goes out. Nothing here opens a connection.

    POST /v1/lease                  LeaseRequest → LeaseAnswer      long poll for commands
    POST /v1/reports                Reports → ReportsAnswer         facts and ends of many runs
    POST /v1/runs/{lease}/children  ChildRequest → ChildAnswer      a child execution
    POST /v1/heartbeat              Heartbeat → HeartbeatAnswer     all leases of a worker
    POST /v1/handback               HandBack → nothing              leases of a worker that goes
    PUT, GET /v1/results/{sha256}   content, verified by both sides
    anything refused                Refusal
"""

from noetl_core.wire.batches import LogLine, Reports, ReportsAnswer, RunAnswer, RunReport
from noetl_core.wire.beats import HandBack, Heartbeat, HeartbeatAnswer, Held
from noetl_core.wire.children import ChildAnswer, ChildEnd, ChildRequest
from noetl_core.wire.commands import Command, Knows, LeaseAnswer, LeaseRequest, unknown_to
from noetl_core.wire.facts import MAX_FACTS, fact_json, read_fact
from noetl_core.wire.paths import (
    CAPABILITY_HEADER,
    CHILDREN,
    EPOCH_HEADER,
    HAND_BACK,
    HEARTBEAT,
    LEASE,
    LEASE_HEADER,
    PROTOCOL_HEADER,
    REPORTS,
    RESULTS,
    Refusal,
    check_content,
    check_header,
    checked_digest,
    children_of,
    result_at,
)
from noetl_core.wire.reading import (
    PROTOCOL,
    Malformed,
    TooMuch,
    WireError,
    WrongProtocol,
)
from noetl_core.wire.reports import Report

__all__ = [
    "CAPABILITY_HEADER",
    "CHILDREN",
    "EPOCH_HEADER",
    "HAND_BACK",
    "HEARTBEAT",
    "LEASE",
    "LEASE_HEADER",
    "MAX_FACTS",
    "PROTOCOL",
    "PROTOCOL_HEADER",
    "REPORTS",
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
    "LogLine",
    "Malformed",
    "Refusal",
    "Report",
    "Reports",
    "ReportsAnswer",
    "RunAnswer",
    "RunReport",
    "TooMuch",
    "WireError",
    "WrongProtocol",
    "check_content",
    "check_header",
    "checked_digest",
    "children_of",
    "fact_json",
    "read_fact",
    "result_at",
    "unknown_to",
]
