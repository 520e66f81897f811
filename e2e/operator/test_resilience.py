"""What goes wrong around the operator: it dies, the API server goes away, somebody sends poison."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import time

import pytest

from e2e.cluster import Cluster
from e2e.operator import playbooks
from e2e.operator.stand import Object, Stand, condition, until

SEED = 20261118


def test_an_api_server_that_restarts_is_found_again(stand: Stand) -> None:
    if not isinstance(stand.cluster, Cluster):
        pytest.skip("this cluster was not made here")
    stand.apply(playbooks.gate(stand), stand.execution("through", "gate"))
    stand.worker("through")
    stand.phase("through", "Waiting")
    stand.cluster.stop("apiserver")
    stand.cluster.start("apiserver")
    stand.patch("through", ctxPatches=[{"id": "ok", "set": {"open": True}}])
    stand.phase("through", "Succeeded")
    stand.apply(stand.execution("after", "gate", ctxPatches=[{"id": "ok", "set": {"open": True}}]))
    stand.worker("after")
    stand.phase("after", "Succeeded")
    assert stand.probe("livez")


def test_what_happens_while_it_is_dead_is_seen_when_it_is_back(stand: Stand) -> None:
    names = ("left", "cancelled", "opened")
    stand.apply(playbooks.gate(stand), *(stand.execution(name, "gate") for name in names))
    for name in names:
        stand.worker(name)
    first, *_ = [stand.phase(name, "Waiting")["executionId"] for name in names]
    stand.stop_operator(signal.SIGKILL)
    stand.delete("left")
    stand.apply(stand.execution("left", "gate"))
    stand.patch("cancelled", cancel="Now")
    stand.patch("opened", ctxPatches=[{"id": "ok", "set": {"open": True}}])
    stand.apply(stand.execution("born", "gate", cancel="Now"))
    stand.start_operator()
    stand.phase("cancelled", "Cancelled")
    stand.phase("opened", "Succeeded")
    stand.phase("born", "Cancelled")
    until("left runs anew", lambda: stand.status("left").get("executionId", first) != first)
    stand.patch("left", cancel="Now")


def test_an_operator_that_is_killed_again_and_again_loses_nothing(stand: Stand) -> None:
    """Executions begin while the operator dies at random moments."""
    chance = random.Random(SEED)
    names = [f"killed-{number}" for number in range(8)]
    stand.serve_all("shared", playbooks.step("start", "two"), playbooks.step("two"))
    for name in names:
        stand.apply(stand.execution(name, "shared"))
        # A moment of its own for each death: before, during or after the beginning.
        time.sleep(chance.uniform(0.0, 0.4))
        stand.stop_operator(signal.SIGKILL)
        stand.start_operator()
    for name in names:
        status = stand.phase(name, "Succeeded")
        assert status["steps"]["done"] == 2
        assert status["steps"]["progress"] == "2/2"
    assert stand.differences() == []


POISON: dict[str, Object] = {
    "deep": {"workload": {"a": "DEEP"}},
    "odd-text": {"workload": {"\u0000": "\u0000\ud7ff\uffff\u202e", "": None}},
    "large": {"workload": {"k": "x" * 900_000}},
    "numbers": {"workload": {"big": 1e300, "small": 5e-324, "whole": 9007199254740993}},
    "patches": {"ctxPatches": [{"id": str(n), "set": {"k": "v" * 9000}} for n in range(100)]},
    "template": {"workload": {"t": "{{ ().__class__ }}"}},
    "inline": {"playbook": {"workflow": [{"step": "{{ x }}", "tool": [{"kind": "noop"}]}]}},
    "no-name": {"rerunOf": {"name": "nobody", "fromStep": "no"}},
}


def test_no_object_that_the_api_server_takes_stops_the_others(stand: Stand) -> None:
    stand.apply(playbooks.hello(stand))
    taken = []
    for name, spec in POISON.items():
        whole = spec if "playbook" in spec else {"playbookRef": {"name": "hello"}, **spec}
        thing = stand.resource("Execution", f"poison-{name}", _deepened(whole))
        with contextlib.suppress(Exception):
            stand.cluster.kubectl("create", "-f", "-", input=json.dumps(thing))
            taken.append(f"poison-{name}")
    assert len(taken) >= 5
    stand.apply(stand.execution("healthy", "hello"))
    stand.worker("healthy")
    stand.phase("healthy", "Succeeded")
    for name in taken:
        status = until(f"{name} has a status", lambda name=name: stand.status(name))
        assert condition(status, "Accepted")["reason"] != "Quarantined"
        stand.patch(name, cancel="Now")
    for name in taken:
        until(
            f"{name} ends",
            lambda name=name: condition(stand.status(name), "Succeeded")["status"] == "False",
        )


def _deepened(value: object) -> object:
    """`DEEP` becomes a value that nests as far as the API server lets it."""
    if value == "DEEP":
        deep: object = 1
        for _ in range(900):
            deep = [deep]
        return deep
    if isinstance(value, dict):
        return {key: _deepened(inner) for key, inner in value.items()}
    return value
