"""Which names templates may read: rules B4, E4, G3, K4, K31, K32, K45."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noetl_core.problems import Problem

Expect = Callable[..., Problem]
Codes = Callable[[str], list[str]]

HEAD = """metadata: {name: x}
keychain:
  - {name: pg, kind: postgres_credential}
workload: {api_url: http://localhost, items: [1]}
"""
SECRET = '"{{ ‸keychain.pg.password }}"'


def noop(policy: str) -> str:
    return f"""{HEAD}workflow:
  - step: a
    tool:
      - name: t
        kind: noop
        spec: {{policy: {{rules: [{{else: {{then: {{do: continue, {policy}}}}}}}]}}}}
"""


def arc(keys: str) -> str:
    return f"""{HEAD}workflow:
  - step: a
    tool: [{{name: fetch, kind: noop}}]
    next: {{arcs: [{{step: b, {keys}}}]}}
  - step: b
    tool: {{kind: noop}}
"""


def python(args: str, before: str = "") -> str:
    return f"""{HEAD}workflow:
  - step: a
    tool:
      - {{name: first, kind: noop}}{before}
      - name: t
        kind: python
        args: {{x: {args}}}
        code: result = x
"""


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        (noop(f"set_ctx: {{k: {SECRET}}}"), "G3.keychain", "then.set_ctx.k"),
        (noop(f"set_iter: {{k: {SECRET}}}"), "G3.keychain", "then.set_iter.k"),
    ],
)
def test_G3_a_policy_writes_no_secret(expect: Expect, text: str, code: str, path: str) -> None:
    expect(text, code, "error", f"workflow[0].tool[0].spec.policy.rules[0].else.{path}")


def test_G3_an_arc_carries_no_secret(expect: Expect) -> None:
    path = "workflow[0].next.arcs[0].args.k"
    expect(arc(f"args: {{k: {SECRET}}}"), "G3.keychain", "error", path)


def test_K31_an_arc_judges_no_secret(expect: Expect) -> None:
    path = "workflow[0].next.arcs[0].when"
    expect(arc('when: "{{ ‸keychain.pg.user == 1 }}"'), "B4.keychain", "error", path)


def test_K45_a_policy_judges_no_secret(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    tool:
      - name: t
        kind: noop
        spec: {{policy: {{rules: [{{when: {SECRET}, then: {{do: fail}}}}]}}}}
"""
    path = "workflow[0].tool[0].spec.policy.rules[0].when"
    expect(text, "B4.keychain", "error", path)


def test_K31_admission_judges_no_secret(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    spec: {{policy: {{admit: {{rules: [{{when: {SECRET}, then: {{allow: true}}}}]}}}}}}
    tool: {{kind: noop}}
"""
    expect(text, "B4.keychain", "error", "workflow[0].spec.policy.admit.rules[0].when")


@pytest.mark.parametrize(
    ("loop", "key"),
    [
        (f"{{in: {SECRET}, iterator: x}}", "in"),
        (
            f"{{in: [1], iterator: x, spec: {{mode: parallel, max_in_flight: {SECRET}}}}}",
            "spec.max_in_flight",
        ),
    ],
)
def test_K45_a_loop_reads_no_secret(expect: Expect, loop: str, key: str) -> None:
    text = f"{HEAD}workflow:\n  - step: a\n    loop: {loop}\n    tool: {{kind: noop}}\n"
    expect(text, "B4.keychain", "error", f"workflow[0].loop.{key}")


def test_K45_a_child_gets_no_secret_as_workload(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    tool: {{kind: playbook, playbook: child, workload: {{k: {SECRET}}}}}
"""
    expect(text, "B4.keychain", "error", "workflow[0].tool.workload.k")


def test_K32_the_result_of_a_noop_holds_no_secret(expect: Expect) -> None:
    text = f"{HEAD}workflow:\n  - step: a\n    tool: {{kind: noop, result: {SECRET}}}\n"
    expect(text, "G3.keychain", "error", "workflow[0].tool.result")


def test_K32_nor_does_one_that_overlays_the_workbook(expect: Expect) -> None:
    text = f"""{HEAD}workbook: {{n: {{kind: noop}}}}
workflow:
  - step: a
    tool: {{kind: workbook, task: n, result: {SECRET}}}
"""
    expect(text, "G3.keychain", "error", "workflow[0].tool.result")


def test_G3_the_executions_result_holds_no_secret(expect: Expect) -> None:
    text = f"""{HEAD}executor: {{spec: {{result: {SECRET}}}}}
workflow: [{{step: a, tool: {{kind: noop}}}}]
"""
    expect(text, "G3.keychain", "error", "executor.spec.result")


def test_K45_tools_may_read_secrets(codes: Codes) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    tool:
      - name: t
        kind: http
        url: "http://{{{{ keychain.pg.host }}}}/"
        headers: {{Authorization: "{{{{ keychain.pg.password }}}}"}}
        json: {{k: "{{{{ keychain.pg.password }}}}"}}
        spec:
          policy:
            rules:
              - when: "{{{{ outcome.status == 'error' }}}}"
                then: {{do: retry, delay: "{{{{ keychain.pg.port | int }}}}"}}
              - else: {{then: {{do: continue}}}}
      - name: q
        kind: postgres
        auth: pg
        command: "SELECT {{{{ keychain.pg.user }}}}"
      - {{name: p, kind: python, args: {{k: "{{{{ keychain.pg.password }}}}"}}, code: result = k}}
"""
    assert codes(text) == []


def test_G1_a_template_reads_declared_entries_only(expect: Expect) -> None:
    text = python('"{{ ‸keychain.gp.password }}"')
    problem = expect(text, "G1.unknown-entry", "error", "workflow[0].tool[1].args.x")
    assert problem.hint == "did you mean `pg`?"


def test_B4_a_bare_name_reads_the_workload(expect: Expect) -> None:
    problem = expect(
        python('"api_url: {{ ‸api_url }}"'), "B4.bare-name", "warning", "workflow[0].tool[1].args.x"
    )
    assert problem.hint == "write `workload.api_url`"


def test_B4_a_bare_name_that_is_nowhere_names_the_nearest(expect: Expect) -> None:
    problem = expect(
        python('"{{ ‸api_ulr }}"'), "B4.bare-name", "warning", "workflow[0].tool[1].args.x"
    )
    assert problem.hint == "did you mean `api_url`?"


def test_B4_a_name_is_told_once_for_each_template(codes: Codes) -> None:
    assert codes(python('"{{ nope.a }} {{ nope.a }} {{ nope.b }}"')) == ["B4.bare-name"]


@pytest.mark.parametrize("name", ["input", "output"])
def test_K4_names_of_the_later_language(expect: Expect, name: str) -> None:
    text = python(f'"{{{{ ‸{name}.x }}}}"')
    expect(text, f"A5.post-v10-{name}", "warning", "workflow[0].tool[1].args.x")


@pytest.mark.parametrize(("name", "instead"), [("vars", "ctx"), ("_err", "outcome.error")])
def test_B4_names_of_the_older_language(expect: Expect, name: str, instead: str) -> None:
    text = python(f'"{{{{ ‸{name}.x }}}}"')
    problem = expect(text, "B4.bare-name", "warning", "workflow[0].tool[1].args.x")
    assert instead in (problem.hint or "")


def test_B4_an_earlier_task_is_read_by_its_label(codes: Codes) -> None:
    assert codes(python('"{{ first.data }}"')) == []


def test_B4_a_later_task_has_no_result_yet(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    tool:
      - {{name: t, kind: noop, result: "{{{{ ‸later.x }}}}"}}
      - {{name: later, kind: noop}}
"""
    expect(text, "B4.label", "warning", "workflow[0].tool[0].result")


def test_B4_a_later_task_may_have_run_where_the_pipeline_jumps_back(codes: Codes) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    tool:
      - {{name: t, kind: noop, result: "{{{{ later.x | default(0) }}}}"}}
      - name: later
        kind: noop
        spec:
          policy:
            rules:
              - {{when: "{{{{ ctx.more }}}}", then: {{do: jump, to: t}}}}
"""
    assert codes(text) == []


def test_B4_a_label_of_another_step_is_not_seen(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    tool: [{{name: fetch, kind: noop}}]
    next: {{arcs: [{{step: b}}]}}
  - step: b
    tool: {{kind: noop, result: "{{{{ ‸fetch.data }}}}"}}
"""
    problem = expect(text, "B4.label", "warning", "workflow[1].tool.result")
    assert "event.result" in (problem.hint or "")


def test_B4_an_arc_sees_no_labels(expect: Expect) -> None:
    path = "workflow[0].next.arcs[0].when"
    expect(arc('when: "{{ ‸fetch.ok }}"'), "B4.label", "warning", path)


@pytest.mark.parametrize("name", ["outcome", "event"])
def test_B4_outcome_and_event_are_not_visible_in_a_task(expect: Expect, name: str) -> None:
    text = python(f'"{{{{ ‸{name}.status }}}}"')
    expect(text, "B4.not-visible", "warning", "workflow[0].tool[1].args.x")


@pytest.mark.parametrize("name", ["iter", "_prev", "outcome"])
def test_B4_the_worker_is_not_visible_in_an_arc(expect: Expect, name: str) -> None:
    text = arc(f'args: {{x: "{{{{ ‸{name}.x }}}}"}}')
    expect(text, "B4.not-visible", "warning", "workflow[0].next.arcs[0].args.x")


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        (arc('when: "{{ ‸event.nmae == 1 }}"'), "C12.event-field", "workflow[0].next.arcs[0].when"),
        (
            arc('args: {k: "{{ ‸execution.idempotency_key }}"}'),
            "B4.execution-field",
            "workflow[0].next.arcs[0].args.k",
        ),
        (
            noop('set_ctx: {k: "{{ ‸outcome.reslt }}"}'),
            "D6.outcome-field",
            "workflow[0].tool[0].spec.policy.rules[0].else.then.set_ctx.k",
        ),
    ],
)
def test_B4_scopes_hold_what_the_language_says(
    expect: Expect, text: str, code: str, path: str
) -> None:
    expect(text, code, "warning", path)


def test_B4_the_worker_knows_the_idempotency_key(codes: Codes) -> None:
    assert codes(python('"{{ execution.idempotency_key }} {{ execution_id }}"')) == []


def test_B4_a_slip_in_a_key_of_the_workload(expect: Expect, codes: Codes) -> None:
    text = python('"{{ ‸workload.api_ulr }}"')
    expect(text, "B4.workload-key", "warning", "workflow[0].tool[1].args.x")
    assert codes(python('"{{ workload.brought_by_the_execution }}"')) == []


def nested(value: str) -> str:
    return f"""{HEAD}workflow:
  - step: a
    loop:
      in: "{{{{ workload.items }}}}"
      iterator: city
      loop: {{in: "{{{{ iter.city.hotels }}}}", iterator: hotel}}
    tool: {{kind: noop, result: {value}}}
"""


def test_E4_the_outer_iterator_is_read_through_parent(expect: Expect, codes: Codes) -> None:
    problem = expect(
        nested('"{{ ‸iter.city.name }}"'), "E4.iter-key", "warning", "workflow[0].tool.result"
    )
    assert problem.hint == "write `iter.parent.city`"
    assert codes(nested('"{{ iter.parent.city }} {{ iter.hotel }} {{ iter.parent.index }}"')) == []


def test_E4_parent_ends_at_the_outermost_loop(expect: Expect) -> None:
    text = nested('"{{ ‸iter.parent.parent.city }}"')
    expect(text, "E4.iter-parent", "warning", "workflow[0].tool.result")


def test_E4_parent_is_for_nested_loops(expect: Expect) -> None:
    text = python('"{{ ‸iter.parent.x }}"')
    expect(text, "E4.iter-parent", "warning", "workflow[0].tool[1].args.x")


def test_E4_a_slip_in_a_key_of_iter(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    loop: {{in: [1], iterator: endpoint}}
    tool: {{kind: noop, result: "{{{{ ‸iter.endpiont.path }}}}"}}
"""
    expect(text, "E4.iter-key", "warning", "workflow[0].tool.result")


def test_B4_tasks_of_the_workbook_may_read_labels_of_their_callers(codes: Codes) -> None:
    text = f"""{HEAD}workbook:
  show: {{kind: noop, result: "{{{{ fetch.data }}}}"}}
workflow:
  - step: a
    tool: [{{name: fetch, kind: noop}}, {{name: s, kind: workbook, task: show}}]
"""
    assert codes(text) == []
