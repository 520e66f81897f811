"""Leasing: a worker asks for work, the operator hands out commands (`POST /v1/lease`).

What many commands share (playbooks, workloads) travels once: a worker says what it knows already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from noetl_core.engine.triggers import Enqueue
from noetl_core.values import Value
from noetl_core.wire.reading import PROTOCOL, Malformed, Reader, check_protocol, without_nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Knows:
    """What a worker holds already and need not be sent again."""

    playbooks: tuple[str, ...] = ()
    """Digests."""
    workloads: tuple[str, ...] = ()
    """Ids of executions."""

    def as_json(self) -> dict[str, Value]:
        return {"playbooks": list(self.playbooks), "workloads": list(self.workloads)}

    @classmethod
    def read(cls, reader: Reader) -> Knows:
        return cls(playbooks=reader.texts("playbooks"), workloads=reader.texts("workloads"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequest:
    """A worker has room for `capacity` more commands and waits up to `wait_s` for them."""

    worker: str
    pool: str
    capacity: int
    wait_s: float = 0.0
    knows: Knows = field(default_factory=Knows)
    lease_id: str | None = None
    """Only this command, for a worker that was started for it; it is not waited for."""

    def as_json(self) -> dict[str, Value]:
        return {
            "protocol": PROTOCOL,
            "worker": self.worker,
            "pool": self.pool,
            "capacity": self.capacity,
            "wait_s": self.wait_s,
            "knows": self.knows.as_json(),
            **without_nothing({"lease_id": self.lease_id}),
        }

    @classmethod
    def of(cls, data: Value) -> LeaseRequest:
        reader = Reader(data, "lease")
        check_protocol(reader.value("protocol"), "the worker")
        knows = reader.inner("knows")
        return cls(
            worker=reader.text("worker"),
            pool=reader.text("pool"),
            capacity=reader.whole("capacity"),
            wait_s=reader.number_or_none("wait_s") or 0.0,
            knows=Knows.read(knows) if knows else Knows(),
            lease_id=reader.text_or_none("lease_id"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Something to run under a lease: a step, an iteration, a local loop, or the keychain check."""

    lease_id: str
    epoch: int
    capability: str
    """What proves the lease on every call about it."""
    ttl_s: float
    """The lease ends so long after the last heartbeat."""
    execution: dict[str, Value]
    """`{id, name, namespace}`."""
    digest: str
    """Of the playbook."""
    run_id: str
    step: str | None
    """None: verify the keychain."""
    iteration: str | None = None
    args: dict[str, Value] = field(default_factory=dict)
    ctx: dict[str, Value] = field(default_factory=dict)
    iters: tuple[dict[str, Value], ...] = ()
    """`iter` of the enclosing iterations, outermost first."""
    items: Value = None
    """Of a local loop: its list, inline or a reference."""
    window: int = 1
    timeout_s: float | None = None
    """How long it may run (`STEP_TIMEOUT`)."""
    remaining_s: float | None = None
    """How long until its deadline (`STEP_DEADLINE`), by the clock of the store."""
    stop: bool = False
    """It was cancelled before anyone held it: report that, and run nothing."""

    @classmethod
    def of_enqueue(
        cls,
        enqueue: Enqueue,
        *,
        epoch: int,
        capability: str,
        ttl_s: float,
        execution: dict[str, Value],
        digest: str,
        ctx: dict[str, Value],
        remaining_s: float | None = None,
        stop: bool = False,
    ) -> Command:
        """What was decided, with what only the moment of leasing knows."""
        return cls(
            lease_id=enqueue.lease_id,
            epoch=epoch,
            capability=capability,
            ttl_s=ttl_s,
            execution=execution,
            digest=digest,
            run_id=enqueue.run_id,
            step=enqueue.step,
            iteration=enqueue.iteration,
            args=enqueue.args,
            ctx=ctx,
            iters=enqueue.iters,
            items=enqueue.items,
            window=enqueue.window,
            timeout_s=enqueue.timeout_s,
            remaining_s=remaining_s,
            stop=stop,
        )

    def as_json(self) -> dict[str, Value]:
        found: dict[str, Value] = {
            "lease_id": self.lease_id,
            "epoch": self.epoch,
            "capability": self.capability,
            "ttl_s": self.ttl_s,
            "execution": self.execution,
            "digest": self.digest,
            "run_id": self.run_id,
            "iteration": self.iteration,
            "args": self.args,
            "ctx": self.ctx,
            "iters": list(self.iters),
            "timeout_s": self.timeout_s,
            "remaining_s": self.remaining_s,
            "stop": self.stop or None,
        }
        found = without_nothing(found)
        found["step"] = self.step
        if self.items is not None:
            # An empty list is a list to go through, no list is no loop.
            found["items"] = self.items
        if self.window != 1:
            found["window"] = self.window
        return found

    @classmethod
    def read(cls, reader: Reader) -> Command:
        return cls(
            lease_id=reader.text("lease_id"),
            epoch=reader.whole("epoch"),
            capability=reader.text("capability"),
            ttl_s=reader.number("ttl_s"),
            execution=_identity(reader),
            digest=reader.text("digest"),
            run_id=reader.text("run_id"),
            step=reader.said_or_null("step"),
            iteration=reader.text_or_none("iteration"),
            args=reader.mapping("args"),
            ctx=reader.mapping("ctx"),
            iters=_iters(reader),
            items=reader.value("items"),
            window=reader.whole("window", 1),
            timeout_s=reader.number_or_none("timeout_s"),
            remaining_s=reader.number_or_none("remaining_s"),
            stop=reader.flag("stop"),
        )


def _identity(reader: Reader) -> dict[str, Value]:
    execution = reader.inner("execution")
    if execution is None:
        raise reader.missing("execution", "{id, name, namespace}")
    execution.text("id")
    return reader.mapping("execution")


def _iters(reader: Reader) -> tuple[dict[str, Value], ...]:
    found: list[dict[str, Value]] = []
    for item in reader.items("iters"):
        if not isinstance(item, dict):
            raise reader.wrong("iters", "a list of objects", item)
        found.append(item)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseAnswer:
    """Commands, with the playbooks and workloads of theirs that the worker does not know."""

    commands: tuple[Command, ...] = ()
    playbooks: dict[str, Value] = field(default_factory=dict)
    """Digest → canonical document."""
    workloads: dict[str, Value] = field(default_factory=dict)
    """Execution id → merged workload."""
    retire: bool = False
    """There is no more work for this worker: it may end."""

    def as_json(self) -> dict[str, Value]:
        return {
            "protocol": PROTOCOL,
            **without_nothing(
                {
                    "commands": [command.as_json() for command in self.commands],
                    "playbooks": self.playbooks,
                    "workloads": self.workloads,
                    "retire": self.retire or None,
                }
            ),
        }

    @classmethod
    def of(cls, data: Value) -> LeaseAnswer:
        reader = Reader(data, "lease answer")
        check_protocol(reader.value("protocol"), "the operator")
        return cls(
            commands=tuple(Command.read(one) for one in reader.each("commands")),
            playbooks=objects(reader, "playbooks"),
            workloads=objects(reader, "workloads"),
            retire=reader.flag("retire"),
        )


def objects(reader: Reader, key: str) -> dict[str, Value]:
    """A mapping of names to objects."""
    found = reader.mapping(key)
    for name, value in found.items():
        if not isinstance(value, dict):
            raise Malformed(f"{reader.where}.{key}.{name}: expected an object")
    return found


def unknown_to(knows: Knows, commands: Iterable[Command]) -> tuple[list[str], list[str]]:
    """Digests and execution ids that have to be sent along with these commands."""
    digests = {c.digest: None for c in commands if c.digest not in knows.playbooks}
    executions = {str(c.execution["id"]): None for c in commands}
    return list(digests), [id_ for id_ in executions if id_ not in knows.workloads]
