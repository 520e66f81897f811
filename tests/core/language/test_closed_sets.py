"""Rules K3, K46, G1, G2: closed sets with the nearest word, each under the number of its rule."""

from __future__ import annotations

import pytest

from noetl_core.load import load
from noetl_core.model import KeychainKind

NOOP = "tool: {kind: noop}\n  "
SETS = [
    (NOOP + "next: {spec: {mode: exclusiv}, arcs: []}", "C4.mode", "exclusive"),
    (NOOP + "spec: {join: al}", "C9.join", "all"),
    (NOOP + "spec: {join: {at_end: fial}}", "C9.at-end", "fail"),
    (NOOP + "spec: {policy: {failure: {mode: best-effort}}}", "E5.failure-mode", "best_effort"),
    (NOOP + "spec: {policy: {admit: {rules: [], on_deny: wiat}}}", "C3.on-deny", "wait"),
    (NOOP + "spec: {executor: {kind: pood}}", "K3.executor-kind", "pool"),
    (NOOP + "loop: {in: [], iterator: i, spec: {mode: paralel}}", "E2.mode", "parallel"),
    (NOOP + "loop: {in: [], iterator: i, spec: {policy: {exec: locl}}}", "E3.exec", "local"),
    (
        NOOP + "loop: {in: [], iterator: i, spec: {policy: {reducers: {a: apend}}}}",
        "E7.reducer",
        "append",
    ),
    (
        "tool: {kind: noop, spec: {policy: {rules: [{else: {then: {do: brake}}}]}}}",
        "A5.unknown-do",
        "break",
    ),
    (
        "tool: {kind: noop, spec: {policy:"
        " {rules: [{else: {then: {do: retry, backoff: linaer}}}]}}}",
        "D2.backoff",
        "linear",
    ),
    (
        "tool: {kind: noop, spec: {policy: {rules: [], on_unmatched: fial}}}",
        "D1.on-unmatched",
        "fail",
    ),
    ("tool: {kind: duckdb, command: x, fetch: onne}", "I1.fetch", "one"),
]


@pytest.mark.parametrize(("body", "code", "near"), SETS)
def test_K3_a_word_outside_its_set_names_the_nearest(
    problem, body: str, code: str, near: str
) -> None:
    (loaded,) = load(f"metadata: {{name: p}}\nworkflow:\n- step: s\n  {body}\n")
    found = problem(loaded, code)
    assert found.hint == f"did you mean `{near}`?"
    assert len(loaded.problems) == 1


def keychain(entry: str):
    (loaded,) = load(
        f"metadata: {{name: p}}\nkeychain: [{entry}]\n"
        "workflow: [{step: s, tool: {kind: noop}}]\n"
    )
    return loaded


def test_G2_the_kinds_of_keychain_entries() -> None:
    for kind in KeychainKind:
        assert keychain(f"{{name: a, kind: {kind.value}}}").playbook.keychain[0].kind is kind
    old = keychain("{name: a, kind: secret_manager}").playbook
    assert old == keychain("{name: a, kind: secret}").playbook


def test_G1_the_secret_of_an_entry_is_its_name_unless_said() -> None:
    assert keychain("{name: pg_k8s, kind: secret}").playbook.keychain[0].secret_name == "pg-k8s"
    entry = keychain("{name: a, kind: secret, secretRef: {name: other}, map: {user: s/key}}")
    assert entry.playbook.keychain[0].secret_name == "other"
    assert entry.playbook.keychain[0].map == {"user": "s/key"}


@pytest.mark.parametrize(
    ("entry", "code", "path"),
    [
        ("{name: a, kind: postgres_credentials}", "G2.kind", "keychain[0].kind"),
        ("{name: a}", "A1.missing", "keychain[0].kind"),
        ("{kind: secret}", "A1.missing", "keychain[0].name"),
        (
            "{name: a, kind: secret, secretRef: {name: A_b}}",
            "G1.secret-name",
            "keychain[0].secretRef.name",
        ),
        (
            "{name: a, kind: secret, secretRef: {nam: a, name: a}}",
            "A4.unknown-key",
            "keychain[0].secretRef.nam",
        ),
        ("{name: a, kind: secret, namespace: b}", "A4.unknown-key", "keychain[0].namespace"),
        ("{name: a b, kind: secret}", "K1.name", "keychain[0].name"),
    ],
)
def test_G1_G2_wrong_entries(problem, entry: str, code: str, path: str) -> None:
    loaded = keychain(entry)
    assert problem(loaded, code).path == path
    assert len(loaded.problems) == 1


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ("timeout: 0", "timeout"),
        ("timeout: soon", "timeout"),
        ("timeout: {connect: -1}", "timeout.connect"),
        ("timeout: {conect: 1}", "timeout.conect"),
        ("retry_statuses: 500", "retry_statuses"),
        ("result: {inline_max_bytes: -1}", "result.inline_max_bytes"),
    ],
)
def test_D9_settings_of_a_task_are_checked(spec: str, path: str) -> None:
    text = (
        f"metadata: {{name: p}}\nworkflow: [{{step: s, tool: {{kind: noop, spec: {{{spec}}}}}}}]\n"
    )
    (loaded,) = load(text)
    assert [p.path for p in loaded.problems] == [f"workflow[0].tool.spec.{path}"]
