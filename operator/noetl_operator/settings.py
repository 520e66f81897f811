"""The operator's settings: limits, budgets and intervals, each with its reason.

Read once at the start from `NOETL_*` variables of the environment; the chart sets those.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from noetl_operator.kube.allow import Workers

PREFIX = "NOETL_"


class BadSettings(ValueError):
    """A variable of the environment does not say what it should; the text names each."""


def _listed(value: object) -> object:
    """`a, b` as a list of names."""
    if not isinstance(value, str):
        return value
    return tuple(name.strip() for name in value.split(",") if name.strip())


def _data(value: object) -> object:
    """JSON as what it says."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.strip() else None
    except ValueError:
        raise ValueError("it is not JSON") from None


class OperatorSettings(BaseModel):
    """Every knob of the control plane."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    lease_ttl_s: float = Field(15.0, gt=0)
    """How long a worker may be silent before its runs are given to another one."""
    heartbeat_s: float = Field(5.0, gt=0)
    """How often workers shall say that they live; well below a third of the lease."""
    long_poll_s: float = Field(20.0, ge=0)
    """How long a request for work waits for some."""
    shard_ttl_s: float = Field(10.0, gt=0)
    """How long a leader may be silent before another process takes its executions."""
    sweep_interval_s: float = Field(1.0, gt=0)
    """How often time is looked at: expired leases, deadlines, the outbox."""
    sweep_batch: int = Field(500, ge=1)
    """How much one look takes on."""
    live_executions: int = Field(2_000, ge=1)
    """Executions whose state is kept in memory."""
    max_report_bytes: int = Field(16 * 1024 * 1024, ge=1024)
    """The largest report of a worker, all its runs together."""
    max_result_bytes: int = Field(256 * 1024 * 1024, ge=1024)
    """The largest result that is stored."""
    max_lease: int = Field(64, ge=1)
    """Commands that one request for work may take."""
    connections: int = Field(8, ge=2)
    """Connections to the database."""
    partitions_ahead: int = Field(4, ge=1)
    """Weeks of the log that are prepared in advance."""
    retention_days: int = Field(0, ge=0)
    """Weeks of the log that ended so many days ago are dropped once nothing in them runs; 0 keeps
    everything."""

    # On Kubernetes

    name: str = Field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    """Whom the leadership and the Events name: the Pod. A container that is started again in its
    Pod is the same one, and leads on at once."""
    database: str = Field("", repr=False)
    """Where Postgres is, as a `postgresql://` URI; else `database_file`."""
    database_file: Path | None = None
    """A file that holds the URI: a mounted Secret."""
    kubeconfig: Path | None = None
    """How to reach the API server; unset: as the Pod that this process runs in."""
    namespaces: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """The namespaces to serve, separated by commas; none: all of them."""
    listen: str = "0.0.0.0"
    """The address that workers and probes call."""
    port: int = Field(8080, ge=0, le=65535)
    """The port for workers."""
    health_port: int = Field(8081, ge=0, le=65535)
    """The port of `/livez` and `/readyz`."""
    resync_s: float = Field(60.0, gt=0)
    """How often everything is compared with a fresh list."""
    workers: Annotated[Workers | None, BeforeValidator(_data)] = None
    """How worker Pods look, as JSON; unset: somebody else makes them."""

    def dsn(self) -> str:
        """Where the database is; a file is read anew each time, for its content may change."""
        if self.database:
            return self.database
        if self.database_file is None:
            raise BadSettings(f"{PREFIX}DATABASE or {PREFIX}DATABASE_FILE must say where it is")
        try:
            return self.database_file.read_text().strip()
        except OSError as error:
            raise BadSettings(f"{PREFIX}DATABASE_FILE: {error.strerror}") from None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> OperatorSettings:
        given = {
            name: environment[PREFIX + name.upper()]
            for name in cls.model_fields
            if PREFIX + name.upper() in environment
        }
        try:
            return cls.model_validate(given)
        except ValidationError as wrong:
            # pydantic's own text would quote the values, which may be anything.
            raise BadSettings("; ".join(map(_told, wrong.errors()))) from None


def _told(error: ErrorDetails) -> str:
    name, *inner = map(str, error["loc"])
    return f"{PREFIX}{'.'.join([name.upper(), *inner])}: {error['msg']}"
