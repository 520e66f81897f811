"""What tools answer in a test: a pure function of what is asked, so that any order gives the same.

An outcome depends on the step, the iteration, the task, its rendered inputs and the attempt, never
on how often or when it was asked: a run that is delivered twice meets the same world.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.values import Value

KINDS = (ErrorKind.TIMEOUT, ErrorKind.SCHEMA, ErrorKind.CONNECTION)
"""The errors that scripted tools make; policies and arcs of made playbooks tell them apart."""


@dataclass(frozen=True, slots=True)
class Script:
    """`rates` gives a task (`step/label`) its share of errors in percent."""

    seed: int
    rates: Mapping[str, int] = field(default_factory=dict)

    def outcome(
        self, step: str, iteration: str | None, label: str, inputs: Value, attempt: int
    ) -> Outcome:
        asked = [self.seed, step, iteration, label, inputs, attempt]
        drawn = zlib.crc32(json.dumps(asked, sort_keys=True).encode())
        if drawn % 100 < self.rates.get(f"{step}/{label}", 0):
            kind = KINDS[drawn // 100 % len(KINDS)]
            return Outcome(error=TaskError(kind=kind, message=f"{label} failed", code="SCRIPTED"))
        return Outcome(result={"v": drawn // 100 % 7, "seen": inputs})

    def child(
        self, step: str, iteration: str | None, label: str, workload: Value, attempt: int
    ) -> Outcome:
        """The same for a `playbook` task: how the child execution ends (rule K37)."""
        found = self.outcome(step, iteration, label, workload, attempt)
        if found.error is None:
            return found
        kind = ErrorKind.CHILD_FAILED
        return Outcome(error=TaskError(kind=kind, message="the child failed", code="StepFailed"))
