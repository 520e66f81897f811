"""Child executions that a `playbook` task asks for (`POST /v1/runs/{lease}/children`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from noetl_core.engine.triggers import StartChild, Verdict
from noetl_core.values import Value
from noetl_core.wire.ends import read_verdict
from noetl_core.wire.reading import Reader, without_nothing

NOT_FOUND = "NotFound"
"""The reason of a child whose playbook is not there (rule K37)."""
NOT_FOUND_CODE = "K37.not-found"
"""The code of the problem that says so in its execution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRequest:
    """Start a child; asking twice for one task run gives one child."""

    epoch: int
    task: str
    task_run: int
    playbook: str
    iteration: str | None = None
    workload: dict[str, Value] = field(default_factory=dict)
    wait: bool = True

    def as_json(self) -> dict[str, Value]:
        found: dict[str, Value] = {
            "epoch": self.epoch,
            "task": self.task,
            "task_run": self.task_run,
            "playbook": self.playbook,
            "workload": self.workload,
            "wait": self.wait,
        }
        if self.iteration is not None:
            found["iteration"] = self.iteration
        return found

    @classmethod
    def of(cls, data: Value) -> ChildRequest:
        reader = Reader(data, "child")
        return cls(
            epoch=reader.whole("epoch"),
            task=reader.text("task"),
            task_run=reader.whole("task_run"),
            playbook=reader.text("playbook"),
            iteration=reader.text_or_none("iteration"),
            workload=reader.mapping("workload"),
            wait=reader.flag("wait", True),
        )

    def trigger(self, lease_id: str) -> StartChild:
        return StartChild(
            lease_id=lease_id,
            epoch=self.epoch,
            task=self.task,
            task_run=self.task_run,
            iteration=self.iteration,
            playbook=self.playbook,
            workload=self.workload,
            wait=self.wait,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    """How a child ended."""

    child: str
    phase: str
    reason: str
    message: str | None = None
    result: Value = None

    def as_json(self) -> dict[str, Value]:
        found = without_nothing(
            {
                "child": self.child,
                "phase": self.phase,
                "reason": self.reason,
                "message": self.message,
            }
        )
        found["result"] = self.result
        return found

    @classmethod
    def read(cls, reader: Reader) -> ChildEnd:
        return cls(
            child=reader.text("child"),
            phase=reader.text("phase"),
            reason=reader.text("reason"),
            message=reader.words_or_none("message"),
            result=reader.value("result"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildAnswer:
    """The child, or why there is none."""

    verdict: Verdict
    child: str | None = None
    execution: str | None = None
    """The name of its Execution."""
    message: str | None = None
    end: ChildEnd | None = None
    """Of a child that has ended already."""

    def as_json(self) -> dict[str, Value]:
        return without_nothing(
            {
                "verdict": self.verdict.value,
                "child": self.child,
                "execution": self.execution,
                "message": self.message,
                "end": self.end.as_json() if self.end else None,
            }
        )

    @classmethod
    def of(cls, data: Value) -> ChildAnswer:
        reader = Reader(data, "child answer")
        end = reader.inner("end")
        return cls(
            verdict=read_verdict(reader),
            child=reader.text_or_none("child"),
            execution=reader.text_or_none("execution"),
            message=reader.words_or_none("message"),
            end=ChildEnd.read(end) if end else None,
        )
