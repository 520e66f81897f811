"""Staying alive and giving up: heartbeats and leases handed back."""

from __future__ import annotations

from dataclasses import dataclass

from noetl_core.values import Value
from noetl_core.wire.children import ChildEnd
from noetl_core.wire.reading import PROTOCOL, Reader, check_protocol, without_nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A lease that a worker holds, or thinks it does."""

    lease_id: str
    epoch: int
    capability: str

    def as_json(self) -> dict[str, Value]:
        return {"lease_id": self.lease_id, "epoch": self.epoch, "capability": self.capability}

    @classmethod
    def read(cls, reader: Reader) -> Held:
        return cls(
            lease_id=reader.text("lease_id"),
            epoch=reader.whole("epoch"),
            capability=reader.text("capability"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """All leases of a worker, and the children that its runs wait for (`POST /v1/heartbeat`)."""

    worker: str
    leases: tuple[Held, ...] = ()
    children: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Value]:
        return {
            "protocol": PROTOCOL,
            "worker": self.worker,
            "leases": [lease.as_json() for lease in self.leases],
            "children": list(self.children),
        }

    @classmethod
    def of(cls, data: Value) -> Heartbeat:
        reader = Reader(data, "heartbeat")
        check_protocol(reader.value("protocol"), "the worker")
        return cls(
            worker=reader.text("worker"),
            leases=tuple(Held.read(one) for one in reader.each("leases")),
            children=reader.texts("children"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAnswer:
    """What changed for the worker's leases; those not named go on."""

    ttl_s: float
    """The leases that go on end so long from now."""
    cancelled: tuple[str, ...] = ()
    """Leases to stop: interrupt the run and report its end as cancelled."""
    gone: tuple[str, ...] = ()
    """Leases in other hands or over: drop them and report nothing."""
    children: tuple[ChildEnd, ...] = ()
    """Children that have ended."""

    def as_json(self) -> dict[str, Value]:
        return {
            "ttl_s": self.ttl_s,
            **without_nothing(
                {
                    "cancelled": list(self.cancelled),
                    "gone": list(self.gone),
                    "children": [child.as_json() for child in self.children],
                }
            ),
        }

    @classmethod
    def of(cls, data: Value) -> HeartbeatAnswer:
        reader = Reader(data, "heartbeat answer")
        return cls(
            ttl_s=reader.number("ttl_s"),
            cancelled=reader.texts("cancelled"),
            gone=reader.texts("gone"),
            children=tuple(ChildEnd.read(one) for one in reader.each("children")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HandBack:
    """A worker that has to go gives its leases back (`POST /v1/handback`)."""

    worker: str
    leases: tuple[Held, ...]
    reason: str

    def as_json(self) -> dict[str, Value]:
        return {
            "protocol": PROTOCOL,
            "worker": self.worker,
            "leases": [lease.as_json() for lease in self.leases],
            "reason": self.reason,
        }

    @classmethod
    def of(cls, data: Value) -> HandBack:
        reader = Reader(data, "handback")
        check_protocol(reader.value("protocol"), "the worker")
        return cls(
            worker=reader.text("worker"),
            leases=tuple(Held.read(one) for one in reader.each("leases")),
            reason=reader.text("reason"),
        )
