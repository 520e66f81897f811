"""Reporting: what a worker tells of a run it leased (`POST /v1/runs/{lease}/events`).

Facts are numbered from 0 under each epoch; `first` is the number of the first one sent. A report
that is sent twice changes nothing, and one that comes too early is answered with what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from noetl_core.engine.events import Fact
from noetl_core.engine.triggers import Reported, RunEnd, Verdict
from noetl_core.values import Value
from noetl_core.wire.commands import Command, Knows, objects
from noetl_core.wire.ends import end_json, read_end, read_verdict
from noetl_core.wire.facts import MAX_FACTS, fact_json, read_fact
from noetl_core.wire.reading import Reader, without_nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Facts in order, and the end where it is reached."""

    run_id: str
    step: str | None
    """None: the keychain check."""
    epoch: int
    first: int
    facts: tuple[Fact, ...] = ()
    end: RunEnd | None = None
    want_next: Knows | None = None
    """With an end: the worker would take another command with the answer."""

    def as_json(self) -> dict[str, Value]:
        found: dict[str, Value] = {
            "run_id": self.run_id,
            "step": self.step,
            "epoch": self.epoch,
            "first": self.first,
            "facts": [fact_json(fact) for fact in self.facts],
        }
        if self.end is not None:
            found["end"] = end_json(self.end)
        if self.want_next is not None:
            found["want_next"] = self.want_next.as_json()
        return found

    @classmethod
    def of(cls, data: Value) -> Report:
        reader = Reader(data, "report")
        run_id, step = reader.text("run_id"), reader.said_or_null("step")
        facts = reader.items("facts", MAX_FACTS)
        end, want = reader.inner("end"), reader.inner("want_next")
        return cls(
            run_id=run_id,
            step=step,
            epoch=reader.whole("epoch"),
            first=reader.whole("first"),
            facts=tuple(
                read_fact(fact, f"report.facts[{at}]", step, run_id)
                for at, fact in enumerate(facts)
            ),
            end=read_end(end) if end else None,
            want_next=Knows.read(want) if want else None,
        )

    def foreign(self, run_id: str, step: str | None, iteration: str | None) -> str | None:
        """Why this report is not about the run that was leased, or None."""
        if self.run_id != run_id or self.step != step:
            return f"the lease is about run {run_id} of {step}, the report about {self.run_id}"
        if iteration is None:
            return None
        below = f"{iteration}."
        for fact in self.facts:
            own = fact.iteration
            if own is not None and own != iteration and not own.startswith(below):
                return f"the lease is about iteration {iteration}, a fact about {own}"
        return None

    def trigger(self, lease_id: str) -> Reported:
        return Reported(
            lease_id=lease_id, epoch=self.epoch, first=self.first, facts=self.facts, end=self.end
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAnswer:
    """What became of a report; after an end perhaps the next command."""

    verdict: Verdict
    message: str | None = None
    expected: int | None = None
    """With `ahead`: the number of the fact to go on with."""
    next: Command | None = None
    playbooks: dict[str, Value] = field(default_factory=dict)
    workloads: dict[str, Value] = field(default_factory=dict)

    def as_json(self) -> dict[str, Value]:
        return without_nothing(
            {
                "verdict": self.verdict.value,
                "message": self.message,
                "expected": self.expected,
                "next": self.next.as_json() if self.next else None,
                "playbooks": self.playbooks,
                "workloads": self.workloads,
            }
        )

    @classmethod
    def of(cls, data: Value) -> ReportAnswer:
        reader = Reader(data, "report answer")
        following = reader.inner("next")
        expected = reader.value("expected")
        return cls(
            verdict=read_verdict(reader),
            message=reader.words_or_none("message"),
            expected=None if expected is None else reader.whole("expected"),
            next=Command.read(following) if following else None,
            playbooks=objects(reader, "playbooks"),
            workloads=objects(reader, "workloads"),
        )
