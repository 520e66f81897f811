"""How the resources look to someone who knows only kubectl."""

from __future__ import annotations

import json

import pytest

from e2e.cluster import Kubernetes
from e2e.crds.objects import CRDS, NAMESPACE, Object, create, execution, playbook

STATUS: Object = {
    "phase": "Running",
    "observedGeneration": 1,
    "conditions": [
        {
            "type": "Succeeded",
            "status": "Unknown",
            "reason": "Running",
            "message": "2 steps are under way",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 1,
        }
    ],
    "startedAt": "2026-01-01T00:00:00Z",
    "finishedAt": "2026-01-01T00:01:12.5Z",
    "duration": "1m12s",
    "steps": {
        "total": 7,
        "running": 2,
        "waiting": 0,
        "done": 3,
        "failed": 1,
        "cancelled": 1,
        "skipped": 0,
        "progress": "5/7",
    },
    "active": [{"step": "load", "state": "Running", "since": "2026-01-01T00:00:09Z"}],
    "activeSummary": "load, fetch",
    "message": "loading",
    "result": {"kind": "result_ref", "selected": {"n": None, "rows": [1, "x"]}},
    "executionId": "0199",
    "lastSeq": 41,
    "playbook": {"name": "hello", "generation": 2, "digest": "sha256:00"},
}


def test_applying_the_definitions_again_changes_nothing(api: Kubernetes) -> None:
    said = api.kubectl("apply", "-f", str(CRDS)).stdout.splitlines()
    assert [line.rpartition(" ")[2] for line in said] == ["unchanged", "unchanged"]


def test_the_status_is_kept_whole_and_shown_in_columns(api: Kubernetes) -> None:
    made = create(api, execution("shown"))
    text = json.dumps({"status": STATUS})
    words = ("patch", "execution", "shown", "-n", NAMESPACE, "--type=merge", "-o", "json")
    done = api.kubectl(*words, "--subresource=status", "-p", text)
    assert json.loads(done.stdout)["status"] == _without_nulls(STATUS)
    assert json.loads(done.stdout)["metadata"]["generation"] == 1, made
    wide = api.kubectl("get", "exec", "shown", "-n", NAMESPACE, "-o", "wide").stdout.splitlines()
    header = "NAME PLAYBOOK PHASE STEPS ACTIVE AGE REASON DURATION MESSAGE"
    assert wide[0].split() == header.split()
    shown = ["hello", "Running", "5/7", "load,", "fetch", "Running", "1m12s", "loading"]
    assert [word for word in wide[1].split()[1:] if word in shown] == shown
    short = api.kubectl("get", "exec", "shown", "-n", NAMESPACE).stdout.splitlines()
    assert short[0].split() == header.split()[:6]


def _without_nulls(value: object) -> object:
    """As a merge patch leaves it."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def test_short_names_and_the_category_work(api: Kubernetes) -> None:
    create(api, playbook("short"))
    create(api, execution("short"))
    assert "short" in api.kubectl("get", "pb", "-n", NAMESPACE, "-o", "name").stdout
    every = api.kubectl("get", "noetl", "-n", NAMESPACE, "-o", "name").stdout.split()
    assert {"playbook.noetl.io/short", "execution.noetl.io/short"} <= set(every)


@pytest.mark.parametrize(
    "field",
    [
        "execution",
        "execution.spec",
        "execution.spec.ctxPatches",
        "execution.status",
        "playbook.spec",
        "playbook.spec.executor",
        "playbook.spec.workflow",
        "playbook.status",
    ],
)
def test_kubectl_explain_says_something_about_every_field(api: Kubernetes, field: str) -> None:
    said = api.kubectl("explain", field).stdout
    assert "DESCRIPTION:" in said
    assert "<empty>" not in said
    assert "<no description>" not in said
