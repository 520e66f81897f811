"""How tokens go through the net: rules A6, C2, C4, C5, C9."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noetl_core.problems import Problem

Expect = Callable[..., Problem]
Codes = Callable[[str], list[str]]

HEAD = "metadata: {name: x}\n"
DONE = "\"{{ event.name == 'step.done' }}\""
FAILED = "\"{{ event.name == 'step.failed' }}\""
LOOP = "    loop: {in: [1], iterator: x}\n"


def step(name: str, *arcs: str, mode: str = "exclusive", more: str = "", tool: bool = True) -> str:
    """A step; an arc is the name of a step, or that and its guard: `b when {{ … }}`."""
    written = []
    for arc in arcs:
        target, _, when = arc.partition(" when ")
        guard = f", when: {when}" if when else ""
        written.append(f"        - {{step: {target}{guard}}}\n")
    text = f"  - step: {name}\n{more}" + ("    tool: {kind: noop}\n" if tool else "")
    if written:
        text += f"    next:\n      spec: {{mode: {mode}}}\n      arcs:\n" + "".join(written)
    return text


def flow(*steps: str, head: str = "") -> str:
    return HEAD + head + "workflow:\n" + "".join(steps)


def join(name: str, *arcs: str, how: str = "all") -> str:
    return step(name, *arcs, more=f"    spec: {{join: {how}}}\n")


def test_A6_a_step_that_no_arc_leads_to(expect: Expect) -> None:
    text = flow(step("a"), step("‸b"))
    expect(text, "A6.unreachable", "warning", "workflow[1].step")


def test_A6_a_step_that_only_unreachable_steps_lead_to(codes: Codes) -> None:
    assert codes(flow(step("a"), step("b", "c"), step("c", "b"))).count("A6.unreachable") == 2


def test_A6_the_entry_step_is_where_reaching_begins(expect: Expect) -> None:
    text = flow(step("‸a", "b"), step("b"), head="executor: {spec: {entry_step: b}}\n")
    expect(text, "A6.unreachable", "warning", "workflow[0].step")


def test_A6_a_step_behind_an_arc_that_never_fires(expect: Expect) -> None:
    text = flow(step("a", "b when false"), step("‸b"))
    problem = expect(text, "A6.unreachable", "warning", "workflow[1].step")
    assert "from a" in (problem.hint or "")


def test_A6_a_misspelt_arc_makes_its_step_no_stranger(codes: Codes) -> None:
    assert codes(flow(step("a", "reprot"), step("report"))) == ["A5.unknown-step"]


def test_A6_a_legacy_router_makes_its_steps_no_strangers(codes: Codes) -> None:
    text = flow("  - step: a\n    tool: {kind: noop}\n    next: [{step: b}]\n", step("b"))
    assert codes(text) == ["A5.next-shape"]


@pytest.mark.parametrize("guard", ["", f" when {DONE}", " when true"])
def test_A6_no_end_is_reachable_from_a_circle(codes: Codes, guard: str) -> None:
    text = flow(step("a", "b"), step("b", f"c{guard}"), step("c", "b"))
    assert codes(text) == ["A6.no-end"] * 3


def test_A6_the_circle_is_shown(expect: Expect) -> None:
    text = flow(step("a", 'b when "{{ ctx.x }}"'), step("‸b", "b"))
    problem = expect(text, "A6.no-end", "warning", "workflow[1].step")
    assert "b → b" in problem.message


MAY_DENY = """    spec:
      policy:
        admit: {rules: [{when: "{{ ctx.x }}", then: {allow: true}}]}
"""


@pytest.mark.parametrize(
    "way_out",
    [
        step("b", 'a when "{{ ctx.more }}"'),
        step("b", 'end when "{{ ctx.enough }}"', "a"),
        step("b", f"end when {FAILED}", "a"),
        step(
            "b",
            "a",
            more=MAY_DENY,
        ),
    ],
)
def test_C10_cycles_with_a_way_out_are_legal(codes: Codes, way_out: str) -> None:
    found = codes(flow(step("a", "b", "end when true"), way_out, step("end")))
    assert "A6.no-end" not in found


def test_A6_a_join_behind_an_exclusive_choice_never_fills(expect: Expect) -> None:
    text = flow(
        step("route", 'a when "{{ ctx.x }}"', "b"),
        step("a", "j"),
        step("b", "j"),
        join("j", how="‸all"),
    )
    problem = expect(text, "A6.join-never-fills", "error", "workflow[3].spec.join")
    assert "route → a → j or route → b → j" in problem.message
    assert "inclusive" in (problem.hint or "")


def test_A6_two_arcs_of_one_exclusive_step_never_fill_a_join(expect: Expect) -> None:
    text = flow(step("a", 'j when "{{ ctx.x }}"', "j"), join("j", how="‸{at_end: fail}"))
    expect(text, "A6.join-never-fills", "error", "workflow[1].spec.join")


def test_A6_success_and_failure_of_one_step_never_fill_a_join(expect: Expect) -> None:
    text = flow(
        step("a", f"j when {DONE}", f"j when {FAILED}", mode="inclusive"), join("j", how="‸all")
    )
    expect(text, "A6.join-never-fills", "error", "workflow[1].spec.join")


@pytest.mark.parametrize("at_end", ["fire", "drop"])
def test_A6_a_join_that_says_what_to_do_gets_a_warning(expect: Expect, at_end: str) -> None:
    text = flow(
        step("route", 'a when "{{ ctx.x }}"', "b"),
        step("a", "j"),
        step("b", "j"),
        join("j", how=f"‸{{at_end: {at_end}}}"),
    )
    expect(text, "A6.join-never-fills", "warning", "workflow[3].spec.join")


def test_A6_a_place_whose_source_is_never_reached(expect: Expect) -> None:
    text = flow(step("a", "j"), step("b", "j"), join("j", how="‸all"))
    problem = expect(text, "A6.join-never-fills", "error", "workflow[2].spec.join")
    assert "`b` is never reached" in problem.message


def test_A6_a_place_whose_arc_never_fires(expect: Expect) -> None:
    text = flow(
        step("s", "a", "b", mode="inclusive"),
        step("a", "j"),
        step("b", "j when \"{{ event.name == 'loop.done' }}\""),
        join("j", how="‸all"),
    )
    problem = expect(text, "A6.join-never-fills", "error", "workflow[3].spec.join")
    assert "b → j never fires" in problem.message


def test_C9_a_fan_out_fills_a_join(codes: Codes) -> None:
    text = flow(
        step("s", "a", "b", mode="inclusive", tool=False), step("a", "j"), step("b", "j"), join("j")
    )
    assert codes(text) == []


def test_C9_guards_that_depend_on_data_may_fill_a_join(codes: Codes) -> None:
    text = flow(
        step("s", 'a when "{{ ctx.x }}"', 'b when "{{ ctx.y }}"', mode="inclusive"),
        step("a", "j"),
        step("b", "j"),
        join("j"),
    )
    assert codes(text) == []


def test_C9_a_choice_inside_a_branch_fills_no_third_place(codes: Codes) -> None:
    text = flow(
        step("s", "a", "b", mode="inclusive"),
        step("a", 'c when "{{ ctx.x }}"', "d"),
        step("b", "j"),
        step("c", "j"),
        step("d", "j"),
        join("j"),
    )
    assert codes(text) == ["A6.join-never-fills"]


def test_A6_joins_inside_a_cycle_are_not_judged(codes: Codes) -> None:
    text = flow(step("a", 'j when "{{ ctx.x }}"', "j"), join("j", 'a when "{{ ctx.y }}"'))
    assert codes(text) == []


@pytest.mark.parametrize("first", [step("a", "j"), step("a")])
def test_A6_a_join_with_fewer_than_two_arcs(expect: Expect, first: str) -> None:
    text = flow(first, join("j", how="‸all"))
    expect(text, "A6.join-arcs", "warning", "workflow[1].spec.join")


def test_C4_an_arc_below_one_that_always_fires(expect: Expect) -> None:
    text = flow(step("a", "b", "c"), step("b"), step("c")).replace("- {step: c}", "- ‸{step: c}")
    problem = expect(text, "C4.arc-shadowed", "warning", "workflow[0].next.arcs[1]")
    assert "inclusive" in (problem.hint or "")


def test_C5_an_arc_without_when_leaves_failures_to_others(codes: Codes) -> None:
    assert codes(flow(step("a", "b", "c when true"), step("b"), step("c"))) == []


@pytest.mark.parametrize(
    ("first", "word"),
    [
        (step("a", "b when ‸\"{{ event.name == 'loop.done' }}\""), "no loop"),
        (step("a", f"b when ‸{DONE}", more=LOOP), "loop.done"),
        (step("a", f"b when ‸{FAILED}", tool=False), "only routes"),
        (step("a", 'b when ‸"{{ 1 > 2 }}"'), "always false"),
        (step("a", "b when ‸\"{{ event.step == 'other' }}\""), "always false"),
    ],
)
def test_C4_an_arc_whose_guard_never_holds(expect: Expect, first: str, word: str) -> None:
    problem = expect(
        flow(first, step("b")), "C4.arc-never", "warning", "workflow[0].next.arcs[0].when"
    )
    assert word in problem.message


@pytest.mark.parametrize(
    "first",
    [
        step("a", "b when \"{{ event.name == 'loop.done' }}\"", f"b when {FAILED}", more=LOOP),
        step("a", f"b when {DONE}", f"b when {FAILED}"),
        step("a", "b when \"{{ event.status == 'error' }}\""),
        step("a", 'b when "{{ event.loop.failed > 0 }}"', more=LOOP),
    ],
)
def test_C4_guards_on_events_that_can_happen(codes: Codes, first: str) -> None:
    assert codes(flow(first, step("b"))) == []


def test_C2_a_step_that_admits_no_token(expect: Expect, codes: Codes) -> None:
    text = flow(
        step(
            "a",
            "b",
            more="    spec: {policy: {admit: ‸{rules: [{else: {then: {allow: false}}}]}}}\n",
        ),
        step("b"),
    )
    expect(text, "C2.never-admits", "warning", "workflow[0].spec.policy.admit")
    assert "A6.unreachable" in codes(text)


def test_A4_a_file_with_many_mistakes_shows_them_all(codes: Codes) -> None:
    text = flow(
        step("a", "b when maybe", "nowhere"),
        "  - step: b\n    when: true\n    tool: {kind: htp, url: x}\n",
        step("c"),
        head="executor: {spec: {entry_step: a}}\nvars: {}\n",
    )
    found = set(codes(text))
    assert {"A5.legacy-vars", "K7.when", "A5.unknown-step", "A5.legacy-when"} <= found
    assert {"A5.unknown-kind", "A6.unreachable"} <= found
