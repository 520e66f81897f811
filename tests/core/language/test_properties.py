"""What holds for every playbook: round trips, one digest for all forms, problems with places."""

from __future__ import annotations

import random

import yaml
from hypothesis import given
from hypothesis import strategies as st

from noetl_core.load import Form, Loaded, digest, dump, dump_resource, load
from noetl_core.model import Playbook
from noetl_core.problems import Severity
from tests.support import playbooks


def _one(text: str | bytes) -> Loaded:
    (loaded,) = load(text)
    return loaded


def _playbook(text: str) -> Playbook:
    loaded = _one(text)
    assert [p for p in loaded.problems if p.severity is Severity.ERROR] == []
    assert loaded.playbook is not None
    return loaded.playbook


@given(playbooks.texts())
def test_A1_load_dump_load_gives_an_equal_playbook(text: str) -> None:
    first = _playbook(text)
    again = _playbook(playbooks.written(dump(first)))
    assert again == first
    assert digest(again) == digest(first)


@given(playbooks.texts())
def test_A1_document_and_resource_are_one_playbook_with_one_digest(text: str) -> None:
    document = _playbook(text)
    resource = playbooks.written(dump_resource(document))
    assert _one(resource).form is Form.RESOURCE
    assert _playbook(resource) == document
    assert digest(_playbook(resource)) == digest(document)


@given(playbooks.documents(), st.integers(0, 2**32))
def test_A1_the_digest_does_not_depend_on_formatting_or_the_order_of_keys(
    data: dict[str, object], seed: int
) -> None:
    plain = _playbook(playbooks.written(data))
    mixed = playbooks.reordered(data, random.Random(seed))
    other = _playbook(playbooks.written(mixed, flow=True, width=1000))
    assert other == plain
    assert digest(other) == digest(plain)


@given(playbooks.broken())
def test_A4_a_broken_file_loads_or_has_problems_with_places(raw: bytes) -> None:
    for loaded in load(raw):
        lines = raw.decode("utf-8", "replace").count("\n") + raw.count(b"\r") + 2
        for problem in loaded.problems:
            assert 1 <= problem.line <= lines
            assert problem.column >= 1
            assert problem.message
        assert (loaded.playbook is None) == loaded.has_errors


@given(st.binary(max_size=300))
def test_K2_any_bytes_are_a_playbook_or_problems_with_places(raw: bytes) -> None:
    for loaded in load(raw):
        assert loaded.has_errors
        assert all(p.line >= 1 and p.column >= 1 for p in loaded.problems)


@given(playbooks.values())
def test_K2_plain_data_is_read_as_yaml_means_it(value: object) -> None:
    text = playbooks.written(
        {"metadata": {"name": "x"}, "workload": {"value": value}, "workflow": []}
    )
    loaded = _one(text)
    assert loaded.partial is not None
    assert loaded.partial.workload["value"] == yaml.safe_load(text)["workload"]["value"]
