"""What a step as a whole must be: something to do, one meaning per setting (A2, C3, C8, E2, E7)."""

from __future__ import annotations

from noetl_core.checks.report import Report, rule_path
from noetl_core.layers import loops_of, resolved_task
from noetl_core.model import Loop, LoopMode, OnDeny, Step
from noetl_core.problems import Path
from noetl_core.source import MappingNode, Node, ScalarNode, SequenceNode


def check(report: Report) -> None:
    for index, step in enumerate(report.playbook.workflow):
        path = ("workflow", index)
        _has_something_to_do(report, path, step)
        _admission(report, path, step)
        _loops(report, path, step)
        _parallel_writes(report, path, step)
    _final_step(report)


def _has_something_to_do(report: Report, path: Path, step: Step) -> None:
    node = report.place(path).node
    if step.tool or not isinstance(node, MappingNode):
        return
    written = {key for key, entry in node.entries.items() if not _is_nothing(entry.node)}
    if step.next is None and written <= Step.keys.keys() - {"tool", "next"}:
        message = f"step `{step.step}` has neither `tool` nor `next`"
        hint = "add `tool` for something to do, or `next` for a step that only routes"
        report.error("A2.empty-step", path, message, hint)
    elif step.loop is not None and "tool" not in written:
        message = f"step `{step.step}` has a loop but no `tool` to run in it"
        report.warning("A2.loop-without-tool", (*path, "loop"), message)


def _is_nothing(node: Node) -> bool:
    """`tool:` and `tool: []` say no more than no `tool` at all."""
    return (isinstance(node, ScalarNode) and node.value is None) or (
        isinstance(node, SequenceNode) and not node.items
    )


def _admission(report: Report, path: Path, step: Step) -> None:
    admit = step.spec.policy.admit
    if admit is None or admit.deadline_s is None or admit.on_deny is OnDeny.WAIT:
        return
    place = (*path, "spec", "policy", "admit", "deadline_s")
    message = "`deadline_s` has no effect: a token that is denied does not wait"
    report.warning("C3.no-effect", place, message, "add `on_deny: wait`")


def _loops(report: Report, path: Path, step: Step) -> None:
    for loop in loops_of(step):
        path = (*path, "loop")
        _one_meaning(report, (*path, "spec"), loop)


def _one_meaning(report: Report, path: Path, loop: Loop) -> None:
    """Rule K5: `loop.spec.policy` may repeat what `loop.spec` says, not contradict it."""
    spec, policy = loop.spec, loop.spec.policy
    for code, key, outer, inner in (
        ("E2.two-modes", "mode", spec.mode, policy.mode),
        ("E2.two-limits", "max_in_flight", spec.max_in_flight, policy.max_in_flight),
    ):
        if outer is not None and inner is not None and outer != inner:
            message = f"`{key}` is `{outer}` under `loop.spec` and `{inner}` here"
            hint = f"keep `loop.spec.{key}` only"
            report.error(code, (*path, "policy", key), message, hint)


def _parallel_writes(report: Report, path: Path, step: Step) -> None:
    """Rules A6, E7: parallel iterations that write one key of `ctx` need a reducer."""
    loops = list(loops_of(step))
    if not any(loop.mode is LoopMode.PARALLEL for loop in loops):
        return
    reduced = {key for loop in loops for key in loop.spec.policy.reducers}
    for position, task in enumerate(step.tool):
        policy = resolved_task(report.playbook, task).spec.policy
        for index, rule in enumerate(policy.rules if policy else ()):
            place = rule_path((*path, "tool", position, "spec", "policy"), index, rule)
            for key in rule.then.set_ctx:
                if key not in reduced:
                    _unreduced(report, (*place, "set_ctx", key), key, reduced)


def _unreduced(report: Report, path: Path, key: str, reduced: set[str]) -> None:
    message = (
        f"parallel iterations write `ctx.{key}`: a second, different value fails its iteration"
    )
    close = report.nearest(key, reduced)
    hint = f"loop.spec.policy.reducers: {{{key}: append}} (or sum, min, max, count, merge, last)"
    if close:
        hint = f"the loop has a reducer for `{close}`; did you mean that?"
    report.warning("A6.set-ctx-parallel", path, message, hint)


def _final_step(report: Report) -> None:
    """Rules C8, K14, K41: it runs outside the net, once, whatever happened."""
    name = report.playbook.executor.spec.final_step
    if not name:
        return
    for index, step in enumerate(report.playbook.workflow):
        path = ("workflow", index)
        for position, arc in enumerate(step.arcs):
            if arc.step == name:
                place = (*path, "next", "arcs", position, "step")
                message = f"`{name}` is the final step and can't be the target of an arc"
                hint = "it runs by itself when the workflow has ended"
                report.error("C8.final-step-arc", place, message, hint)
        if step.step == name:
            _final_step_itself(report, path, step)
    steps = report.playbook.workflow
    if steps and name == report.playbook.entry_step:
        message = f"`{name}` is the entry step and the final step at once: it runs twice"
        report.warning("C8.final-step-entry", ("executor", "spec", "final_step"), message)


def _final_step_itself(report: Report, path: Path, step: Step) -> None:
    if step.spec.policy.admit is not None:
        place = (*path, "spec", "policy", "admit")
        message = "the final step takes no admission: it always runs"
        report.error("C8.final-step-admit", place, message, "remove `admit`")
    if step.next is not None:
        message = "the final step has no `next`: nothing comes after it"
        report.error("C8.final-step-next", (*path, "next"), message, "remove `next`")
    if step.spec.join is not None:
        place = (*path, "spec", "join")
        message = "the final step can't be a join: no arc leads to it"
        report.error("C8.final-step-join", place, message, "remove `join`")
