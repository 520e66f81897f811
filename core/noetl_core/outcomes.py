"""What a task run ends with: exactly one outcome, ok or error (rules D6, K24).

Tools make outcomes, the pipeline judges them by policy, arcs read their errors. Which kinds may be
retried is decided here, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from noetl_core.values import Value


class ErrorKind(StrEnum):
    """Categories of errors; `retryable` says whether trying again makes sense."""

    CONNECTION = "connection"
    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    SERVER_ERROR = "server_error"
    AUTH = "auth"
    NOT_FOUND = "not_found"
    CLIENT_ERROR = "client_error"
    SCHEMA = "schema"
    PARSE = "parse"
    DB_DEADLOCK = "db_deadlock"
    DB_CONNECTION = "db_connection"
    DB_TIMEOUT = "db_timeout"
    DB_CONSTRAINT = "db_constraint"
    TEMPLATE = "template"
    CTX_CONFLICT = "ctx_conflict"
    CANCELLED = "cancelled"
    WORKER_LOST = "worker_lost"
    LIMIT = "limit"
    POLICY = "policy"
    CHILD_FAILED = "child_failed"
    UNKNOWN = "unknown"

    @property
    def retryable(self) -> bool:
        return self in _RETRYABLE


_RETRYABLE = frozenset(
    {
        ErrorKind.CONNECTION,
        ErrorKind.TIMEOUT,
        ErrorKind.RATE_LIMIT,
        ErrorKind.SERVER_ERROR,
        ErrorKind.DB_DEADLOCK,
        ErrorKind.DB_CONNECTION,
        ErrorKind.DB_TIMEOUT,
        ErrorKind.WORKER_LOST,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskError:
    """Why something failed, as templates read it (`outcome.error`, `event.error`)."""

    kind: ErrorKind
    message: str
    code: str | None = None
    source: str | None = None
    """The tool kind, or the part of the engine, that says so."""
    http_status: int | None = None
    retry_after: float | None = None
    pg_code: str | None = None
    exception_type: str | None = None

    def as_json(self) -> dict[str, Value]:
        """The mapping that templates and events carry; unknown details are left out."""
        found: dict[str, Value] = {
            "kind": self.kind.value,
            "retryable": self.kind.retryable,
            "code": self.code,
            "message": self.message,
            "source": self.source,
        }
        for name in ("http_status", "retry_after", "pg_code", "exception_type"):
            value: Value = getattr(self, name)
            if value is not None:
                found[name] = value
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one run of a task ended. Times are for people: nothing depends on them."""

    result: Value = None
    error: TaskError | None = None
    duration_ms: float = 0.0
    started_at: str | None = None
    ended_at: str | None = None
    helpers: Mapping[str, Value] = field(default_factory=dict)
    """`http`, `pg`, `py`: what the tool kind adds for policies to read."""

    @property
    def ok(self) -> bool:
        return self.error is None

    def as_json(self, attempt: int) -> dict[str, Value]:
        """`outcome` as policy rules see it."""
        return {
            **self.helpers,
            "status": "ok" if self.ok else "error",
            "result": self.result,
            "error": self.error.as_json() if self.error else None,
            "meta": {
                "attempt": attempt,
                "duration_ms": self.duration_ms,
                "started_at": self.started_at,
                "ended_at": self.ended_at,
            },
        }
