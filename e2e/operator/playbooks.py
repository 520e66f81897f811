"""Playbooks for the tests: small ones whose course the tests can steer by `ctx` patches."""

from __future__ import annotations

from e2e.operator.stand import Object, Stand


def step(name: str, *then: str, **keys: object) -> Object:
    made: Object = {"step": name, "tool": [{"kind": "noop", "result": {"step": name}}]}
    if then:
        made["next"] = {"arcs": [{"step": one} for one in then]}
    return {**made, **keys}


def gated(name: str, *then: str) -> Object:
    """A step that waits until `ctx.open` is true."""
    rules = [
        {"when": "{{ ctx.open }}", "then": {"allow": True}},
        {"else": {"then": {"allow": False}}},
    ]
    admit = {"rules": rules, "on_deny": "wait"}
    return step(name, *then, spec={"policy": {"admit": admit}})


def hello(stand: Stand) -> Object:
    return stand.playbook("hello", step("start", "two"), step("two"))


def gate(stand: Stand) -> Object:
    """`start`, then a gate, then `last`; at the end `clean`."""
    executor = {"spec": {"final_step": "clean"}}
    steps = (step("start", "gate"), gated("gate", "last"), step("last"), step("clean"))
    return stand.playbook("gate", *steps, executor=executor)


def failing(stand: Stand) -> Object:
    task = {"kind": "python", "code": "raise ValueError('no such customer')"}
    return stand.playbook("failing", step("start", "bad"), {"step": "bad", "tool": [task]})
