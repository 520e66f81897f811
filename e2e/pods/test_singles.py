"""Steps of kind `pod` and `job`: each has a Pod or Job of its own."""

from __future__ import annotations

import json

from e2e.operator.stand import until
from e2e.pods.field import Field, Object, python, step

WHERE = python("import os; result = os.uname().nodename")


def test_every_step_of_kind_pod_has_a_pod_of_its_own(field: Field) -> None:
    collect = python("result = [a, b]", a="{{ ctx.first }}", b="{{ ctx.second }}")
    rule = {"else": {"then": {"do": "continue", "set_ctx": {"first": "{{ outcome.result }}"}}}}
    first = {**WHERE, "spec": {"policy": {"rules": [rule]}}}
    other = {"else": {"then": {"do": "continue", "set_ctx": {"second": "{{ outcome.result }}"}}}}
    second = {**WHERE, "spec": {"policy": {"rules": [other]}}}
    field.run(
        "each",
        step("one", first, then="two"),
        step("two", second, then="three"),
        step("three", collect),
        executor={"kind": "pod"},
    )
    one, two = field.ended("each")["result"]
    assert one.startswith("each-one-")
    assert two.startswith("each-two-")
    field.no_pods("noetl.io/execution=each")


def test_a_step_may_say_itself_where_it_runs(field: Field) -> None:
    resources = {"limits": {"memory": "300Mi"}}
    own = {"executor": {"kind": "pod", "spec": {"resources": resources}}}
    limit = python(
        "import pathlib\n"
        "paths = ['/sys/fs/cgroup/memory/memory.limit_in_bytes', '/sys/fs/cgroup/memory.max']\n"
        "result = [pathlib.Path(p).read_text().strip() for p in paths if pathlib.Path(p).exists()]"
    )
    field.run("override", step("one", then="heavy"), step("heavy", limit, spec=own))
    assert str(300 * 2**20) in field.ended("override")["result"]


def test_a_step_of_kind_job_has_a_job(field: Field) -> None:
    field.run("jobs", step("one", WHERE), executor={"kind": "job"})
    assert field.ended("jobs")["result"].startswith("jobs-one-")
    job = until("its Job is complete", lambda: _complete(field, "jobs"), 60.0)
    assert job["spec"]["backoffLimit"] == 0
    assert job["metadata"]["labels"]["noetl.io/step"] == "one"
    field.kubectl("delete", "execution", "jobs")
    until("the Job goes with its Execution", lambda: not _jobs(field, "jobs"), 60.0)


def test_a_cancelled_execution_leaves_no_pod(field: Field) -> None:
    field.run(
        "cancelled", step("long", python("import time; time.sleep(600)")), executor={"kind": "pod"}
    )
    field.pod_of("cancelled")
    field.kubectl(
        "patch", "execution", "cancelled", "--type=merge", "-p", '{"spec": {"cancel": "Now"}}'
    )
    field.ended("cancelled", "Cancelled")
    field.no_pods("noetl.io/execution=cancelled")


def _complete(field: Field, execution: str) -> Object | None:
    labels = f"noetl.io/execution={execution}"
    found = json.loads(field.kubectl("get", "jobs", "-l", labels, "-o", "json"))["items"]
    done = [one for one in found if one.get("status", {}).get("succeeded") == 1]
    return done[0] if done else None


def _jobs(field: Field, execution: str) -> str:
    return field.kubectl("get", "jobs", "-l", f"noetl.io/execution={execution}", "-o", "name")
