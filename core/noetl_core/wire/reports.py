"""What a worker tells of one run it leased; `batches` carries many of them in one request.

Facts are numbered from 0 under each epoch; `first` is the number of the first one sent. A report
that is sent twice changes nothing, and one that comes too early is answered with what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

from noetl_core.engine.events import Fact
from noetl_core.engine.triggers import Reported, RunEnd
from noetl_core.values import Value
from noetl_core.wire.ends import end_json, read_end
from noetl_core.wire.facts import MAX_FACTS, fact_json, read_fact
from noetl_core.wire.reading import Reader


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
        return found

    @classmethod
    def of(cls, data: Value) -> Report:
        reader = Reader(data, "report")
        run_id, step = reader.text("run_id"), reader.said_or_null("step")
        facts = reader.items("facts", MAX_FACTS)
        end = reader.inner("end")
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
