"""The custom resource definitions without a cluster: fresh, small, structural, complete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from noetl_cli import crds
from noetl_core.crds import execution_crd, playbook_crd, refusals
from noetl_core.execution import ExecutionSpec, ExecutionStatus, PlaybookStatus

FOLDER = Path(__file__).parents[2] / "crds"
LIMIT = 256 * 1024
TEXTS = crds.texts()

FORBIDDEN = {"$ref", "$defs", "definitions", "const", "if", "then", "patternProperties", "default"}

Node = dict[str, Any]

EACH = pytest.mark.parametrize(
    "crd", [playbook_crd(), execution_crd()], ids=["playbook", "execution"]
)


def schema_of(crd: Node) -> Node:
    [version] = crd["spec"]["versions"]
    found: Node = version["schema"]["openAPIV3Schema"]
    return found


def walk(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Every schema in a schema, but for those in junctors."""
    yield path, node
    for name, inner in node.get("properties", {}).items():
        yield from walk(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in node:
            yield from walk(node[key], f"{path}[{key}]")


def junctors(node: Node) -> Iterator[Node]:
    for key in ("anyOf", "oneOf", "allOf"):
        yield from node.get(key, [])
    if "not" in node:
        yield node["not"]


def test_the_files_are_what_the_model_makes() -> None:
    assert {path.name for path in FOLDER.glob("*.yaml")} == set(TEXTS)
    for name, text in TEXTS.items():
        assert (FOLDER / name).read_text() == text, f"{name} is stale: run `make crds`"


def test_the_files_are_named_by_group_and_plural() -> None:
    assert sorted(TEXTS) == ["noetl.io_executions.yaml", "noetl.io_playbooks.yaml"]


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_each_file_is_under_256_kib(name: str) -> None:
    text = TEXTS[name]
    assert len(text.encode()) < LIMIT
    # What `kubectl apply` keeps in an annotation of at most this size.
    assert len(json.dumps(yaml.safe_load(text)).encode()) < LIMIT


def test_they_are_written_to_a_folder(tmp_path: Path) -> None:
    crds.write(tmp_path / "made")
    made = {path.name: path.read_text() for path in (tmp_path / "made").iterdir()}
    assert made == TEXTS


def test_without_a_folder_it_says_how_it_is_used(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["crds"])
    assert crds.main() == 2
    assert "usage:" in capsys.readouterr().err


@EACH
def test_every_value_has_a_type_or_says_that_it_may_have_any(crd: Node) -> None:
    for path, node in walk(schema_of(crd)):
        free = node.get("x-kubernetes-preserve-unknown-fields") is True
        either = node.get("x-kubernetes-int-or-string") is True
        assert isinstance(node.get("type"), str) or free or either, path
        assert not (free and either), path
        if node.get("type") == "array":
            assert "items" in node, path


@EACH
def test_no_construct_stands_that_a_structural_schema_forbids(crd: Node) -> None:
    for path, node in walk(schema_of(crd)):
        assert not FORBIDDEN & set(node), path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert isinstance(node.get("exclusiveMinimum", True), bool), path
        assert node.get("additionalProperties", {}) not in (True, False), path


@EACH
def test_junctors_only_speak_of_what_is_declared_outside(crd: Node) -> None:
    for path, node in walk(schema_of(crd)):
        for inner in junctors(node):
            _check_junctor(inner, node, path)


def _check_junctor(inner: Node, outer: Node, path: str) -> None:
    forbidden = {"type", "description", "default", "additionalProperties", "nullable", "title"}
    assert not forbidden & set(inner), path
    assert not any(key.startswith("x-kubernetes") for key in inner), path
    for name, below in inner.get("properties", {}).items():
        assert name in outer["properties"], f"{path}.{name}"
        _check_junctor(below, outer["properties"][name], f"{path}.{name}")
    for below in junctors(inner):
        _check_junctor(below, outer, path)


@EACH
def test_rules_stand_only_where_cel_has_a_type(crd: Node) -> None:
    """Kubernetes refuses a rule at or below a value without a type."""

    def check(node: Node, path: str, typed: bool) -> None:
        typed = typed and "type" in node
        rules = node.get("x-kubernetes-validations", [])
        assert typed or not rules, path
        for rule in rules:
            assert rule["message"].strip(), path
            assert "\n" not in rule["message"], path
            field = rule.get("fieldPath", ".").removeprefix(".")
            assert not field or field in node["properties"], path
        for name, inner in node.get("properties", {}).items():
            check(inner, f"{path}.{name}", typed)
        for key in ("items", "additionalProperties"):
            if key in node:
                check(node[key], f"{path}[{key}]", typed)

    check(schema_of(crd), "", True)


TASK = "workflow [] tool []"
WHERE = {
    "root": "",
    "step": "workflow []",
    "step.spec": "workflow [] spec",
    "policy": "workflow [] spec policy",
    "admit": "workflow [] spec policy admit",
    "admit.then": "workflow [] spec policy admit rules [] then",
    "loop": "workflow [] loop",
    "loop.spec": "workflow [] loop spec",
    "task": TASK,
    "task.spec": f"{TASK} spec",
    "task.policy": f"{TASK} spec policy",
    "rule": f"{TASK} spec policy rules []",
    "then": f"{TASK} spec policy rules [] then",
    "next": "workflow [] next",
    "arc": "workflow [] next arcs []",
}


@EACH
@pytest.mark.parametrize("place", sorted(refusals.PLACES))
def test_A5_no_refused_word_is_forgotten(crd: Node, place: str) -> None:
    spec = schema_of(crd)["properties"]["spec"]
    node = spec["properties"]["playbook"] if crd["spec"]["names"]["kind"] == "Execution" else spec
    for part in WHERE[place].split():
        node = node["items"] if part == "[]" else node["properties"][part]
    for word, message in refusals.words_of(place).items():
        assert word in node["properties"], f"{place}: {word} is not declared"
        assert message in _messages(node, word), f"{place}: {word} is declared and not refused"


def _messages(node: Node, word: str) -> str:
    """All that the API server would say about a word in this mapping."""
    rules = [
        r for r in node.get("x-kubernetes-validations", []) if r.get("fieldPath") == f".{word}"
    ]
    said = [str(rule["message"]) for rule in rules]
    for holder in (node, *junctors(node)):
        said += holder.get("properties", {}).get(word, {}).get("enum", [])
    return " ".join(said)


@EACH
def test_the_status_is_a_subresource_and_lists_every_field(crd: Node) -> None:
    [version] = crd["spec"]["versions"]
    assert version["subresources"] == {"status": {}}
    is_execution = crd["spec"]["names"]["kind"] == "Execution"
    wanted = ExecutionStatus if is_execution else PlaybookStatus
    assert set(schema_of(crd)["properties"]["status"]["properties"]) == set(wanted.keys)


def test_every_field_of_an_execution_is_described() -> None:
    spec = schema_of(execution_crd())["properties"]["spec"]
    assert set(spec["properties"]) == set(ExecutionSpec.keys)
    for name, node in spec["properties"].items():
        assert node["description"], name
