"""Objects that nest too deep."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noetl_operator.kube.plan import read_spec
from noetl_operator.kube.tame import TOO_DEEP, is_deep, parsed, tamed


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def text(levels: int) -> str:
    spec = f'{{"playbookRef": {{"name": "p"}}, "workload": {{"a": {nested(levels)}}}}}'
    return f'{{"metadata": {{"name": "x"}}, "spec": {spec}}}'


@pytest.mark.parametrize("levels", [150, 900, 1100, 9900])
def test_a_deep_spec_is_left_out_and_told(levels: int) -> None:
    found = parsed(text(levels).encode())
    assert found == {"metadata": {"name": "x"}, "spec": {TOO_DEEP: True}}
    read = read_spec(found)
    assert read.spec is None
    assert "deep" in read.problems[0].message


def test_one_deep_object_does_not_spoil_a_list() -> None:
    answer = f'{{"metadata": {{}}, "items": [{text(9900)}, {text(3)}]}}'
    deep, plain = parsed(answer.encode())["items"]
    assert deep["spec"] == {TOO_DEEP: True}
    assert plain == json.loads(text(3))


@pytest.mark.parametrize(("levels", "wanted"), [(1, False), (101, False), (102, True)])
def test_the_limit_is_that_of_playbooks(levels: int, wanted: bool) -> None:
    assert is_deep(json.loads(nested(levels))) is wanted


def test_a_deep_status_is_left_out_too() -> None:
    assert tamed({"metadata": {}, "status": json.loads(nested(500))})["status"] is None


@pytest.mark.parametrize(
    "workload", [{"a": [1, {"b": None}]}, {}, {"{{ x }}": "{{ y }}"}, {"n": 1e300}]
)
def test_data_of_a_spec_is_taken_as_it_is(workload: dict[str, Any]) -> None:
    obj = {"metadata": {"name": "x"}, "spec": {"playbookRef": {"name": "p"}, "workload": workload}}
    read = read_spec(obj)
    assert read.spec is not None
    assert read.spec.workload == workload


def test_a_playbook_in_a_spec_is_taken_as_it_is() -> None:
    inner = {"workflow": [{"step": "a"}]}
    read = read_spec({"metadata": {"name": "x"}, "spec": {"playbook": inner}})
    assert read.spec is not None
    assert read.spec.playbook == inner
    both = {"playbook": inner, "playbookRef": {"name": "p"}}
    assert read_spec({"metadata": {"name": "x"}, "spec": both}).spec is None
    wrong = {"playbookRef": {"name": "p"}, "workload": ["no mapping"]}
    assert read_spec({"metadata": {"name": "x"}, "spec": wrong}).spec is None
