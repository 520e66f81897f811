"""Playbook objects: what they are told, and how they are found."""

from __future__ import annotations

import pytest

from noetl_core.model import Playbook
from noetl_core.problems import Problem, Severity
from noetl_operator.kube.playbooks import Playbooks, playbook_status
from noetl_operator.kube.port import PLAYBOOK, NotFound, Object
from noetl_operator.kube.status import StatusWriter
from noetl_operator.kube.watch import Watch, Watched
from tests.support.cluster import FakeCluster
from tests.support.kube_stand import NAMESPACE, put_playbook, step

NOW = "2026-11-18T10:00:00.000000Z"
LATER = "2026-11-18T11:00:00.000000Z"


class Bench:
    def __init__(self) -> None:
        self.refused: list[Problem] = []
        self.cluster = FakeCluster()
        self.watch = Watch([Watched(PLAYBOOK)], lambda key: None)
        writer = StatusWriter(self.cluster)
        self.playbooks = Playbooks(self.cluster, self.watch, writer, lambda: NOW, self.refuse)

    def refuse(self, playbook: Playbook) -> list[Problem]:
        return self.refused

    async def see(self) -> None:
        listed = await self.cluster.list(PLAYBOOK)
        self.watch.compare(PLAYBOOK, listed, self.watch.known(PLAYBOOK))

    async def status(self, name: str, there: Object | None = None, now: str = NOW) -> Object:
        judged = await self.playbooks.named(NAMESPACE, name)
        return playbook_status(judged, there or {}, judged.generation or 0, now)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_good_one_is_valid(bench: Bench) -> None:
    put_playbook(bench.cluster, "p", step("a", "b"), step("b"))
    status = await bench.status("p")
    (valid,) = status["conditions"]
    assert (valid["type"], valid["status"], valid["reason"]) == ("Valid", "True", "Valid")
    assert status["steps"] == 2
    assert status["digest"].startswith("sha256:")
    assert status["observedGeneration"] == valid["observedGeneration"] == 1


async def test_a_bad_one_is_told_every_problem(bench: Bench) -> None:
    put_playbook(bench.cluster, "p", step("a", "nowhere", "neither"), step("a"))
    status = await bench.status("p")
    (valid,) = status["conditions"]
    assert valid["status"] == "False"
    assert len(status["problems"]) >= 3
    assert all(one["code"] in valid["message"] for one in status["problems"])
    assert all(one["path"].startswith("spec.") for one in status["problems"])
    assert "digest" not in status


async def test_what_the_installation_does_not_allow_is_a_problem(bench: Bench) -> None:
    put_playbook(bench.cluster, "p", step("a"))
    no = Problem("K5.x", Severity.ERROR, "spec.executor.spec.image", 0, 0, "not allowed here")
    bench.refused.append(no)
    assert "not allowed here" in (await bench.status("p"))["conditions"][0]["message"]
    assert (await bench.playbooks.named(NAMESPACE, "p")).playbook is None


async def test_the_condition_keeps_its_time_until_it_changes(bench: Bench) -> None:
    put_playbook(bench.cluster, "p", step("a"))
    first = await bench.status("p")
    put_playbook(bench.cluster, "p", step("b"))
    same = await bench.status("p", first, LATER)
    assert same["conditions"][0]["lastTransitionTime"] == "2026-11-18T10:00:00Z"
    put_playbook(bench.cluster, "p", step("b", "nowhere"))
    other = await bench.status("p", first, LATER)
    assert other["conditions"][0]["lastTransitionTime"] == "2026-11-18T11:00:00Z"


async def test_one_is_found_by_name_and_by_path_in_its_own_namespace(bench: Bench) -> None:
    spec = {"metadata": {"path": "etl/daily"}, "workflow": [step("a")]}
    for namespace in (NAMESPACE, "other"):
        meta = {"name": f"p-{namespace}", "namespace": namespace}
        bench.cluster.put(PLAYBOOK, {"metadata": meta, "spec": spec})
    await bench.see()
    assert (await bench.playbooks.find(NAMESPACE, f"p-{NAMESPACE}")).name == f"p-{NAMESPACE}"
    assert (await bench.playbooks.find(NAMESPACE, "etl/daily")).name == f"p-{NAMESPACE}"
    for unknown in ("etl/weekly", "p-other"):
        with pytest.raises(NotFound):
            await bench.playbooks.find(NAMESPACE, unknown)


async def test_it_is_read_as_it_is_now_and_not_as_it_was_seen(bench: Bench) -> None:
    put_playbook(bench.cluster, "p", step("a"))
    await bench.see()
    before = await bench.playbooks.named(NAMESPACE, "p")
    put_playbook(bench.cluster, "p", step("b"))
    after = await bench.playbooks.named(NAMESPACE, "p")
    assert (before.generation, after.generation) == (1, 2)
    assert before.digest != after.digest


async def test_the_problems_of_one_in_an_execution_say_where(bench: Bench) -> None:
    judged = await bench.playbooks.written_out("x", {"workflow": [step("a", "nowhere")]})
    assert judged.playbook is None
    assert judged.errors[0]["path"] == "spec.playbook.workflow[0].next.arcs[0].step"
