"""Rules A5, K4, K5: what is refused by name, with the canonical replacement written out for the
file."""

from __future__ import annotations

import re

import pytest
import yaml

from noetl_core.load import load
from noetl_core.problems import Severity

STEP_WORDS = {
    "vars": (
        "{a: '{{ _prev.b }}'}",
        "A5.legacy-vars",
        'set_ctx:\n              a: "{{ outcome.result.b }}"',
    ),
    "when": (
        "'{{ ctx.x }}'",
        "A5.legacy-when",
        'when: "{{ ctx.x }}"\n          then:\n            allow: true',
    ),
    "case": ("[]", "A5.legacy-case", "step: s"),
    "retry": ("{max_attempts: 7}", "A5.legacy-retry", "do: retry\n          attempts: 7"),
    "sink": ("{tool: {kind: postgres, query: Q}}", "A5.legacy-sink", "command: Q"),
    "pipe": ("[{one: {tool: {kind: noop}}}]", "A5.legacy-pipe", "- name: one"),
    "catch": (
        "{cond: [{when: '{{ _err.retryable }}', do: retry}]}",
        "A5.legacy-catch",
        "outcome.error.retryable",
    ),
    "finally": ("[{next: [{step: end}]}]", "A5.legacy-finally", "arcs:\n    - step: end"),
    "args": ("{a: 1}", "A5.legacy-args", "args:\n        a: 1"),
    "set_ctx": ("{a: 1}", "A5.legacy-set-ctx", "set_ctx:\n              a: 1"),
    "result": ("'{{ _prev }}'", "A5.legacy-result", 'kind: noop\n    result: "{{ _prev }}"'),
    "eval": ("[{expr: '{{ x }}', do: retry}]", "A5.legacy-eval", 'when: "{{ x }}"'),
    "expr": ("ctx.a", "A5.legacy-expr", 'when: "{{ ctx.a }}"'),
    "next_mode": ("inclusive", "A5.legacy-next-mode", "mode: inclusive"),
    "input": ("{a: 1}", "A5.post-v10-input", "args:\n        a: 1"),
    "output": ("{a: 1}", "A5.post-v10-output", "set_ctx:\n              a: 1"),
    "set": (
        "{ctx.a: 1, iter.b: 2}",
        "A5.post-v10-set",
        "set_iter:\n      b: 2\n    set_ctx:\n      a: 1",
    ),
    "choose": ("[]", "K5.choose", "do: jump"),
    "while": ("{}", "K5.while", "do: jump"),
    "until": ("{}", "K5.until", "do: jump"),
    "do": ("retry", "A5.misplaced-control", "rules:"),
}


@pytest.mark.parametrize("word", STEP_WORDS)
def test_A5_words_of_a_step_get_their_replacement(of_step, problem, word: str) -> None:
    value, code, replacement = STEP_WORDS[word]
    found = problem(of_step(f"tool: {{kind: noop}}\n{word}: {value}"), code)
    assert (found.path, found.line, found.column) == (f"workflow[0].{word}", 5, 3)
    assert found.severity is Severity.ERROR
    assert f"`{word}`" in found.message
    assert replacement in found.hint


def test_A5_root_vars_become_workload(one, problem) -> None:
    text = "metadata: {name: p}\nvars: {a: 1}\nworkflow: [{step: s, tool: {kind: noop}}]\n"
    found = problem(one(text), "A5.legacy-vars")
    assert (found.path, found.line) == ("vars", 2)
    assert "workload:\n    a: 1" in found.hint


@pytest.mark.parametrize(
    ("value", "arcs"),
    [
        ("end", [{"step": "end"}]),
        (
            "[{step: a, when: '{{ ctx.x }}'}, {step: b}]",
            [{"step": "a", "when": "{{ ctx.x }}"}, {"step": "b"}],
        ),
        ("[a, {step: b, args: {n: 1}}]", [{"step": "a"}, {"step": "b", "args": {"n": 1}}]),
    ],
)
def test_A5_next_as_a_list_or_text_gets_the_router(
    of_step, problem, value: str, arcs: object
) -> None:
    found = problem(of_step(f"tool: {{kind: noop}}\nnext: {value}"), "A5.next-shape")
    assert found.path == "workflow[0].next"
    assert yaml.safe_load(found.hint.split("\n", 1)[1])["next"]["arcs"] == arcs


def test_A5_next_mode_of_a_step_spec(of_step, problem) -> None:
    found = problem(
        of_step("spec: {next_mode: inclusive}\ntool: {kind: noop}"), "A5.legacy-next-mode"
    )
    assert found.path == "workflow[0].spec.next_mode"
    assert "mode: inclusive" in found.hint


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("spec: {policy: {retry: {attempts: 3}}}", "spec.policy.retry"),
        ("spec: {policy: {rules: []}}", "spec.policy.rules"),
        ("spec: {do: retry}", "spec.do"),
        (
            "spec: {policy: {admit: {rules: [{when: true, then: {allow: true, do: fail}}]}}}",
            "spec.policy.admit.rules[0].then.do",
        ),
        ("loop: {in: [1], iterator: i, spec: {policy: {jump: x}}}", "loop.spec.policy.jump"),
        ("next: {spec: {policy: {do: fail}}, arcs: []}", "next.spec.policy.do"),
        ("next: {arcs: [{step: s, do: jump}]}", "next.arcs[0].do"),
    ],
)
def test_A5_control_actions_stand_in_task_policies_only(
    of_step, problem, body: str, path: str
) -> None:
    found = problem(of_step(f"tool: {{kind: noop}}\n{body}"), "A5.misplaced-control")
    assert found.path == f"workflow[0].{path}"
    assert "rules:" in found.hint


@pytest.mark.parametrize(
    ("policy", "code", "path"),
    [
        ("[{when: true, then: {do: fail}}]", "A5.policy-shape", ""),
        ("retry", "A5.policy-shape", ""),
        ("{mode: exclusive}", "A5.policy-shape", ".rules"),
        ("{rules: {}}", "A5.policy-shape", ".rules"),
        ("{rules: [{then: {do: fail}}]}", "A5.rule-without-when", ".rules[0]"),
        ("{rules: [{when: true}]}", "A5.rule-without-then", ".rules[0]"),
        ("{rules: [{else: {do: fail}}]}", "A5.else-without-then", ".rules[0].else"),
        ("{rules: [{else: }]}", "A5.else-without-then", ".rules[0].else"),
        (
            "{rules: [{else: {then: {do: fail}}}, {when: true, then: {do: fail}}]}",
            "A5.rule-after-else",
            ".rules[1]",
        ),
        (
            "{rules: [{else: {then: {do: fail}}}, {else: {then: {do: fail}}}]}",
            "A5.rule-after-else",
            ".rules[1]",
        ),
        ("{rules: [{when: true, else: {then: {do: fail}}}]}", "A5.rule-when-and-else", ".rules[0]"),
        ("{rules: [{when: true, then: {}}]}", "A5.then-without-do", ".rules[0].then.do"),
        ("{rules: [{when: true, then: retry}]}", "A5.then-without-do", ".rules[0].then"),
        ("{rules: [{when: true, then: {do: skip}}]}", "A5.unknown-do", ".rules[0].then.do"),
        ("{rules: [{when: true, do: retry}]}", "A5.rule-shape", ".rules[0].do"),
        ("{rules: [{expr: x, then: {do: fail}}]}", "A5.legacy-expr", ".rules[0].expr"),
        (
            "{rules: [{when: true, then: {do: fail, set: {a: 1}}}]}",
            "A5.post-v10-set",
            ".rules[0].then.set",
        ),
        ("{rules: [{when: ctx.x, then: {do: fail}}]}", "K7.when", ".rules[0].when"),
        ("{rules: [{when: 5, then: {do: fail}}]}", "K7.when", ".rules[0].when"),
        ("{rules: [{when: , then: {do: fail}}]}", "K7.when", ".rules[0].when"),
        ("{rules: [], after: [x]}", "K5.hook", ".after"),
    ],
)
def test_A5_shapes_of_a_task_policy(of_step, problem, policy: str, code: str, path: str) -> None:
    loaded = of_step(f"tool: {{kind: noop, spec: {{policy: {policy}}}}}")
    found = problem(loaded, code)
    assert found.path == f"workflow[0].tool.spec.policy{path}"
    assert [p.code for p in loaded.problems] == [code]


@pytest.mark.parametrize(
    ("loop", "codes"),
    [
        ("{iterator: i}", ["A5.loop-without-in"]),
        ("{in: []}", ["A5.loop-without-iterator"]),
        ("{in: 5, iterator: i}", ["E1.loop-in"]),
        ("{in: workload.items, iterator: i}", ["E1.loop-in"]),
        ("{in: 'a {{ b }}', iterator: i}", ["E1.loop-in"]),
        ("{in: {a: 1}, iterator: i}", ["E1.loop-in"]),
    ],
)
def test_A5_E1_loops_need_a_list_and_an_iterator(of_step, loop: str, codes: list[str]) -> None:
    loaded = of_step(f"tool: {{kind: noop}}\nloop: {loop}")
    assert [p.code for p in loaded.problems] == codes


@pytest.mark.parametrize(
    ("kind", "keys", "word"),
    [
        ("python", "code: x", "args"),
        ("http", "url: x", "params"),
        ("postgres", "auth: a, command: x", "params"),
        ("playbook", "playbook: x", "workload"),
    ],
)
def test_A5_input_of_a_task_names_the_word_of_its_kind(of_step, problem, kind, keys, word) -> None:
    loaded = of_step(f"tool: {{kind: {kind}, {keys}, input: {{a: 1}}}}")
    assert f"{word}:\n    a: 1" in problem(loaded, "A5.post-v10-input").hint


def test_K4_post_v10_words_are_free_in_data(of_step) -> None:
    body = "tool: {kind: python, code: x, args: {input: 1, output: 2, set: {vars: 3}, when: 4}}"
    assert of_step(body).problems == []


def test_K5_placeholders_are_accepted(of_step) -> None:
    silent = of_step(
        "spec: {policy: {admit: {mode: exclusive, rules: []}}}\n"
        "tool: {kind: noop, spec: {policy: {mode: exclusive, before: [], after: [],"
        " finally: [], rules: []}}}\n"
        "next: {spec: {policy: {}}, arcs: []}"
    )
    assert silent.problems == []
    warned = of_step(
        "spec: {policy: {emit: {}, tracing: {}, quotas: {}, compensation: {}}}\n"
        "tool: {kind: noop}\n"
        "loop: {in: [], iterator: i,"
        " spec: {policy: {ordering: a, backpressure: b, partitioning: c}}}\n"
        "next: {spec: {policy: {priority: 1}}, arcs: []}"
    )
    assert {(p.code, p.severity) for p in warned.problems} == {("K5.no-effect", Severity.WARNING)}
    assert len(warned.problems) == 8


def test_A5_wins_over_A4_everywhere(of_step) -> None:
    loaded = of_step("tool: {kind: noop, spec: {eval: []}}\nloop: {in: [], iterator: i, set: {}}")
    assert [p.code for p in loaded.problems] == ["A5.legacy-eval", "A5.post-v10-set"]


@pytest.mark.parametrize(
    ("kind", "near"),
    [("htpp", "http"), ("shell", "python"), ("sql", "postgres"), ("postgress", "postgres")],
)
def test_A5_an_unknown_kind_names_the_nearest(of_step, problem, kind: str, near: str) -> None:
    found = problem(of_step(f"tool: {{kind: {kind}}}"), "A5.unknown-kind")
    assert found.hint == f"did you mean `{near}`?"


def test_A5_a_case_block_is_mapped_to_a_step_that_loads() -> None:
    text = """\
metadata: {name: p}
workflow:
- step: page
  case:
  - when: "{{ event.name == 'step.enter' }}"
    then:
      pipe:
      - fetch: {tool: {kind: http, url: "{{ vars.url }}"}}
      - store: {tool: {kind: postgres, credential: db, query: "INSERT {{ _prev }}"}}
      catch:
        cond:
        - when: "{{ _task == 'fetch' and _err.retryable }}"
          do: retry
          attempts: 5
          backoff: linear
        - {when: "{{ _task == 'store' and _err.kind == 'db_deadlock' }}", do: retry, from: fetch}
        - else: {do: fail}
      finally:
      - next: [{step: done}]
      - vars: {count: "{{ _prev.count }}"}
"""
    (loaded,) = load(text)
    hint = next(p.hint for p in loaded.problems if p.code == "A5.legacy-case")
    (step,) = yaml.safe_load(hint.split("\n", 1)[1])
    rewritten = {
        "metadata": {"name": "p"},
        "workflow": [step, {"step": "done", "tool": {"kind": "noop"}}],
    }
    (again,) = load(yaml.safe_dump(rewritten))
    assert again.problems == []
    fetch, store = again.playbook.workflow[0].tool
    assert fetch.inputs == {"url": "{{ ctx.url }}"}
    assert store.inputs == {"auth": "db", "command": "INSERT {{ _prev }}"}
    retry = fetch.spec.policy.rules[0]
    assert retry.when == "{{ outcome.status == 'error' and outcome.error.retryable }}"
    assert (retry.then.do, retry.then.attempts, retry.then.backoff) == ("retry", 5, "linear")
    assert (store.spec.policy.rules[0].then.do, store.spec.policy.rules[0].then.to) == (
        "jump",
        "fetch",
    )
    assert store.spec.policy.rules[-1].then.set_ctx == {"count": "{{ outcome.result.count }}"}
    assert [arc.step for arc in again.playbook.workflow[0].arcs] == ["done"]
    told = {re.sub(r"^A5\.legacy-", "", p.code) for p in loaded.problems}
    assert told >= {"case", "pipe", "catch", "finally", "vars", "query", "credential", "from"}


def test_A5_errors_that_no_old_condition_matched_still_fail(of_step, problem) -> None:
    body = "catch: {cond: [{when: '{{ _err.retryable }}', do: retry}]}\ntool: {kind: noop}"
    hint = problem(of_step(body), "A5.legacy-catch").hint
    rules = yaml.safe_load(hint.split("\n", 1)[1])["spec"]["policy"]["rules"]
    assert rules[1] == {"when": "{{ outcome.status == 'error' }}", "then": {"do": "fail"}}
