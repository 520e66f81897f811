"""Reports of many runs in one request (`POST /v1/reports`), and work in the answer.

A worker collects what its runs have to say while a request is under way and sends it with the next:
the busier it is, the fewer requests each run costs. The answer may carry commands for its free
slots, so that the next step of a chain costs one round trip.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from noetl_core.engine.triggers import Verdict
from noetl_core.values import Value
from noetl_core.wire.beats import Held
from noetl_core.wire.commands import Command, Knows, objects
from noetl_core.wire.ends import read_verdict
from noetl_core.wire.reading import PROTOCOL, Malformed, Reader, check_protocol, without_nothing
from noetl_core.wire.reports import Report

MAX_REPORTS = 1_000
"""Runs that one request may speak of."""
MAX_LINES = 10_000
"""Lines of logs that one request may bring for one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A piece of what a task printed, numbered under its lease and epoch: twice is once."""

    line: int
    at: str
    stream: str
    text: str
    task: str | None = None
    attempt: int | None = None
    iteration: str | None = None

    def as_json(self) -> dict[str, Value]:
        return without_nothing(
            {
                "line": self.line,
                "at": self.at,
                "stream": self.stream,
                "text": self.text,
                "task": self.task,
                "attempt": self.attempt,
                "iteration": self.iteration,
            }
        )

    @classmethod
    def read(cls, reader: Reader) -> LogLine:
        attempt = reader.value("attempt")
        return cls(
            line=reader.whole("line"),
            at=reader.text("at"),
            stream=reader.text("stream"),
            text=reader.words_or_none("text") or "",
            task=reader.text_or_none("task"),
            attempt=None if attempt is None else reader.whole("attempt"),
            iteration=reader.text_or_none("iteration"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """What there is to say of one lease."""

    held: Held
    report: Report
    logs: tuple[LogLine, ...] = ()

    def as_json(self) -> dict[str, Value]:
        found: dict[str, Value] = {**self.held.as_json(), "report": self.report.as_json()}
        if self.logs:
            found["logs"] = [line.as_json() for line in self.logs]
        return found

    @classmethod
    def read(cls, reader: Reader) -> RunReport:
        held = Held.read(reader)
        report = Report.of(reader.value("report"))
        if report.epoch != held.epoch:
            raise Malformed(f"{reader.where}: the report is of another epoch than its lease")
        reader.items("logs", MAX_LINES)
        lines = tuple(LogLine.read(one) for one in reader.each("logs"))
        return cls(held=held, report=report, logs=lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """Reports of many runs; `capacity` more commands would be welcome."""

    worker: str
    pool: str
    capacity: int = 0
    knows: Knows = field(default_factory=Knows)
    reports: tuple[RunReport, ...] = ()

    def as_json(self) -> dict[str, Value]:
        return {
            "protocol": PROTOCOL,
            "worker": self.worker,
            "pool": self.pool,
            "capacity": self.capacity,
            "knows": self.knows.as_json(),
            "reports": [report.as_json() for report in self.reports],
        }

    @classmethod
    def of(cls, data: Value) -> Reports:
        reader = Reader(data, "reports")
        check_protocol(reader.value("protocol"), "the worker")
        knows = reader.inner("knows")
        reader.items("reports", MAX_REPORTS)
        return cls(
            worker=reader.text("worker"),
            pool=reader.text("pool"),
            capacity=reader.whole("capacity", 0),
            knows=Knows.read(knows) if knows else Knows(),
            reports=tuple(RunReport.read(one) for one in reader.each("reports")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnswer:
    """What became of the report of one lease."""

    lease_id: str
    verdict: Verdict
    expected: int = 0
    """Where not all was taken: the number of the fact to go on with."""
    message: str | None = None

    def as_json(self) -> dict[str, Value]:
        found: dict[str, Value] = {"lease_id": self.lease_id, "verdict": self.verdict.value}
        if self.expected:
            found["expected"] = self.expected
        if self.message is not None:
            found["message"] = self.message
        return found

    @classmethod
    def read(cls, reader: Reader) -> RunAnswer:
        return cls(
            lease_id=reader.text("lease_id"),
            verdict=read_verdict(reader),
            expected=reader.whole("expected", 0),
            message=reader.words_or_none("message"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportsAnswer:
    """An answer for each report, in order, and perhaps more work."""

    answers: tuple[RunAnswer, ...] = ()
    commands: tuple[Command, ...] = ()
    playbooks: dict[str, Value] = field(default_factory=dict)
    workloads: dict[str, Value] = field(default_factory=dict)

    def as_json(self) -> dict[str, Value]:
        return without_nothing(
            {
                "answers": [answer.as_json() for answer in self.answers],
                "commands": [command.as_json() for command in self.commands],
                "playbooks": self.playbooks,
                "workloads": self.workloads,
            }
        )

    @classmethod
    def of(cls, data: Value) -> ReportsAnswer:
        reader = Reader(data, "reports answer")
        return cls(
            answers=tuple(RunAnswer.read(one) for one in reader.each("answers")),
            commands=tuple(Command.read(one) for one in reader.each("commands")),
            playbooks=objects(reader, "playbooks"),
            workloads=objects(reader, "workloads"),
        )
