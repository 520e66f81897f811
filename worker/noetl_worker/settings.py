"""The worker's settings, from `NOETL_*` variables of the environment, each with its reason."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

PREFIX = "NOETL_"


class BadSettings(ValueError):
    """A variable of the environment does not say what it should; the text names each."""


class WorkerSettings(BaseModel):
    """Every knob of the data plane."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    url: str = Field(pattern=r"\w")
    """Where the operator's ingest is; several replicas with commas between."""
    token: str = Field("", repr=False)
    """Who this worker is; else `token_file`."""
    token_file: Path | None = None
    """A file that holds the token and may change (a projected ServiceAccount token)."""
    pool: str = "default"
    """Whose commands it takes."""
    worker: str = Field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    """Its name in the log."""
    capacity: int = Field(16, ge=1)
    """Runs at once; a run that only waits for a child does not count."""
    lease: str | None = None
    """Run this one command and end."""
    keychain: Path = Path("/etc/noetl/keychain")
    """The folder of mounted Secrets: `<secret>/<key>`."""
    scratch: Path = Path("/tmp/noetl")
    """Where step-runs get their folders."""
    stop_grace_s: float = Field(20.0, ge=0)
    """How long runs may go on after the worker was told to stop; then they are handed back."""
    exit_with_stdin: bool = False
    """End when standard input ends: a local worker does not outlive the command that started it."""
    allow_link_local: bool = False
    """Let http tasks reach link-local addresses, such as those of cloud metadata services."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> WorkerSettings:
        given = {
            name: environment[PREFIX + name.upper()]
            for name in cls.model_fields
            if PREFIX + name.upper() in environment
        }
        try:
            return cls.model_validate(given)
        except ValidationError as wrong:
            # pydantic's own text would quote the values, the token among them.
            names = [f"{PREFIX}{str(e['loc'][0]).upper()}: {e['msg']}" for e in wrong.errors()]
            raise BadSettings("; ".join(names)) from None

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where the operator's replicas are; one of them leads."""
        return tuple(one.strip().rstrip("/") for one in self.url.split(",") if one.strip())

    def current_token(self) -> str:
        """The token as it is now: a projected one is renewed in its file."""
        if self.token or self.token_file is None:
            return self.token
        return self.token_file.read_text().strip()
