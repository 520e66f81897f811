"""Golden logs: an execution as it was decided once, to be decided the same way for ever.

A file holds JSON lines: first what was run, then one line per decision with its trigger, its time
and the envelopes of its events. `python -m tests.support.golden FOLDER` records them anew.
"""

from __future__ import annotations

import json
import sys
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from random import Random

from noetl_core.engine import Program, fold, triggers
from noetl_core.engine.events import Event, Fact, fact_of
from noetl_core.engine.state import State
from noetl_core.engine.triggers import CancelMode, EndStatus, RunEnd, Trigger
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.values import Value
from noetl_operator.store.memory import Memory
from noetl_operator.store.port import NewExecution
from tests.support.generated import Made, loaded, repeat_until
from tests.support.simulation import Simulation, simulate, simulate_wild
from tests.support.simulation_operator import LogLookup, decided
from tests.support.simulation_runs import wild_of

Line = dict[str, Value]

KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (*triggers.Trigger.__args__, RunEnd, TaskError)  # type: ignore[attr-defined]
}
ENUMS = {"status": EndStatus, "kind": ErrorKind, "mode": CancelMode}


def encoded(value: object) -> Value:
    """A trigger as JSON: `_` names its class, facts are as envelopes have them."""
    match value:
        case Fact():
            here = {name: getattr(value, name) for name in ("step", "run_id", "task")}
            here |= {"attempt": value.attempt, "iteration": value.iteration}
            return {"_": "Fact", "name": value.name, "context": here, "payload": value.payload()}
        case Enum():
            return str(value.value)
        case tuple():
            return [encoded(one) for one in value]
        case _ if is_dataclass(value):
            shown: Line = {f.name: encoded(getattr(value, f.name)) for f in fields(value)}
            return {"_": type(value).__name__, **shown}
        case _:
            return value  # type: ignore[return-value]


def decoded(data: Value) -> object:
    if not (isinstance(data, dict) and "_" in data):
        return data
    if data["_"] == "Fact":
        return fact_of(str(data["name"]), data["context"], data["payload"])  # type: ignore[arg-type]
    kind = KINDS[str(data["_"])]
    given: dict[str, object] = {}
    for name, one in data.items():
        if name == "_":
            continue
        if isinstance(one, list):
            given[name] = tuple(decoded(item) for item in one)
        elif name in ENUMS and isinstance(one, str) and kind is not triggers.Patch:
            given[name] = ENUMS[name](one)
        else:
            given[name] = decoded(one)
    return kind(**given)


def recorded(document: Line, simulation: Simulation) -> list[Line]:
    """The lines of a simulated execution."""
    results: Line = {k: v.decode() for k, v in simulation.memory.results.items()}
    lines: list[Line] = [{"playbook": document, "execution_id": simulation.execution_id,
                          "results": results}]  # fmt: skip
    for one in simulation.checker.history:
        events: list[Value] = [event.as_json() for event in one.transition.events]
        lines.append({"now": one.now, "trigger": encoded(one.trigger), "events": events})
    return lines


def replay(lines: list[Line]) -> State:
    """Decide a recorded execution again; raises where an event would be another one today."""
    head, *decisions = lines
    document, execution_id = head["playbook"], str(head["execution_id"])
    assert isinstance(document, dict)
    program = Program.of(loaded(document), execution_id=execution_id, name="one", namespace="here")
    memory = _memory(execution_id, head)
    state = State(execution_id=execution_id)
    log: list[Event] = memory.executions[execution_id].log
    for number, line in enumerate(decisions, 2):
        trigger: Trigger = decoded(line["trigger"])  # type: ignore[assignment]
        lookup = LogLookup(memory, execution_id)
        again, _ = decided(program, state, trigger, str(line["now"]), lookup)
        today = json.loads(json.dumps([event.as_json() for event in again.events]))
        _same(today, line["events"], number)
        log.extend(again.events)
        state = fold(again.events, state)
        assert state == again.state, f"line {number}: the events do not add up to the state"
    return state


def _same(today: list[Line], then: Value, number: int) -> None:
    assert isinstance(then, list)
    for one, other in zip(today, then, strict=False):
        assert one == other, f"line {number}: {one} is decided today, {other} was recorded"
    names = [one["name"] for one in today]
    assert len(today) == len(then), f"line {number}: today it is {names}, recorded were {len(then)}"


def _memory(execution_id: str, head: Line) -> Memory:
    memory = Memory()
    memory.create(
        NewExecution(
            execution_id=execution_id, namespace="here", name="one",
            playbook_name="made", digest="", document={}, workload={},
        )
    )  # fmt: skip
    results = head["results"]
    assert isinstance(results, dict)
    memory.results = {key: str(text).encode() for key, text in results.items()}
    return memory


def read(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# Recording


def wanted() -> dict[str, tuple[str, ...]]:
    """Of made playbooks with a foretold end: words of the document."""
    return {
        "fan-out-join": ('"join"', "inclusive"),
        "join-dropped": ('"drop"', "inclusive"),
        "nested-distributed-loop": ('"cell"', "distributed", "parallel"),
        "local-loop-reducers": ("reducers", '"local"'),
        "retry-and-jump": ('"retry"', '"jump"'),
        "gate": ('"wait"',),
        "best-effort-final-step": ("best_effort", '"final_step"'),
        "cycle": ("args.n | default(0)) < 2", "sequential"),
    }


def wanted_wild() -> dict[str, tuple[str, ...]]:
    """Of wild ones: words of the log."""
    return {
        "cancelled": ("execution.cancelled", "step.cancelled", "step.done"),
        "deadline-exceeded": ("DeadlineExceeded", "step.done"),
        "worker-lost": ("WORKER_LOST", "step.redelivered"),
        "step-deadline": ("STEP_DEADLINE", "step.done"),
        "references": ("result_ref", "loop.done", "next.evaluated"),
        "keychain": ("keychain.resolved", "step.done", "execution.suspended"),
    }


def find(number: int, words: tuple[str, ...]) -> list[Line]:
    def fits(one: Made) -> bool:
        text = json.dumps(one.document)
        return all(word in text for word in words) and 2 < one.end.counts["total"] < 6

    found = repeat_until(Random(number), fits, tries=5000)
    return recorded(found.document, simulate(found, number))


def find_wild(words: tuple[str, ...]) -> list[Line]:
    for seed in range(5000):
        made = wild_of(seed)
        lines = recorded(made.document, simulate_wild(made, seed))
        text = json.dumps([line["events"] for line in lines[1:]])
        if all(word in text for word in words) and 8_000 < len(text) < 40_000:
            return lines
    raise AssertionError(f"no log with {words}")


def main(folder: str) -> None:
    logs = {name: find(number, words) for number, (name, words) in enumerate(wanted().items())}
    logs |= {name: find_wild(words) for name, words in wanted_wild().items()}
    for name, lines in logs.items():
        replay(json.loads(json.dumps(lines)))
        path = Path(folder) / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line, sort_keys=True) + "\n" for line in lines))
        print(path, len(lines) - 1, "decisions")


if __name__ == "__main__":
    main(*sys.argv[1:])
