"""What is kept of the objects of the cluster."""

from __future__ import annotations

from typing import Any

from noetl_operator.kube.port import EXECUTION, Key, Object
from noetl_operator.kube.watch import Watch, Watched

KEY = Key(EXECUTION, "n", "x")


def obj(version: int, uid: str = "u", **meta: Any) -> Object:
    named = {"name": "x", "namespace": "n", "uid": uid, "resourceVersion": str(version)}
    return {"metadata": {**named, **meta}, "spec": {"version": version}}


class Seen(Watch):
    """A watch that nobody feeds but the test."""

    def __init__(self) -> None:
        self.told: list[Key] = []
        super().__init__([Watched(EXECUTION)], self.told.append)

    def event(self, what: str | None, thing: Object) -> None:
        self._event(EXECUTION, what, thing)

    def version(self) -> int | None:
        found = self.get(KEY)
        return None if found is None else found["spec"]["version"]


def test_a_list_brings_what_is_new_and_takes_what_is_gone() -> None:
    watch = Seen()
    watch.compare(EXECUTION, [obj(1)], watch.known(EXECUTION))
    assert watch.version() == 1
    watch.compare(EXECUTION, [obj(1)], watch.known(EXECUTION))
    assert watch.told == [KEY], "nothing changed"
    watch.compare(EXECUTION, [], watch.known(EXECUTION))
    assert watch.version() is None
    assert watch.told == [KEY, KEY]


def test_a_list_that_is_behind_the_watch_changes_nothing() -> None:
    watch = Seen()
    watch.event("ADDED", obj(9))
    known = watch.known(EXECUTION)
    watch.event("MODIFIED", obj(10))
    watch.compare(EXECUTION, [obj(9)], known)
    assert watch.version() == 10


def test_one_that_was_made_while_the_list_came_stays() -> None:
    watch = Seen()
    known = watch.known(EXECUTION)
    watch.event("ADDED", obj(9))
    watch.compare(EXECUTION, [], known)
    assert watch.version() == 9
    known = watch.known(EXECUTION)
    watch.event("DELETED", obj(10))
    watch.event("ADDED", obj(11, uid="another"))
    watch.compare(EXECUTION, [], known)
    assert watch.version() == 11


def test_the_end_of_another_one_of_the_name_is_not_the_end_of_this_one() -> None:
    watch = Seen()
    watch.event("ADDED", obj(11, uid="another"))
    watch.event("DELETED", obj(10))
    assert watch.version() == 11


def test_what_nobody_reads_is_not_kept() -> None:
    watch = Seen()
    watch.compare(EXECUTION, [obj(1, managedFields=[{}] * 1000)], {})
    found = watch.get(KEY)
    assert found is not None
    assert "managedFields" not in found["metadata"]
