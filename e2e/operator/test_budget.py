"""What the operator costs the API server, by its own count."""

from __future__ import annotations

import re
from collections import Counter

from e2e.operator import playbooks
from e2e.operator.stand import Stand, until

WRITES = {"POST", "PUT", "PATCH", "APPLY", "DELETE"}
OURS = {"executions", "playbooks", "pods", "jobs", "events"}
_LINE = re.compile(r"^apiserver_request_total\{(.*?)\} (\d+)", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="(.*?)"')


def writes(stand: Stand) -> Counter[str]:
    """Writes so far, by resource."""
    found: Counter[str] = Counter()
    for labels, count in _LINE.findall(stand.cluster.kubectl("get", "--raw", "/metrics").stdout):
        about = dict(_LABEL.findall(labels))
        if about["verb"] in WRITES and about["resource"] in OURS:
            found[about["resource"]] += int(count)
    return found


def test_a_one_step_execution_on_a_warm_pool_takes_four_writes(stand: Stand) -> None:
    stand.serve_all("budget", playbooks.step("start"))
    stand.apply(stand.execution("warm-up", "budget"))
    stand.phase("warm-up", "Succeeded")
    _told(stand, "warm-up")
    before = writes(stand)
    stand.apply(stand.execution("counted", "budget"))
    stand.phase("counted", "Succeeded")
    _told(stand, "counted")
    spent = writes(stand) - before
    assert spent.total() <= 4, spent


def test_nothing_is_written_for_what_does_not_change(stand: Stand) -> None:
    stand.serve_all("calm", playbooks.step("start"))
    stand.apply(stand.execution("calm", "calm"))
    stand.phase("calm", "Succeeded")
    _told(stand, "calm")
    stand.stop_operator()
    before = writes(stand)
    stand.start_operator()
    # It has looked through everything once when it serves what comes now.
    stand.apply(stand.execution("calm-2", "calm"))
    stand.phase("calm-2", "Succeeded")
    _told(stand, "calm-2")
    spent = writes(stand) - before
    assert spent.total() <= 4, spent


def _told(stand: Stand, name: str) -> None:
    """The end stands in the Events: nothing more will come."""
    words = ("get", "events", "-n", stand.namespace)
    only = f"involvedObject.name={name},reason=Succeeded"
    until(
        f"the end of {name} is told",
        lambda: stand.cluster.kubectl(*words, f"--field-selector={only}", "-o", "name").stdout,
    )
