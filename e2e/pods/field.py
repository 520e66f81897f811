"""A namespace of the cluster for the tests of one module, and how it is asked about."""

from __future__ import annotations

import json
from typing import Any

from e2e.cluster import Cluster
from e2e.operator.stand import NeverCame, until

Object = dict[str, Any]

WAIT_S = 90.0
"""How long anything may take on a busy machine: images start cold."""


class Field:
    """Playbooks, Executions, Secrets and Pods of one namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace

    def up(self) -> None:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        metadata = {"name": self.namespace, "labels": labels}
        self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    def down(self) -> None:
        self.kubectl("delete", "executions,playbooks", "--all", "--wait=false")
        self.cluster.kubectl("delete", "namespace", self.namespace, "--wait=false")

    def kubectl(self, *args: str, check: bool = True) -> str:
        return self.cluster.kubectl("-n", self.namespace, *args, check=check).stdout

    def secret(self, name: str, **keys: str) -> None:
        metadata = {"name": name, "namespace": self.namespace}
        self.cluster.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": keys}
        )

    def run(self, name: str, *steps: Object, **sections: object) -> None:
        """An Execution of a Playbook of its own, both of this name."""
        self.playbook(name, *steps, **sections)
        self.execution(name, name)

    def playbook(self, name: str, *steps: Object, **sections: object) -> None:
        self._apply("Playbook", name, {"workflow": list(steps), **sections})

    def execution(self, name: str, playbook: str, **spec: object) -> None:
        self._apply("Execution", name, {"playbookRef": {"name": playbook}, **spec})

    def _apply(self, kind: str, name: str, spec: Object) -> None:
        metadata = {"name": name, "namespace": self.namespace}
        self.cluster.apply(
            {"apiVersion": "noetl.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
        )

    def status(self, name: str) -> Object:
        text = self.kubectl("get", "execution", name, "-o", "json", "--ignore-not-found")
        found: Object = json.loads(text).get("status") or {} if text.strip() else {}
        return found

    def ended(self, name: str, phase: str = "Succeeded") -> Object:
        """The status at the end, which must be this one."""

        def look() -> Object | None:
            status = self.status(name)
            over = status.get("phase") in ("Succeeded", "Failed", "Cancelled")
            return status if over else None

        try:
            status: Object = until(f"{name} has ended", look, WAIT_S)
        except NeverCame as never:
            raise NeverCame(f"{never}\n{self.story(name)}") from None
        assert status["phase"] == phase, self.story(name)
        return status

    def says(self, name: str, words: str) -> Object:
        """The status, once it holds these words."""

        def look() -> Object | None:
            status = self.status(name)
            return status if words in json.dumps(status, ensure_ascii=False) else None

        try:
            found: Object = until(f"{name} says {words!r}", look, WAIT_S)
        except NeverCame as never:
            raise NeverCame(f"{never}\n{self.story(name)}") from None
        return found

    def pods(self, labels: str = "") -> list[Object]:
        text = self.kubectl("get", "pods", "-l", labels, "-o", "json")
        found: list[Object] = json.loads(text)["items"]
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    def pods_of(self, execution: str) -> list[Object]:
        return self.pods(f"noetl.io/execution={execution}")

    def pod_of(self, execution: str) -> Object:
        """Its one Pod, once that runs."""

        def look() -> Object | None:
            found = [p for p in self.pods_of(execution) if p["status"].get("phase") == "Running"]
            return found[0] if found else None

        try:
            found: Object = until(f"a Pod of {execution} runs", look, WAIT_S)
        except NeverCame as never:
            raise NeverCame(f"{never}\n{self.story(execution)}") from None
        return found

    def no_pods(self, labels: str = "") -> None:
        until("all Pods are gone", lambda: not self.pods(labels), WAIT_S)

    def story(self, name: str) -> str:
        """Everything that may explain what became of an Execution."""
        words = [
            self.kubectl("describe", "execution", name, check=False)[-3000:],
            self.kubectl("get", "pods,jobs", "-o", "wide", check=False),
            self.cluster.kubectl(
                "logs", "-n", "noetl-system", "deployment/noetl-operator", "--tail=30", check=False
            ).stdout,
        ]
        return "\n".join(words)


def step(name: str, *tasks: Object, then: str | None = None, **keys: object) -> Object:
    made: Object = {"step": name, "tool": list(tasks) or [{"kind": "noop", "result": name}]}
    if then is not None:
        made["next"] = {"arcs": [{"step": then}]}
    return {**made, **keys}


def python(code: str, **args: object) -> Object:
    return {"kind": "python", "code": code, "args": args}


def gate(name: str, then: str | None = None) -> Object:
    """A step that waits until `ctx.open` is true."""
    rules = [
        {"when": "{{ ctx.open }}", "then": {"allow": True}},
        {"else": {"then": {"allow": False}}},
    ]
    admit = {"rules": rules, "on_deny": "wait"}
    return step(name, then=then, spec={"policy": {"admit": admit}})
