"""What the log says of an execution, as the status that `kubectl` shows. Pure.

The same facts always give the same status, to the byte: times are those of the log, never of the
moment of writing. So whoever writes it can tell that nothing changed, even after a restart. A
status never exceeds 16 KiB, whatever the execution does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from noetl_core.engine.clock import iso
from noetl_core.engine.state import Phase, Run, State
from noetl_core.execution import MOST_ACTIVE, ConditionStatus
from noetl_core.results import is_ref
from noetl_core.values import Value
from noetl_operator.kube.port import Object

MOST_BYTES = 16 * 1024
"""Of a whole status."""
LONGEST_RESULT = 4 * 1024
"""The largest result that stands in a status."""
LONGEST_MESSAGE = 1024
LONGEST_PROBLEMS = 6 * 1024
"""How much of a playbook's problems a condition tells."""
LONGEST_TROUBLE = 256
LONGEST_SUMMARY = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a status says beside the state: the object, and what it runs."""

    generation: int
    """Of the spec that was acted on."""
    created_at: str
    execution_id: str
    playbook: str
    playbook_generation: int | None
    digest: str
    problems: tuple[dict[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A condition's answer."""

    status: ConditionStatus
    reason: str
    message: str


def execution_status(about: About, state: State, troubles: Mapping[str, str]) -> Object:
    """The status of an execution; `troubles` tells by step what holds up its Pods."""
    active = _active(state, troubles)
    succeeded = _succeeded(about, state, active)
    since = state.finished_at if state.phase.is_final else None
    status: Object = {
        "phase": state.phase.value,
        "observedGeneration": about.generation,
        "conditions": [
            condition("Accepted", _accepted(about, state), about.created_at, about.generation),
            condition("Succeeded", succeeded, since or about.created_at, about.generation),
        ],
        "steps": _steps(state),
        "active": active[:MOST_ACTIVE],
        "activeSummary": _summary([one["step"] for one in active]),
        "message": shortened(_story(state, active) or succeeded.message, LONGEST_MESSAGE),
        "executionId": about.execution_id,
        "lastSeq": state.seq,
        "playbook": _playbook(about),
    }
    if state.started_at:
        status["startedAt"] = state.started_at
    if state.finished_at:
        status["finishedAt"] = state.finished_at
        status["duration"] = _duration(state.started_at or about.created_at, state.finished_at)
    if state.result is not None:
        status["result"] = _result(state.result)
    return _bounded(status)


def idle_status(generation: int, created_at: str, phase: Phase, why: Verdict) -> Object:
    """The status of an Execution that does not run (yet): refused, or waiting for its Playbook."""
    refused = phase is Phase.FAILED
    succeeded = Verdict(
        ConditionStatus.FALSE if refused else ConditionStatus.UNKNOWN,
        why.reason,
        why.message if refused else "it has not begun",
    )
    return {
        "phase": phase.value,
        "observedGeneration": generation,
        "conditions": [
            condition("Accepted", why, created_at, generation),
            condition("Succeeded", succeeded, created_at, generation),
        ],
        "message": shortened(why.message, LONGEST_MESSAGE),
    }


def with_fault(status: Object, fault: str | None, about: About) -> Object:
    """With a condition that says why the object cannot be brought up to date, if it cannot."""
    if fault is None:
        return status
    why = Verdict(ConditionStatus.FALSE, "Quarantined", fault)
    told = condition("Reconciled", why, about.created_at, about.generation)
    return status | {"conditions": [*status["conditions"], told]}


def condition(kind: str, verdict: Verdict, since: str, generation: int) -> Object:
    return {
        "type": kind,
        "status": verdict.status.value,
        "reason": verdict.reason,
        "message": shortened(verdict.message, LONGEST_PROBLEMS),
        "lastTransitionTime": whole_seconds(since),
        "observedGeneration": generation,
    }


def _accepted(about: About, state: State) -> Verdict:
    if about.problems:
        told = problems_text(about.problems)
        return Verdict(ConditionStatus.FALSE, "InvalidPlaybook", f"it cannot run: {told}")
    if not state.seq:
        return Verdict(ConditionStatus.UNKNOWN, "Pending", "it is about to begin")
    return Verdict(ConditionStatus.TRUE, "Accepted", "the playbook is valid")


def _succeeded(about: About, state: State, active: Sequence[Object]) -> Verdict:
    if not state.phase.is_final:
        message = _story(state, active) or "it is about to begin"
        return Verdict(ConditionStatus.UNKNOWN, state.phase.value, message)
    won = state.phase is Phase.SUCCEEDED
    answer = ConditionStatus.TRUE if won else ConditionStatus.FALSE
    message = state.message or _ended_text(about, state)
    return Verdict(answer, state.reason or state.phase.value, shortened(message, LONGEST_MESSAGE))


def _ended_text(about: About, state: State) -> str:
    took = _duration(state.started_at or about.created_at, state.finished_at or about.created_at)
    counts = state.steps
    handled = f", {counts.failed} failed and handled" if counts.failed else ""
    return f"{counts.done} of {counts.total} step-runs done{handled} in {took}"


def _story(state: State, active: Sequence[Object]) -> str:
    """What happens now, in a sentence."""
    if state.phase.is_final:
        return state.message or ""
    if state.ending is not None:
        return f"ending: {state.ending.message}"
    if state.suspended:
        return "suspended: no new step starts until spec.suspend is false"
    if state.keychain is not None:
        return "a worker verifies the keychain"
    for one in active:
        if one.get("message") and one["state"] != "Running":
            return f"{one['step']}: {one['message']}"
    if state.phase is Phase.WAITING:
        names = ", ".join(dict.fromkeys(one["step"] for one in active))
        return f"waits at the gate of {names}: a ctx patch may open it"
    if active:
        return f"runs {_summary([one['step'] for one in active])}"
    return ""


def _steps(state: State) -> Object:
    counts = state.steps
    ended = counts.done + counts.failed + counts.cancelled
    return {
        **counts.as_json(),
        "running": len(state.runs),
        "waiting": len(state.waiting),
        "progress": f"{ended}/{counts.total}",
    }


def _active(state: State, troubles: Mapping[str, str]) -> list[Object]:
    """Everything under way, the oldest first."""
    found = [_run(run, troubles.get(run.step)) for run in state.runs.values()]
    for token in state.waiting.values():
        gate: Object = {"step": token.step, "state": "Waiting", "since": token.arrived_at}
        if token.deadline_at:
            gate["message"] = f"until {whole_seconds(token.deadline_at)}"
        found.append(gate)
    found.sort(key=lambda one: (one["since"], one["step"]))
    return found


def _run(run: Run, trouble: str | None) -> Object:
    started = any(lease.started for lease in run.leases.values()) or bool(
        run.loop and (run.loop.done or run.loop.failed)
    )
    said = trouble or ("being cancelled" if run.cancelling else _progress(run))
    made: Object = {
        "step": run.step,
        "state": "Running" if started else "Scheduled",
        "since": run.scheduled_at,
    }
    return made | {"message": shortened(said, LONGEST_TROUBLE)} if said else made


def _progress(run: Run) -> str | None:
    """How far a loop is."""
    done = failed = total = 0
    if run.loop is not None:
        done, failed, total = run.loop.done, run.loop.failed, run.loop.total
    for lease in run.leases.values():
        done, failed = done + lease.done, failed + lease.failed
        total = max(total, lease.total)
    if not total:
        return None
    return f"{done + failed} of {total} iterations" + (f", {failed} failed" if failed else "")


def _summary(steps: Sequence[str]) -> str:
    """The names of the active steps, in short."""
    names = list(dict.fromkeys(steps))
    told: list[str] = []
    for name in names:
        if told and len(", ".join([*told, name])) > LONGEST_SUMMARY:
            break
        told.append(name)
    more = len(names) - len(told)
    return ", ".join(told) + (f" +{more}" if more else "")


def _playbook(about: About) -> Object:
    made: Object = {"name": about.playbook, "digest": about.digest}
    return made | {"generation": about.playbook_generation} if about.playbook_generation else made


def _result(value: Value) -> Value:
    """A small result as it is; of a larger one, where it is and what it looks like."""
    size = len(orjson.dumps(value, default=str))
    if size <= LONGEST_RESULT:
        return value
    if is_ref(value):
        return {key: value[key] for key in ("kind", "store", "key", "size") if key in value}
    return {"kind": "result_in_log", "size": size}


def _bounded(status: Object) -> Object:
    """Leave out what can be spared until it fits."""
    if _size(status) <= MOST_BYTES:
        return status
    result = status.pop("result", None)
    if result is not None and _size(status) <= MOST_BYTES:
        status["result"] = {"kind": "result_in_log"}
        return status
    for one in status["active"]:
        one.pop("message", None)
    for one in status["conditions"]:
        one["message"] = shortened(one["message"], LONGEST_MESSAGE)
    while _size(status) > MOST_BYTES and status["active"]:
        status["active"].pop()
    return status


def _size(status: Object) -> int:
    # The API server escapes what is not ASCII; this is the larger of the two ways to count.
    return sum(1 if c < 128 else 3 for c in orjson.dumps(status))


def problems_text(problems: Iterable[Mapping[str, Value]]) -> str:
    """Every problem in a line, as far as a condition may tell them."""
    listed = list(problems)
    lines: list[str] = []
    size = 0
    for index, one in enumerate(listed):
        hint = f" ({one['hint']})" if one.get("hint") else ""
        place = f"{one['path']}: " if one.get("path") else ""
        line = shortened(f"{place}{one['message']}{hint} [{one['code']}]", LONGEST_MESSAGE)
        size += len(line.encode())
        if lines and size > LONGEST_PROBLEMS - 100:
            return "; ".join([*lines, f"and {len(listed) - index} more"])
        lines.append(line)
    return "; ".join(lines)


def shortened(text: str, longest: int) -> str:
    """A text of at most so many bytes."""
    data = text.encode("utf-8", "replace")
    if len(data) <= longest:
        return data.decode()
    return data[: longest - 3].decode("utf-8", "ignore") + "…"


def whole_seconds(time: str) -> str:
    return iso(datetime.fromisoformat(time))[:19] + "Z"


def _duration(begun: str, ended: str) -> str:
    seconds = (datetime.fromisoformat(ended) - datetime.fromisoformat(begun)).total_seconds()
    if seconds < 10:
        return f"{max(0.0, seconds):.1f}s"
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
