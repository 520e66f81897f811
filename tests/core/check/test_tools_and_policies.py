"""What tools take, what policies do, how loops write: rules A5, A6, C3, D2, D3, E2, I1–I3, K34."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noetl_core.problems import Problem

Expect = Callable[..., Problem]
Codes = Callable[[str], list[str]]

HEAD = """metadata: {name: x}
keychain:
  - {name: pg, kind: postgres_credential}
  - {name: tok, kind: secret}
  - {name: bear, kind: bearer}
"""


def task(keys: str) -> str:
    return f"{HEAD}workflow:\n  - step: a\n    tool:\n      - {{name: t, {keys}}}\n"


def policy(kind: str, rules: str, more: str = "") -> str:
    tools = {
        "http": "kind: http, url: http://localhost",
        "python": "kind: python, code: result = 1",
        "noop": "kind: noop",
        "postgres": "kind: postgres, auth: pg, command: SELECT 1",
    }
    return f"""{HEAD}workflow:
  - step: a
    tool:
      - {{name: t, {tools[kind]}, spec: {{policy: {{{more}rules: {rules}}}}}}}
      - {{name: u, kind: noop}}
"""


@pytest.mark.parametrize(
    ("keys", "code", "severity", "path"),
    [
        ("kind: postgres, auth: ‸gp, command: SELECT 1", "A5.unknown-auth", "error", "auth"),
        ("kind: secrets, auth: ‸nobody", "A5.unknown-auth", "error", "auth"),
        ("kind: http, url: u, auth: ‸tok", "K34.auth-secret", "error", "auth"),
        ("kind: http, url: u, auth: ‸pg", "K34.auth-kind", "error", "auth"),
        ("kind: postgres, auth: ‸bear, command: SELECT 1", "I1.auth-kind", "error", "auth"),
        ("kind: postgres, auth: ‸tok, command: SELECT 1", "I1.auth-kind", "warning", "auth"),
        ("kind: duckdb, command: SELECT 1, attach: ‸gp", "I2.unknown-entry", "error", "attach"),
        (
            "kind: duckdb, command: SELECT 1, attach: [pg, ‸gp]",
            "I2.unknown-entry",
            "error",
            "attach[1]",
        ),
        ("kind: duckdb, command: SELECT 1, attach: ‸bear", "I2.auth-kind", "error", "attach"),
        ("kind: http, url: u, json: {}, ‸body: x", "K34.one-body", "error", "body"),
    ],
)
def test_A5_credentials_and_bodies_fit_their_tool(
    expect: Expect, keys: str, code: str, severity: str, path: str
) -> None:
    expect(task(keys), code, severity, f"workflow[0].tool[0].{path}")


def test_K34_the_hint_for_a_plain_secret_writes_the_header(expect: Expect) -> None:
    text = task("kind: http, url: u, auth: ‸tok")
    problem = expect(text, "K34.auth-secret", "error", "workflow[0].tool[0].auth")
    assert "headers:" in (problem.hint or "")
    assert "keychain.tok" in (problem.hint or "")


def test_K6_auth_may_be_a_template(codes: Codes) -> None:
    assert codes(task('kind: postgres, auth: "{{ ctx.db }}", command: SELECT 1')) == []


@pytest.mark.parametrize(("keys", "key"), [("", "command"), (", table: t", "rows")])
def test_I1_postgres_needs_something_to_run(expect: Expect, keys: str, key: str) -> None:
    text = task(f"kind: postgres, auth: pg{keys}").replace("- {name", "- ‸{name")
    text = text.replace("‸", "", text.count("‸") - 1)
    expect(text, "A1.missing", "error", f"workflow[0].tool[0].{key}")


def test_I1_postgres_runs_a_command_or_fills_a_table(codes: Codes) -> None:
    both = "kind: postgres, auth: pg, command: SELECT 1, table: t, rows: []"
    assert codes(task(both)) == ["I1.command-and-rows"]
    assert codes(task("kind: postgres, auth: pg, table: t, rows: []")) == []


def test_I3_code_that_is_not_python_is_shown_at_its_line(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    tool:
      - name: t
        kind: python
        code: |
          x = 1
          ‸def f(:
            return 1
"""
    expect(text, "I3.python-syntax", "warning", "workflow[0].tool[0].code")


@pytest.mark.parametrize("code", ["'(' * 5000", '"-" * 200000 + "1"', '"x" + chr(0)', '"[" * 90'])
def test_I3_hostile_code_harms_no_one(codes: Codes, code: str) -> None:
    written = {
        "'(' * 5000": "(" * 5000,
        '"-" * 200000 + "1"': "-" * 99_000 + "1",
        '"x" + chr(0)': "x\\0",
        '"[" * 90': "[" * 90,
    }[code]
    found = codes(task(f'kind: python, code: "{written}"'))
    assert set(found) <= {"I3.python-syntax", "A1.yaml"}


def test_A6_attempts_of_one_never_retry(expect: Expect) -> None:
    text = policy("http", "[{else: {then: {do: retry, attempts: ‸1}}}]")
    path = "workflow[0].tool[0].spec.policy.rules[0].else.then.attempts"
    expect(text, "A6.retry-never", "warning", path)


@pytest.mark.parametrize(
    ("kind", "when"),
    [
        ("http", "‸false"),
        ("http", '‸"{{ 1 == 2 }}"'),
        ("http", "‸\"{{ outcome.status == 'failed' }}\""),
        ("http", "‸\"{{ outcome.status == 'ok' and outcome.error.retryable }}\""),
        ("python", '‸"{{ outcome.http.status in [429, 503] }}"'),
        ("http", "‸\"{{ outcome.pg.code == '40001' }}\""),
        ("postgres", "‸\"{{ outcome.status == 'error' and outcome.py.exception_type == 'X' }}\""),
    ],
)
def test_A6_a_retry_whose_condition_never_holds(expect: Expect, kind: str, when: str) -> None:
    rules = f"[{{when: {when}, then: {{do: retry}}}}, {{else: {{then: {{do: fail}}}}}}]"
    path = "workflow[0].tool[0].spec.policy.rules[0].when"
    expect(policy(kind, rules), "A6.retry-never", "warning", path)


def test_K3_paths_follow_the_labelled_form_as_written(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    tool:
      - fetch:
          kind: python
          code: result = 1
          spec:
            policy:
              rules:
                - when: ‸"{{{{ outcome.http.status == 503 }}}}"
                  then: {{do: retry}}
                - else: {{then: {{do: fail}}}}
"""
    path = "workflow[0].tool[0].fetch.spec.policy.rules[0].when"
    expect(text, "A6.retry-never", "warning", path)


def test_A4_a_rule_that_is_no_rule_hides_nothing_else(codes: Codes) -> None:
    found = codes(policy("http", "[5, {when: false, then: {do: retry}}]"))
    assert found == ["A2.type"]


def test_A6_a_retry_below_a_rule_that_takes_every_error(expect: Expect) -> None:
    error = "\"{{ outcome.status == 'error' }}\""
    retry = "‸\"{{ outcome.status == 'error' and outcome.error.retryable }}\""
    rules = f"[{{when: {error}, then: {{do: fail}}}}, {{when: {retry}, then: {{do: retry}}}}]"
    path = "workflow[0].tool[0].spec.policy.rules[1].when"
    expect(policy("http", rules), "A6.retry-never", "warning", path)


@pytest.mark.parametrize(
    ("kind", "when"),
    [
        ("http", "{{ outcome.http.status == 429 }}"),
        ("python", "{{ outcome.http.status == 429 or outcome.error.retryable }}"),
        ("python", "{{ outcome.py.exception_type == 'Boom' }}"),
        ("noop", "{{ ctx.again }}"),
        ("http", "{{ outcome.status == 'ok' and outcome.result.data.pending }}"),
        ("python", "{{ outcome.http.status != 200 }}"),
    ],
)
def test_A6_a_retry_that_may_match(codes: Codes, kind: str, when: str) -> None:
    rules = f'[{{when: "{when}", then: {{do: retry}}}}, {{else: {{then: {{do: fail}}}}}}]'
    assert codes(policy(kind, rules)) == []


def test_A6_an_error_that_no_rule_matches_continues_silently(expect: Expect) -> None:
    rules = '‸[{when: "{{ outcome.http.status == 429 }}", then: {do: retry}}]'
    path = "workflow[0].tool[0].spec.policy.rules"
    expect(policy("http", rules), "A6.silent-error", "warning", path)


ERROR = "outcome.status == 'error'"


@pytest.mark.parametrize(
    ("kind", "whens", "more"),
    [
        ("http", ["true"], ""),
        ("http", [ERROR], ""),
        ("http", ["outcome.status != 'ok'"], ""),
        ("http", ["outcome.error"], ""),
        (
            "http",
            [f"{ERROR} and outcome.error.retryable", f"{ERROR} and not outcome.error.retryable"],
            "",
        ),
        (
            "http",
            ["outcome.error.kind == 'timeout'", f"{ERROR} and outcome.error.kind != 'timeout'"],
            "",
        ),
        ("http", ["outcome.http.status == 429"], "on_unmatched: fail, "),
        ("noop", ["iter.http_status == 404"], ""),
    ],
)
def test_A6_no_error_is_silent_where_every_one_is_matched(
    codes: Codes, kind: str, whens: list[str], more: str
) -> None:
    rules = ", ".join(f'{{when: "{{{{ {when} }}}}", then: {{do: fail}}}}' for when in whens)
    assert codes(policy(kind, f"[{rules}]", more)) == []


@pytest.mark.parametrize(
    ("then", "code", "key"),
    [
        ("do: fail, attempts: ‸3", "D2.no-effect", "attempts"),
        ("do: continue, backoff: ‸linear", "D2.no-effect", "backoff"),
        ("do: jump, to: u, delay: ‸3", "D2.no-effect", "delay"),
        ("do: retry, to: ‸u", "D3.no-effect", "to"),
        ("do: break, message: ‸done", "K20.no-effect", "message"),
    ],
)
def test_D2_settings_of_another_action(expect: Expect, then: str, code: str, key: str) -> None:
    text = policy("http", f"[{{else: {{then: {{{then}}}}}}}]")
    path = f"workflow[0].tool[0].spec.policy.rules[0].else.then.{key}"
    expect(text, code, "warning", path)


def loop(spec: str, then: str = "do: continue, set_ctx: {k: ‸1}") -> str:
    return f"""{HEAD}workflow:
  - step: a
    loop: {{in: [1], iterator: x, spec: {spec}}}
    tool: {{kind: noop, spec: {{policy: {{rules: [{{else: {{then: {{{then}}}}}}}]}}}}}}
"""


def test_A6_parallel_iterations_write_ctx_without_a_reducer(expect: Expect) -> None:
    path = "workflow[0].tool.spec.policy.rules[0].else.then.set_ctx.k"
    problem = expect(loop("{mode: parallel}"), "A6.set-ctx-parallel", "warning", path)
    assert "reducers: {k:" in (problem.hint or "")


@pytest.mark.parametrize(
    "spec", ["{mode: sequential}", "{mode: parallel, policy: {reducers: {k: sum}}}"]
)
def test_E7_a_sequential_loop_or_a_reducer_may_write_ctx(codes: Codes, spec: str) -> None:
    assert codes(loop(spec)) == []


@pytest.mark.parametrize(
    ("spec", "code", "key"),
    [
        ("{mode: parallel, policy: {mode: ‸sequential}}", "E2.two-modes", "mode"),
        ("{max_in_flight: 2, policy: {max_in_flight: ‸3}}", "E2.two-limits", "max_in_flight"),
    ],
)
def test_K5_a_loops_policy_does_not_contradict_its_spec(
    expect: Expect, spec: str, code: str, key: str
) -> None:
    text = loop(spec, "do: continue")
    expect(text, code, "error", f"workflow[0].loop.spec.policy.{key}")


def test_K5_a_loops_policy_may_repeat_its_spec(codes: Codes) -> None:
    spec = "{mode: parallel, max_in_flight: 2, policy: {mode: parallel, max_in_flight: 2}}"
    assert codes(loop(spec, "do: continue")) == []


def test_C3_a_deadline_needs_a_token_that_waits(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    spec: {{policy: {{admit: {{deadline_s: ‸5, rules: [{{when: true, then: {{allow: true}}}}]}}}}}}
    tool: {{kind: noop}}
"""
    expect(text, "C3.no-effect", "warning", "workflow[0].spec.policy.admit.deadline_s")
