"""What of an Execution may be written, and what may change later."""

from __future__ import annotations

import pytest

from e2e.cluster import KubectlError, Kubernetes
from e2e.crds.objects import (
    NAMESPACE,
    STEP,
    TOOL,
    Object,
    accepts,
    create,
    execution,
    patch,
    refusal,
    resource,
)


def test_an_execution_names_a_playbook_or_holds_one(api: Kubernetes) -> None:
    inline: Object = {"workflow": [STEP]}
    both = {"playbookRef": {"name": "a"}, "playbook": inline}
    for spec in (both, {}):
        said = refusal(api, resource("Execution", "which", spec))
        assert "name a Playbook in `playbookRef` or write one under `playbook`" in said
    accepts(api, resource("Execution", "which", {"playbook": inline}))
    said = refusal(api, execution("old", playbook={"workflow": [STEP | {"case": []}]}))
    assert "spec.playbook.workflow[0].case: Forbidden: `case` is not part of v10" in said


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("playbookRef", {"name": "hello"}, {"name": "other"}),
        ("workload", {"a": 1}, {"a": 2}),
        ("workload", {"a": 1}, {"a": None, "b": 1}),
        ("workload", {"a": 1}, {"b": 1}),
        ("workload", {"a": {"b": [1]}}, {"a": {"b": [1, 2]}}),
        ("workload", {"a": 1}, None),
        ("workload", None, {"a": 1}),
        ("activeDeadlineSeconds", 60, 61),
        ("activeDeadlineSeconds", None, 60),
        ("activeDeadlineSeconds", 60, None),
        ("rerunOf", {"name": "x"}, {"fromStep": "load"}),
        ("rerunOf", {"name": "x"}, None),
    ],
)
def test_the_spec_of_an_execution_does_not_change(
    api: Kubernetes, field: str, before: object, after: object
) -> None:
    api.kubectl("delete", "execution", "fixed", "-n", NAMESPACE, "--ignore-not-found")
    create(api, execution("fixed", **({} if before is None else {field: before})))
    with pytest.raises(KubectlError, match=f"`{field}` cannot change after creation"):
        patch(api, "fixed", {field: after})


@pytest.mark.parametrize("tool", [{"kind": "http"}, [{"kind": "noop", "result": 2}], [TOOL, TOOL]])
def test_an_inline_playbook_does_not_change(api: Kubernetes, tool: object) -> None:
    api.kubectl("delete", "execution", "inline", "-n", NAMESPACE, "--ignore-not-found")
    create(api, execution("inline", playbook={"workflow": [STEP], "workload": {"a": 1}}))
    for changed in ({"workflow": [STEP | {"tool": tool}]}, {"workload": {"a": None, "b": 1}}):
        with pytest.raises(KubectlError, match="`playbook` cannot change after creation"):
            patch(api, "inline", {"playbook": changed})


def test_an_execution_can_be_steered(api: Kubernetes) -> None:
    create(api, execution("steered", workload={"a": None, "b": 1}))
    for changed in (
        {"suspend": True},
        {"suspend": None},
        {"ttlSecondsAfterFinished": 0},
        {"ttlSecondsAfterFinished": None},
        {"cancel": "Graceful"},
        {"cancel": "Now"},
    ):
        patch(api, "steered", changed)
    with pytest.raises(KubectlError, match='supported values: "Graceful", "Now"'):
        patch(api, "steered", {"cancel": "Softly"})


def test_ctx_patches_only_grow(api: Kubernetes) -> None:
    first: Object = {"id": "a", "set": {"approved": True, "note": None}, "by": "ann"}
    second: Object = {"id": "b", "set": {"approved": False}, "reason": "wrong file"}
    create(api, execution("patched"))
    patch(api, "patched", {"ctxPatches": [first]})
    patch(api, "patched", {"ctxPatches": [first, second]})
    for less in (
        None,
        [],
        [first],
        [second, first],
        [first, {"id": "c", "set": {}}, second],
        [first, second | {"set": {"approved": True}}],
        [first, second | {"set": {"other": False}}],
        [first, second | {"reason": "other words"}],
    ):
        with pytest.raises(KubectlError, match="`ctxPatches` only grows"):
            patch(api, "patched", {"ctxPatches": less})
    with pytest.raises(KubectlError, match="Duplicate value"):
        patch(api, "patched", {"ctxPatches": [first, second, first]})
    many = [{"id": f"p{n}", "set": {"n": n}} for n in range(100)]
    create(api, execution("patched-often", ctxPatches=many[:99]))
    patch(api, "patched-often", {"ctxPatches": many})


def test_several_people_append_by_server_side_apply(api: Kubernetes) -> None:
    create(api, execution("approved"))
    for who in ("ann", "bob"):
        thing = resource("Execution", "approved", {"ctxPatches": [{"id": who, "set": {who: 1}}]})
        spec = thing["spec"]
        assert isinstance(spec, dict)
        spec["playbookRef"] = {"name": "hello"}
        api.apply(thing, f"--field-manager={who}")
    ids = "jsonpath={.spec.ctxPatches[*].id}"
    shown = api.kubectl("get", "execution", "approved", "-n", NAMESPACE, "-o", ids)
    assert shown.stdout == "ann bob"
