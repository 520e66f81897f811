"""One message of every kind that operator and worker exchange: what the golden files hold."""

from __future__ import annotations

from typing import Protocol

from noetl_core.engine.events import (
    CtxPatched,
    Fact,
    IterationDone,
    IterationFailed,
    IterationStarted,
    IterPatched,
    KeychainResolved,
    LoopOpened,
    ResultStored,
    StepStarted,
    TaskAttemptFailed,
    TaskDone,
    TaskFailed,
    TaskPolicyEvaluated,
    TaskStarted,
)
from noetl_core.engine.triggers import EndStatus, RunEnd, Verdict
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.results import canonical, reference
from noetl_core.values import Value
from noetl_core.wire import (
    ChildAnswer,
    ChildEnd,
    ChildRequest,
    Command,
    HandBack,
    Heartbeat,
    HeartbeatAnswer,
    Held,
    Knows,
    LeaseAnswer,
    LeaseRequest,
    Refusal,
    Report,
)
from noetl_core.wire.batches import LogLine, Reports, ReportsAnswer, RunAnswer, RunReport


class Message(Protocol):
    def as_json(self) -> dict[str, Value]: ...


RUN = "5d1c3c44-5b3f-5a51-9f0e-0e8f6a1c2b3d"
LEASE = "8a0f6f0e-4f53-5c55-8d3a-3f0f4f1f2f3f"
CHILD = "c0ffee00-0000-5000-8000-000000000001"
EXECUTION: dict[str, Value] = {
    "id": "0197f3a0-0000-7000-8000-000000000001",
    "name": "nightly",
    "namespace": "etl",
}
DIGEST = "sha256:" + "ab" * 32
HELD = Held(lease_id=LEASE, epoch=2, capability="v1.abc.def")
ERROR = TaskError(
    kind=ErrorKind.RATE_LIMIT,
    message="429 Too Many Requests",
    code="HTTP_429",
    source="http",
    http_status=429,
    retry_after=2.5,
)
META: dict[str, Value] = {
    "attempt": 1,
    "duration_ms": 12.5,
    "started_at": "2026-01-01T00:00:00Z",
    "ended_at": "2026-01-01T00:00:00.0125Z",
}
REF = reference(canonical({"rows": [1, 2]}), {"rows": [1, 2]}, selected={"n": 2})

COMMAND = Command(
    lease_id=LEASE,
    epoch=2,
    capability="v1.abc.def",
    ttl_s=30.0,
    execution=EXECUTION,
    digest=DIGEST,
    run_id=RUN,
    step="load",
    iteration="4",
    args={"page": 1},
    ctx={"seen": [1, 2]},
    iters=({"region": "eu", "index": 4, "total": 9},),
    items=["a", "b"],
    window=2,
    timeout_s=60.0,
    remaining_s=3599.5,
)
KEYCHAIN = Command(
    lease_id=LEASE,
    epoch=1,
    capability="v1.abc.def",
    ttl_s=30.0,
    execution=EXECUTION,
    digest=DIGEST,
    run_id=LEASE,
    step=None,
)


def facts() -> tuple[Fact, ...]:
    """One of every kind that a worker reports from a run."""
    step, task = "load", "fetch"
    in_loop = {"step": step, "run_id": RUN, "iteration": "4.1"}
    in_task = {**in_loop, "task": task}
    error = ERROR.as_json()
    return (
        StepStarted(step=step, run_id=RUN, worker="worker-0", epoch=2),
        LoopOpened(step=step, run_id=RUN, iteration="4", total=2, window=2),
        IterationStarted(**in_loop, worker="worker-0"),
        TaskStarted(**in_task, attempt=1, kind="http"),
        TaskAttemptFailed(**in_task, attempt=1, error=error, meta=META),
        TaskPolicyEvaluated(**in_task, attempt=1, rule=0, action="retry", to=None, delay=2.5),
        TaskStarted(**in_task, attempt=2, kind="http"),
        ResultStored(**in_task, attempt=2, ref=REF),
        TaskDone(**in_task, attempt=2, result=REF, meta=META),
        TaskPolicyEvaluated(
            **in_task, attempt=2, rule="else", action="jump", to="save", delay=None
        ),
        IterPatched(**in_task, attempt=2, set={"page": 2}),
        CtxPatched(
            **in_task,
            attempt=2,
            set={"total": 3, "last": "é"},
            by="load/fetch",
            reason=None,
            deferred=["total"],
        ),
        TaskFailed(**in_task, attempt=2, error=error, meta=META),
        IterationDone(**in_loop, result=None, writes={"total": 3}),
        IterationFailed(**in_loop, task=task, error=error),
    )


EXAMPLES: dict[str, Message] = {
    "lease_request": LeaseRequest(
        worker="worker-0",
        pool="execution/0197f3a0",
        capacity=4,
        wait_s=20.0,
        knows=Knows(playbooks=(DIGEST,)),
    ),
    "lease_request_one": LeaseRequest(
        worker="worker-0", pool="step/0197f3a0/load", capacity=1, lease_id=LEASE
    ),
    "lease_answer": LeaseAnswer(
        commands=(COMMAND, KEYCHAIN),
        playbooks={DIGEST: {"metadata": {"name": "t"}, "workflow": []}},
        workloads={str(EXECUTION["id"]): {"api_url": "http://x"}},
    ),
    "lease_answer_empty": LeaseAnswer(retire=True),
    "report": Report(run_id=RUN, step="load", epoch=2, first=3, facts=facts()),
    "report_ok": Report(
        run_id=RUN,
        step="load",
        epoch=2,
        first=18,
        end=RunEnd(status=EndStatus.OK, result={"n": 1}, writes={"total": 3}),
    ),
    "report_failed": Report(
        run_id=RUN,
        step="load",
        epoch=2,
        first=18,
        end=RunEnd(status=EndStatus.ERROR, error=ERROR, task="fetch", iteration="4.1"),
    ),
    "report_keychain": Report(
        run_id=LEASE,
        step=None,
        epoch=1,
        first=0,
        facts=(KeychainResolved(run_id=LEASE, entries=["db", "api"]),),
        end=RunEnd(status=EndStatus.OK),
    ),
    "reports": Reports(
        worker="worker-0",
        pool="execution/0197f3a0",
        capacity=2,
        knows=Knows(playbooks=(DIGEST,)),
        reports=(
            RunReport(
                held=HELD,
                report=Report(run_id=RUN, step="load", epoch=2, first=3, facts=facts()[3:6]),
                logs=(
                    LogLine(
                        line=0,
                        at="2026-01-01T00:00:00Z",
                        stream="stdout",
                        text="hello",
                        task="fetch",
                        attempt=1,
                        iteration="4.1",
                    ),
                ),
            ),
        ),
    ),
    "reports_answer": ReportsAnswer(
        answers=(
            RunAnswer(lease_id=LEASE, verdict=Verdict.AHEAD, expected=3, message="send again"),
            RunAnswer(lease_id=RUN, verdict=Verdict.ACCEPTED),
        ),
        commands=(KEYCHAIN,),
    ),
    "heartbeat": Heartbeat(worker="worker-0", leases=(HELD,), children=(CHILD,)),
    "heartbeat_answer": HeartbeatAnswer(
        ttl_s=30.0,
        cancelled=(LEASE,),
        gone=(RUN,),
        children=(
            ChildEnd(child=CHILD, phase="Succeeded", reason="Succeeded", result={"rows": 3}),
        ),
    ),
    "handback": HandBack(worker="worker-0", leases=(HELD,), reason="the Pod is going away"),
    "child_request": ChildRequest(
        epoch=2,
        task="call",
        task_run=0,
        playbook="lib/clean",
        iteration="4.1",
        workload={"table": "t"},
    ),
    "child_answer": ChildAnswer(verdict=Verdict.ACCEPTED, child=CHILD, execution="nightly-clean"),
    "child_answer_ended": ChildAnswer(
        verdict=Verdict.ACCEPTED,
        child=CHILD,
        end=ChildEnd(child=CHILD, phase="Failed", reason="StepFailed", message="no such table"),
    ),
    "child_answer_refused": ChildAnswer(
        verdict=Verdict.REFUSED, message="children nest at most 10 deep"
    ),
    "refusal": Refusal(code="malformed", message="report.epoch: missing (a whole number)"),
}
