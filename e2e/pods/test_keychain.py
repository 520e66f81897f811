"""The keychain: Secrets reach the worker as files, and nobody else."""

from __future__ import annotations

import json

from e2e.operator.stand import condition, until
from e2e.pods.field import Field, gate, python, step

LENGTH = python("result = len(token)", token="{{ keychain.api.token }}")
"""What a secret is like without being it: values are masked wherever they would be stored."""


def entry(**more: object) -> dict[str, object]:
    return {"name": "api", "kind": "bearer", **more}


def test_G1_a_step_reads_a_secret(field: Field) -> None:
    field.secret("api", token="twelve-chars")
    field.run("reads", step("one", LENGTH), keychain=[entry()])
    assert field.ended("reads")["result"] == 12


def test_G1_fields_may_come_from_several_secrets(field: Field) -> None:
    field.secret("first", user="me")
    field.secret("second", word="longer-than-it")
    login = {
        "name": "login",
        "kind": "basic",
        "secretRef": {"name": "first"},
        "map": {"username": "user", "password": "second/word"},
    }
    both = python("result = [user, len(word)]", user="{{ keychain.login.username }}",
                  word="{{ keychain.login.password }}")  # fmt: skip
    field.run("several", step("one", both), keychain=[login])
    assert field.ended("several")["result"] == ["me", 14]


def test_G3_a_missing_secret_fails_before_the_first_step_and_is_named(field: Field) -> None:
    field.run("missing", step("one", LENGTH), keychain=[entry(secretRef={"name": "nowhere"})])
    status = field.ended("missing", "Failed")
    succeeded = condition(status, "Succeeded")
    assert succeeded["reason"] == "KeychainError"
    for word in ("api", "nowhere", "token"):
        assert word in succeeded["message"]
    assert status["steps"]["total"] == 0


def test_G3_a_missing_key_is_named(field: Field) -> None:
    field.secret("half", other="x")
    mapped = entry(secretRef={"name": "half"}, map={"token": "absent"})
    whole = {"name": "whole", "kind": "secret", "secretRef": {"name": "half"}}
    field.run("half", step("one", LENGTH), keychain=[whole, mapped])
    message = condition(field.ended("half", "Failed"), "Succeeded")["message"]
    assert "the Secret half has no key absent" in message


def test_a_secret_changed_later_is_seen_by_the_next_step(field: Field) -> None:
    field.secret("changing", token="short")
    field.run(
        "changed",
        step("one", LENGTH, then="wait"),
        gate("wait", then="two"),
        step("two", LENGTH),
        keychain=[entry(secretRef={"name": "changing"})],
        executor={"spec": {"pool": {"min": 1}}},
    )
    pod = field.pod_of("changed")["metadata"]["name"]
    until("it waits", lambda: field.status("changed").get("phase") == "Waiting", 90.0)
    field.secret("changing", token="much-longer")
    read = ("exec", pod, "--", "cat", "/etc/noetl/keychain/changing/token")
    # The kubelet brings it at its next look.
    until("the Pod has it", lambda: field.kubectl(*read, check=False) == "much-longer", 150.0)
    patch = {"spec": {"ctxPatches": [{"id": "open", "set": {"open": True}}]}}
    field.kubectl("patch", "execution", "changed", "--type=merge", "-p", json.dumps(patch))
    assert field.ended("changed")["result"] == 11


def test_the_operator_may_not_read_secrets(field: Field) -> None:
    account = "system:serviceaccount:noetl-system:noetl-operator"
    for verb in ("get", "list", "watch"):
        words = ("auth", "can-i", verb, "secrets", "--as", account)
        assert field.kubectl(*words, check=False).strip() == "no"
    assert field.kubectl("auth", "can-i", "create", "pods", "--as", account).strip() == "yes"


def test_a_worker_may_do_nothing_in_the_cluster(field: Field) -> None:
    account = f"system:serviceaccount:{field.namespace}:default"
    for what in ("secrets", "pods", "executions.noetl.io"):
        words = ("auth", "can-i", "get", what, "--as", account)
        assert field.kubectl(*words, check=False).strip() == "no"
