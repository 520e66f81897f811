"""Names and what they lead to: rules A2, A5, C1, C8, E4, G1, I5, K1."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noetl_core.problems import Problem

Expect = Callable[..., Problem]
Codes = Callable[[str], list[str]]

HEAD = "metadata: {name: x}\n"


def test_A5_an_arc_to_an_unknown_step_names_the_nearest(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - step: start
    next: {{arcs: [{{step: ‸rport}}]}}
  - step: report
    tool: {{kind: noop}}
"""
    problem = expect(text, "A5.unknown-step", "error", "workflow[0].next.arcs[0].step")
    assert problem.hint == "did you mean `report`?"


def test_A5_paths_of_a_resource_begin_with_spec(expect: Expect) -> None:
    text = """apiVersion: noetl.io/v1
kind: Playbook
metadata: {name: x}
spec:
  workflow:
    - step: start
      next: {arcs: [{step: ‸gone}]}
"""
    expect(text, "A5.unknown-step", "error", "spec.workflow[0].next.arcs[0].step")


def test_A5_two_steps_of_one_name(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    tool: {{kind: noop}}
  - step: ‸a
    tool: {{kind: noop}}
"""
    problem = expect(text, "A5.duplicate-step", "error", "workflow[1].step")
    assert "line 3" in problem.message


def test_A5_two_labels_of_one_name_in_a_pipeline(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    tool:
      - {{name: t, kind: noop}}
      - {{name: ‸t, kind: noop}}
  - step: b
    tool: [{{name: t, kind: noop}}]
"""
    expect(text, "A5.duplicate-label", "error", "workflow[0].tool[1].name")


def test_A5_a_label_that_meets_a_synthetic_one(codes: Codes) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    tool: [{{kind: noop}}, {{name: task_0, kind: noop}}]
"""
    assert codes(text) == ["A5.duplicate-label"]


@pytest.mark.parametrize("name", ["workload", "keychain", "ctx", "iter", "event", "_prev"])
def test_A5_scopes_are_no_labels(expect: Expect, name: str) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    tool: [{{name: ‸{name}, kind: noop}}]
"""
    expect(text, "A5.reserved-name", "error", "workflow[0].tool[0].name")


@pytest.mark.parametrize("name", ["args", "outcome", "_attempt", "execution_id", "index", "parent"])
def test_A5_scopes_and_keys_of_iter_are_no_iterators(expect: Expect, name: str) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    loop: {{in: [1], iterator: ‸{name}}}
    tool: {{kind: noop}}
"""
    expect(text, "A5.reserved-name", "error", "workflow[0].loop.iterator")


def test_E4_nested_loops_have_iterators_of_their_own(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    loop:
      in: [1]
      iterator: x
      loop: {{in: [2], iterator: ‸x}}
    tool: {{kind: noop}}
"""
    expect(text, "E4.duplicate-iterator", "error", "workflow[0].loop.loop.iterator")


@pytest.mark.parametrize(
    ("action", "code", "path"),
    [
        ("‸{do: jump}", "A5.jump-without-to", "then"),
        ("{do: jump, to: ‸stor}", "A5.jump-target", "then.to"),
        ("{do: jump, to: ‸other}", "A5.jump-target", "then.to"),
    ],
)
def test_A5_jump_needs_a_label_of_its_pipeline(
    expect: Expect, action: str, code: str, path: str
) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    tool:
      - name: t
        kind: noop
        spec:
          policy:
            rules:
              - else:
                  then: {action}
      - {{name: store, kind: noop}}
    next: {{arcs: [{{step: other}}]}}
  - step: other
    tool: [{{name: elsewhere, kind: noop}}]
"""
    rule = "workflow[0].tool[0].spec.policy.rules[0].else."
    problem = expect(text, code, "error", rule + path)
    assert problem.hint


def test_I5_a_policy_of_the_workbook_jumps_within_the_callers_pipeline(expect: Expect) -> None:
    text = f"""{HEAD}workbook:
  poll:
    kind: noop
    spec: {{policy: {{rules: [{{else: {{then: {{do: jump, to: again}}}}}}]}}}}
workflow:
  - step: good
    tool: [{{name: again, kind: noop}}, {{name: t, kind: workbook, task: poll}}]
    next: {{arcs: [{{step: bad}}]}}
  - step: bad
    tool: [{{name: t, kind: workbook, task: ‸poll}}]
"""
    expect(text, "A5.jump-target", "error", "workflow[1].tool[0].task")


@pytest.mark.parametrize(
    ("key", "code"),
    [("entry_step", "C1.unknown-entry-step"), ("final_step", "C8.unknown-final-step")],
)
def test_K3_the_executor_names_steps_of_the_workflow(expect: Expect, key: str, code: str) -> None:
    text = f"""{HEAD}executor: {{spec: {{{key}: ‸strat}}}}
workflow:
  - step: start
    tool: {{kind: noop}}
"""
    problem = expect(text, code, "error", f"executor.spec.{key}")
    assert problem.hint == "did you mean `start`?"


def test_I5_an_unknown_task_of_the_workbook(expect: Expect) -> None:
    text = f"""{HEAD}workbook:
  fetch: {{kind: noop}}
workflow:
  - step: a
    tool: {{kind: workbook, task: ‸fecth}}
"""
    expect(text, "I5.unknown-task", "error", "workflow[0].tool.task")


def test_I5_tasks_of_the_workbook_do_not_nest(expect: Expect) -> None:
    text = f"""{HEAD}workbook:
  - name: fetch
    kind: noop
  - name: again
    kind: ‸workbook
    task: fetch
workflow:
  - step: a
    tool: {{kind: workbook, task: again}}
"""
    expect(text, "I5.nested", "error", "workbook[1].kind")


def test_A4_keys_that_overlay_a_task_are_keys_of_its_kind(expect: Expect) -> None:
    text = f"""{HEAD}workbook:
  fetch: {{kind: http, url: http://localhost}}
workflow:
  - step: a
    tool: {{kind: workbook, task: fetch, ‸heders: {{}}}}
"""
    problem = expect(text, "A4.unknown-key", "error", "workflow[0].tool.heders")
    assert problem.hint == "did you mean `headers`?"


def test_G1_two_keychain_entries_of_one_name(expect: Expect) -> None:
    text = f"""{HEAD}keychain:
  - {{name: pg, kind: postgres_credential}}
  - {{name: ‸pg, kind: bearer}}
workflow: [{{step: a, tool: {{kind: noop}}}}]
"""
    expect(text, "G1.duplicate-entry", "error", "keychain[1].name")


def test_G1_an_entry_whose_name_is_no_name_of_a_secret(expect: Expect, codes: Codes) -> None:
    text = f"""{HEAD}keychain:
  - {{name: ‸MY_TOKEN, kind: bearer}}
workflow: [{{step: a, tool: {{kind: noop}}}}]
"""
    expect(text, "G1.secret-name", "warning", "keychain[0].name")
    named = text.replace("‸", "").replace("kind: bearer", "kind: bearer, secretRef: {name: t}")
    assert codes(named) == []


@pytest.mark.parametrize("source", ["‸a b", "‸Bad/key", "‸x/"])
def test_G1_a_map_names_a_key_or_a_secret_and_its_key(expect: Expect, source: str) -> None:
    text = f"""{HEAD}keychain:
  - {{name: t, kind: bearer, map: {{token: {source}}}}}
workflow: [{{step: a, tool: {{kind: noop}}}}]
"""
    expect(text, "G1.map", "error", "keychain[0].map.token")


def test_A2_a_step_with_neither_tool_nor_next(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - ‸step: a
    desc: nothing to do
"""
    expect(text, "A2.empty-step", "error", "workflow[0]")


def test_A2_a_misspelt_tool_is_one_problem(codes: Codes) -> None:
    assert codes(f"{HEAD}workflow: [{{step: a, tol: {{kind: noop}}}}]") == ["A4.unknown-key"]


def test_A2_a_loop_without_a_tool(expect: Expect) -> None:
    text = f"""{HEAD}workflow:
  - step: a
    loop: ‸{{in: [1], iterator: x}}
    next: {{arcs: [{{step: b}}]}}
  - step: b
    tool: {{kind: noop}}
"""
    expect(text, "A2.loop-without-tool", "warning", "workflow[0].loop")


@pytest.mark.parametrize(
    ("code", "path", "final", "arc"),
    [
        ("C8.final-step-arc", "workflow[0].next.arcs[0].step", "", "{step: ‸end}"),
        ("C8.final-step-next", "workflow[1].next", "next: ‸{arcs: []}", ""),
        ("C8.final-step-join", "workflow[1].spec.join", "spec: {join: ‸all}", ""),
        (
            "C8.final-step-admit",
            "workflow[1].spec.policy.admit",
            "spec: {policy: {admit: ‸{rules: [{else: {then: {allow: true}}}]}}}",
            "",
        ),
    ],
)
def test_C8_the_final_step_stands_outside_the_net(
    expect: Expect, code: str, path: str, final: str, arc: str
) -> None:
    text = f"""{HEAD}executor: {{spec: {{final_step: end}}}}
workflow:
  - step: a
    tool: {{kind: noop}}
    next: {{arcs: [{arc}]}}
  - step: end
    tool: {{kind: noop}}
    {final}
"""
    expect(text, code, "error", path)


@pytest.mark.parametrize("entry", ["entry_step: a, ", ""])
def test_C8_the_entry_step_as_final_step_runs_twice(expect: Expect, entry: str) -> None:
    text = f"""{HEAD}executor: {{spec: {{{entry}final_step: ‸a}}}}
workflow: [{{step: a, tool: {{kind: noop}}}}]
"""
    expect(text, "C8.final-step-entry", "warning", "executor.spec.final_step")


def test_C8_a_final_step_may_loop_and_needs_no_arc(codes: Codes) -> None:
    text = f"""{HEAD}executor: {{spec: {{final_step: end}}}}
workflow:
  - {{step: a, tool: {{kind: noop}}}}
  - {{step: end, loop: {{in: [1], iterator: x}}, tool: {{kind: noop}}}}
"""
    assert codes(text) == []
