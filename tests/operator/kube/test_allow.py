"""What a playbook may say about its Pods, and which pools follow from it."""

from __future__ import annotations

import pytest

from noetl_core.load import load
from noetl_core.model import ExecutorKind, Playbook, PoolScope
from noetl_operator.kube.allow import Workers, refusals, shape_of
from noetl_operator.kube.pools import PoolName, Scope, pools_of
from noetl_operator.settings import BadSettings, OperatorSettings

WORKERS = Workers(url="http://noetl", image="worker:1")
DIGEST = "sha256:" + "ab" * 32


def playbook(executor: str = "", step: str = "") -> Playbook:
    text = f"""
metadata: {{name: etl}}
executor: {executor or "{}"}
workflow:
- step: load
  tool: {{kind: noop}}
- step: heavy
  spec: {step or "{}"}
  tool: {{kind: noop}}
"""
    (loaded,) = load(text)
    assert loaded.playbook is not None, loaded.problems
    return loaded.playbook


def heavy(book: Playbook, workers: Workers = WORKERS):  # type: ignore[no-untyped-def]
    return shape_of(book, book.workflow[1], workers)


def test_a_playbook_that_says_nothing_gets_what_the_installation_says() -> None:
    workers = WORKERS.model_copy(
        update={"resources": {"limits": {"cpu": "1"}}, "node_selector": {"pool": "etl"}}
    )
    shape = shape_of(playbook(), None, workers)
    assert (shape.kind, shape.scope) == (ExecutorKind.POOL, PoolScope.EXECUTION)
    assert (shape.image, shape.service_account) == ("worker:1", "default")
    assert shape.resources == {"limits": {"cpu": "1"}}
    assert shape.node_selector == {"pool": "etl"}
    assert (shape.least, shape.most, shape.idle_s) == (0, WORKERS.pool_max, WORKERS.idle_s)


def test_F1_maps_merge_and_lists_and_scalars_are_replaced() -> None:
    book = playbook(
        """{spec: {policy: {defaults: {resources: {requests: {cpu: 1, memory: 1Gi}}}},
                  resources: {requests: {cpu: 2}}, nodeSelector: {a: x, b: x},
                  tolerations: [{key: one}], image: outer:1}}""",
        """{executor: {kind: pod, spec: {resources: {limits: {memory: 2Gi}}, nodeSelector: {b: y},
                       tolerations: [{key: two}], image: inner:1}}}""",
    )
    shape = heavy(book)
    assert shape.resources == {
        "requests": {"cpu": 2, "memory": "1Gi"},
        "limits": {"memory": "2Gi"},
    }
    assert shape.node_selector == {"a": "x", "b": "y"}
    assert shape.tolerations == ({"key": "two"},)
    assert (shape.kind, shape.image) == (ExecutorKind.POD, "inner:1")
    assert shape_of(book, None, WORKERS).image == "outer:1"


def test_a_pool_says_how_many_pods_it_has() -> None:
    shape = shape_of(
        playbook("{spec: {pool: {scope: playbook, min: 2, max: 3, idle_s: 0}}}"), None, WORKERS
    )
    assert (shape.scope, shape.least, shape.most, shape.idle_s) == (PoolScope.PLAYBOOK, 2, 3, 0.0)


def test_a_pool_that_wants_more_than_the_usual_gets_it() -> None:
    shape = shape_of(playbook("{spec: {pool: {min: 9}}}"), None, WORKERS)
    assert (shape.least, shape.most) == (9, 9)


@pytest.mark.parametrize(
    ("image", "allowed", "is_refused"),
    [
        ("worker:1", [], False),
        ("mine:1", [], True),
        ("mine:1", ["mine:*"], False),
        ("evil/mine:1", ["mine:*"], True),
        ("mine-too:1", ["mine:*"], True),
    ],
)
def test_an_image_must_be_allowed(image: str, allowed: list[str], is_refused: bool) -> None:
    workers = WORKERS.model_copy(update={"allowed_images": allowed})
    found = refusals(playbook(f"{{spec: {{image: '{image}'}}}}"), workers)
    assert bool(found) is is_refused
    for problem in found:
        assert problem.path == "executor.spec.image"
        assert f"`{image}`" in problem.message


def test_a_service_account_must_be_allowed_also_in_a_step() -> None:
    book = playbook(step="{executor: {kind: pod, spec: {serviceAccountName: admin}}}")
    (problem,) = refusals(book, WORKERS, "spec.")
    assert problem.path == "spec.workflow[1].spec.executor.spec.serviceAccountName"
    assert "ServiceAccount `admin` is not allowed" in problem.message
    workers = WORKERS.model_copy(update={"allowed_service_accounts": ["adm*"]})
    assert refusals(book, workers) == []


def test_placement_is_free_unless_the_installation_says_otherwise() -> None:
    book = playbook("{spec: {nodeSelector: {a: b}, tolerations: [{key: x}]}}")
    assert refusals(book, WORKERS) == []
    found = refusals(book, WORKERS.model_copy(update={"allow_placement": False}))
    assert [p.path for p in found] == ["executor.spec.nodeSelector", "executor.spec.tolerations"]


def test_what_the_installation_says_wrong_is_named() -> None:
    def read(text: str) -> Workers | None:
        return OperatorSettings.from_environment({"NOETL_WORKERS": text}).workers

    assert read('{"url": "http://noetl", "image": "worker:1"}') == WORKERS
    assert read("") is None
    with pytest.raises(BadSettings, match=r"NOETL_WORKERS.capacity: .*greater than or equal to 1"):
        read('{"url": "u", "image": "i", "capacity": 0}')
    with pytest.raises(BadSettings, match=r"NOETL_WORKERS.colour: "):
        read('{"url": "u", "image": "i", "colour": "red"}')
    with pytest.raises(BadSettings, match=r"NOETL_WORKERS: .*it is not JSON"):
        read("{")


def named(book: Playbook, shared_by: str = "etl") -> tuple[str, dict[str, str]]:
    found = pools_of(book, "x1", "team", shared_by, DIGEST)
    return found.pool, found.steps


POOLS = [
    ("", "", "execution/x1", {}),
    ("{spec: {pool: {scope: playbook}}}", "", "playbook/team/etl/abababababab", {}),
    ("{kind: pod}", "", "step/x1/", {}),
    ("{kind: job}", "", "step/x1/", {}),
    ("", "{executor: {kind: pod}}", "execution/x1", {"heavy": "step/x1/heavy"}),
    (
        "{kind: pod}",
        "{executor: {kind: pool}}",
        "step/x1/",
        {"heavy": "execution/x1/heavy"},
    ),
    (
        "{spec: {pool: {scope: playbook}}}",
        "{executor: {kind: pool, spec: {image: other:1}}}",
        "playbook/team/etl/abababababab",
        {"heavy": "playbook/team/etl/abababababab/heavy"},
    ),
]


@pytest.mark.parametrize(("executor", "step", "pool", "steps"), POOLS)
def test_commands_wait_where_their_executor_says(
    executor: str, step: str, pool: str, steps: dict[str, str]
) -> None:
    assert named(playbook(executor, step)) == (pool, steps)


def test_a_playbook_written_out_in_an_execution_shares_with_nobody() -> None:
    book = playbook("{spec: {pool: {scope: playbook}}}")
    assert named(book, shared_by="") == ("execution/x1", {})


@pytest.mark.parametrize(
    "text",
    [
        "execution/x1",
        "execution/x1/a/b",
        "step/x1/",
        "step/x1/heavy step/é",
        "playbook/team/etl/abab",
        "playbook/team/etl/abab/a/b",
    ],
)
def test_the_name_of_a_pool_reads_back(text: str) -> None:
    name = PoolName.parse(text)
    assert name is not None
    assert str(name) == text


def test_the_step_of_a_pool_may_have_slashes() -> None:
    name = PoolName.parse("playbook/team/etl/abab/a/b")
    assert name is not None
    assert (name.scope, name.step) == (Scope.PLAYBOOK, "a/b")


@pytest.mark.parametrize("text", ["", "default", "local/7", "playbook/x", "execution"])
def test_the_pool_of_somebody_else_is_none_of_ours(text: str) -> None:
    assert PoolName.parse(text) is None
