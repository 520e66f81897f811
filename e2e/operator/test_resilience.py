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


DEATHS = 20


def test_an_operator_that_is_killed_again_and_again_loses_nothing(stand: Stand) -> None:
    """Executions begin, are opened, cancelled and deleted while it dies at random moments."""
    chance = random.Random(SEED)
    stand.serve_all("plain", playbooks.step("start", "two"), playbooks.step("two"))
    stand.serve_all("closed", playbooks.step("start", "gate"), playbooks.gated("gate"))
    ends: dict[str, str] = {}
    for number in range(DEATHS):
        name = f"killed-{number}"
        waiting = [one for one, end in ends.items() if end == "Waiting"]
        match chance.choice(("plain", "closed", "open", "cancel", "delete")):
            case "open" if waiting:
                stand.patch(waiting[0], ctxPatches=[{"id": "ok", "set": {"open": True}}])
                ends[waiting[0]] = "Succeeded"
            case "cancel" if waiting:
                stand.patch(waiting[0], cancel="Graceful")
                ends[waiting[0]] = "Cancelled"
            case "delete" if waiting:
                stand.delete(waiting[0])
                del ends[waiting[0]]
            case "plain":
                stand.apply(stand.execution(name, "plain"))
                ends[name] = "Succeeded"
            case _:
                stand.apply(stand.execution(name, "closed"))
                ends[name] = "Waiting"
        # Each death has a moment of its own: before, during or after what was asked for.
        time.sleep(chance.uniform(0.0, 0.4))
        stand.stop_operator(signal.SIGKILL)
        stand.start_operator()
    for name, end in ends.items():
        status = stand.phase(name, end)
        if end == "Succeeded":
            assert status["steps"]["progress"] == "2/2"
    assert stand.differences() == []
    assert set(ends.values()) >= {"Succeeded", "Cancelled"}, "choose another seed"
    until("only what has an object runs", lambda: stand.live("killed-") == _open(stand, ends))


def _open(stand: Stand, ends: dict[str, str]) -> set[str]:
    return {stand.status(name)["executionId"] for name, end in ends.items() if end == "Waiting"}


POISON: dict[str, Object] = {
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
        thing = stand.resource("Execution", f"poison-{name}", whole)
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


def test_an_object_of_ten_thousand_levels_stops_nobody(stand: Stand) -> None:
    """Parsers give up on it: neither the watch nor a list may fail for the others."""
    data = f'"workload": {{"a": {"[" * 9900 + "]" * 9900}}}'
    named, tool = '{"name": "p"}', '{"kind": "noop"}'
    for kind, body in (
        ("Execution", f'"playbookRef": {named}'),
        ("Playbook", f'"workflow": [{{"step": "a", "tool": {tool}}}]'),
    ):
        meta = f'{{"name": "abyss", "namespace": "{stand.namespace}"}}'
        head = f'"apiVersion": "noetl.io/v1", "kind": "{kind}", "metadata": {meta}'
        stand.cluster.kubectl("create", "-f", "-", input=f'{{{head}, "spec": {{{body}, {data}}}}}')
    stand.apply(playbooks.hello(stand), stand.execution("unharmed", "hello"))
    stand.worker("unharmed")
    stand.phase("unharmed", "Succeeded")
    assert "deep" in stand.phase("abyss", "Failed")["message"]
    valid = until("it is judged", lambda: stand.status("abyss", "playbook").get("conditions"))
    assert valid[0]["status"] == "False"
    stand.stop_operator()
    stand.start_operator()
    stand.apply(stand.execution("unharmed-2", "hello"))
    stand.worker("unharmed-2")
    stand.phase("unharmed-2", "Succeeded")
    for kind in ("execution", "playbook"):
        stand.cluster.kubectl("delete", kind, "abyss", "-n", stand.namespace)


def test_a_database_that_restarts_is_waited_for(stand: Stand) -> None:
    stand.apply(playbooks.gate(stand), stand.execution("patient", "gate"))
    stand.worker("patient")
    stand.phase("patient", "Waiting")
    stand.postgres.kill()
    until("it is not ready", lambda: not stand.probe("readyz"))
    stand.patch("patient", ctxPatches=[{"id": "ok", "set": {"open": True}}])
    stand.apply(stand.execution("meanwhile", "gate", cancel="Now"))
    assert stand.probe("livez"), "to be restarted would not help"
    stand.postgres.start()
    stand.phase("patient", "Succeeded")
    stand.phase("meanwhile", "Cancelled")


def test_a_standby_takes_over(stand: Stand) -> None:
    stand.apply(playbooks.gate(stand), stand.execution("handed", "gate"))
    stand.worker("handed")
    stand.phase("handed", "Waiting")
    first = stand.operator
    stand.start_operator(NOETL_PORT="18090", NOETL_HEALTH_PORT="18091", at=18091)
    second, stand.operator = stand.operator, first
    stand.stop_operator(signal.SIGKILL)
    stand.operator = second
    # It has no worker: what it can do alone shows that it leads.
    stand.patch("handed", cancel="Now")
    stand.phase("handed", "Cancelled")
    stand.stop_operator()
    stand.start_operator()


def test_the_whole_cluster_is_served_when_no_namespace_is_named(stand: Stand) -> None:
    stand.stop_operator()
    stand.start_operator(NOETL_NAMESPACES="")
    stand.apply(playbooks.gate(stand), stand.execution("anywhere", "gate"))
    stand.worker("anywhere")
    stand.phase("anywhere", "Waiting")
    stand.patch("anywhere", ctxPatches=[{"id": "ok", "set": {"open": True}}])
    stand.phase("anywhere", "Succeeded")
    stand.stop_operator()
    stand.start_operator()
