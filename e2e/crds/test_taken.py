"""What the API server takes, and keeps to the last key."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from e2e.cluster import Kubernetes
from e2e.crds.objects import (
    TOOL,
    Object,
    accepts,
    as_resource,
    create,
    execution,
    patch,
    playbook,
    with_step,
)
from tests.support import seeds

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_A1_the_examples_are_taken_whole(api: Kubernetes, path: Path) -> None:
    for document in yaml.safe_load_all(path.read_text()):
        accepts(api, as_resource(document))


@pytest.mark.parametrize("source", ["000", "001", "004"])
def test_A1_the_examples_of_the_source_documents_are_taken_whole(
    api: Kubernetes, source: str
) -> None:
    for name in seeds.names(source):
        text = seeds.playbook_around(seeds.example(source, name))
        accepts(api, as_resource(yaml.safe_load(text)))


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param([{"name": "fetch", "kind": "http", "url": "{{ url }}"}], id="named"),
        pytest.param([{"kind": "http", "url": "{{ url }}"}, {"kind": "noop"}], id="unnamed"),
        pytest.param({"kind": "http", "url": "{{ url }}"}, id="single"),
        pytest.param([{"fetch": {"kind": "http", "params": {"page": 1}}}], id="labelled"),
        pytest.param([{"sink": {"kind": "postgres", "auth": "pg"}}], id="labelled-old-word"),
        pytest.param([{"name": "plugged", "kind": "kafka", "query": "x", "set": 1}], id="plug-in"),
        pytest.param([{"kind": "workbook", "task": "t", "timeout": 3}], id="workbook"),
    ],
)
def test_A3_every_task_shape_is_taken_whole(api: Kubernetes, tool: object) -> None:
    accepts(api, with_step("shapes", tool=tool))
    if isinstance(tool, list):
        accepts(api, playbook("workbook-list", workbook=tool))


def test_the_forms_of_the_language_are_taken_whole(api: Kubernetes) -> None:
    rule = {"when": "{{ outcome.status == 'error' }}", "then": {"do": "retry", "delay": 0.5}}
    last = {"else": {"then": {"do": "fail", "message": "no {{ outcome.error.code }}"}}}
    spec = {"timeout": {"connect": 1, "read": 2.5}, "policy": {"rules": [rule, last]}}
    admit = {
        "rules": [{"when": True, "then": {"allow": True}}, {"else": {"then": {"allow": False}}}]
    }
    inner = {"in": "{{ iter.row }}", "iterator": "cell", "spec": {"max_in_flight": "{{ ctx.n }}"}}
    step = {
        "step": "load",
        "spec": {"join": "all", "executor": "job", "policy": {"admit": admit}, "timeout": 3},
        "loop": {"in": [1, None, {"a": []}], "iterator": "row", "loop": inner},
        "tool": [{"name": "t", "kind": "noop", "result": None, "spec": spec}],
        "next": {"arcs": [{"step": "end", "when": "{{ event.status }}", "args": {"n": None}}]},
    }
    end = {"step": "end", "tool": TOOL, "spec": {"join": {"mode": "all", "at_end": "drop"}}}
    accepts(
        api,
        playbook(
            "forms",
            metadata={"path": "a/b", "version": 1.5},
            keychain=[{"name": "pg", "kind": "secret_manager", "map": {"a": "b/c"}}],
            executor={"kind": "pool", "spec": {"result": {"n": "{{ ctx.n }}"}, "pool": {"max": 3}}},
            workload={"a": None, "deep": {"b": [None, 1.5, "x"]}},
            workflow=[step, end],
            workbook={"w": {"kind": "http", "json": {"set": 1}, "spec": {"numeric": "text"}}},
        ),
    )
    accepts(api, playbook("word", executor="pod"))


def _loops(depth: int, innermost: Object) -> Object:
    loop = innermost
    for number in range(depth):
        loop = {"in": [], "iterator": f"i{number}", "loop": loop}
    return loop


def test_E4_loops_nest_to_any_depth(api: Kubernetes) -> None:
    innermost: Object = {"in": [1], "iterator": "x", "spec": {"mode": "parallel"}}
    for depth in range(8):
        accepts(api, with_step("deep", loop=_loops(depth, innermost)))


def test_a_playbook_of_a_thousand_steps_is_taken(api: Kubernetes) -> None:
    arcs = {"arcs": [{"step": "s0", "when": "{{ event.status }}"}]}
    steps = [{"step": f"s{n}", "tool": [TOOL] * 3, "next": arcs} for n in range(1000)]
    accepts(api, playbook("long", workflow=steps))
    create(api, execution("long", playbook={"workflow": steps}))
    patch(api, "long", {"suspend": True})
