"""Words that are not part of v10, by the place where they stand, and what to write instead (rules
A5, K3–K5).

`reading` asks here before it calls a key unknown; the CRD schemas take their refusals from the same
tables. `rewrite` writes the replacement out for the file at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from noetl_core import rewrite
from noetl_core.nodes import Entry, MappingNode, Node, SequenceNode, first_values
from noetl_core.problems import Path
from noetl_core.values import Value

Rewriter = Callable[[Value, Value], str]
"""(the value under the word, the mapping that holds it) → the canonical text."""


@dataclass(frozen=True, slots=True)
class Word:
    """A refused word: its code, why it is refused, and how to write its replacement out."""

    code: str
    message: str
    rewriter: Rewriter


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused word as it stands in a file."""

    code: str
    message: str
    hint: str


CONTROL_WORDS = frozenset({"do", "retry", "jump", "break", "fail", "continue", "rules"})
"""Control of tasks, misplaced anywhere but in `task.spec.policy.rules`."""
RULE_WORDS = frozenset({"do", "attempts", "backoff", "delay", "to", "set_ctx", "set_iter", "allow"})
"""What stands under `then`, often written beside `when`."""
THEN_WORDS = frozenset(
    {"pipe", "next", "set", "allow", "retry", "jump", "break", "fail", "continue"}
)
"""Words under `then` that tell another mistake better than a missing `do`."""

TOOL_KINDS = {
    "shell": "python",
    "bash": "python",
    "rest": "http",
    "requests": "http",
    "sql": "postgres",
    "pg": "postgres",
    "postgresql": "postgres",
    "secret": "secrets",
    "workflow": "playbook",
    "sink": "postgres",
    "py": "python",
    "nop": "noop",
}


def _legacy(word: str, instead: str, rewriter: Rewriter) -> tuple[str, Word]:
    return word, Word(
        f"A5.legacy-{word.replace('_', '-')}", f"`{word}` is not part of v10: {instead}", rewriter
    )


def _later(word: str, instead: str, rewriter: Rewriter) -> tuple[str, Word]:
    message = f"`{word}` belongs to a later language than v10: {instead}"
    return word, Word(f"A5.post-v10-{word}", message, rewriter)


def _elsewhere(word: str, where: str, rewriter: Rewriter) -> tuple[str, Word]:
    """No old word, but one whose right place or name is known."""
    return word, Word("A4.unknown-key", f"unknown key `{word}`: {where}", rewriter)


def _sugar(word: str) -> tuple[str, Word]:
    message = f"`{word}` is authoring sugar that v10 only reserves"
    return word, Word(f"K5.{word}", message, lambda value, parent: rewrite.SUGAR)


def _control(word: str) -> tuple[str, Word]:
    message = f"`{word}` is a control action: it stands in `task.spec.policy.rules` only"
    return word, Word("A5.misplaced-control", message, rewrite.misplaced_control(word))


def _as_do(word: str) -> tuple[str, Word]:
    message = f"a rule writes `do: {word}`, not `{word}:`"
    return word, Word("A5.rule-shape", message, rewrite.written_as_do(word))


_STEP: Mapping[str, Word] = dict(
    (
        _legacy("case", "a step is admission, `tool` and `next`", rewrite.step_of),
        _legacy("pipe", "`tool` itself is the ordered pipeline", rewrite.pipe),
        _legacy("catch", "errors are handled by each task's policy rules", rewrite.catch),
        _legacy("finally", "what follows a step is its `next`", rewrite.finally_router),
        _legacy("vars", "state is `ctx`, written by a task's policy", rewrite.step_vars),
        _legacy("when", "a step's condition is its admission", rewrite.admission),
        _legacy("retry", "a task's policy retries it", rewrite.retry_policy),
        _legacy("sink", "storage is a task of the pipeline", rewrite.sink_task),
        _legacy("args", "`args` come with the token, from the arc", rewrite.arc_args),
        _legacy("set_ctx", "`ctx` is written by a task's policy", rewrite.set_by_policy),
        _legacy("set_iter", "`iter` is written by a task's policy", rewrite.set_by_policy),
        _legacy("result", "a step's result is its last task's", rewrite.step_result),
        _legacy("eval", "outcomes are judged by a task's policy", rewrite.eval_policy),
        _legacy("expr", "`when` is the only conditional", rewrite.expr_when),
        _legacy("next_mode", "the router has its mode", rewrite.next_mode),
        _later("input", "v10 says `args`", rewrite.arc_args),
        _later("output", "v10 keeps what a policy writes to `ctx`", rewrite.output_policy),
        _later("set", "v10 says `set_ctx` and `set_iter`, in a policy", rewrite.set_words),
        _sugar("choose"),
        _sugar("while"),
        _sugar("until"),
    )
)

_TASK: Mapping[str, Word] = dict(
    (
        _legacy("eval", "outcomes are judged by `spec.policy.rules`", rewrite.eval_policy),
        _legacy("expr", "`when` is the only conditional", rewrite.expr_when),
        _legacy("case", "a task is judged by `spec.policy.rules`", rewrite.eval_policy),
        _legacy("retry", "a policy rule retries", rewrite.retry_policy),
        _legacy("when", "a task runs when the pipeline comes to it", rewrite.skip_by_jump),
        _legacy("tool", "the tool's keys stand in the task itself", rewrite.flat_tool),
        _legacy("sink", "storage is a task of its own", rewrite.sink_task),
        _legacy("vars", "state is `ctx`, written by the policy", rewrite.step_vars),
        _legacy("set_ctx", "`ctx` is written by the policy", rewrite.set_by_policy),
        _legacy("set_iter", "`iter` is written by the policy", rewrite.set_by_policy),
        _legacy("credential", "v10 says `auth`", rewrite.renamed("credential", "auth")),
        _legacy("query", "v10 says `command`", rewrite.renamed("query", "command")),
        _legacy("output_select", "v10 says `spec.result`", rewrite.result_spec),
        _elsewhere("policy", "a policy stands under `spec`", rewrite.under_spec),
        _elsewhere("timeout", "settings stand under `spec`", rewrite.under_spec),
        _legacy("catch", "errors are handled by `spec.policy.rules`", rewrite.eval_policy),
        _later("input", "v10 says `args`", rewrite.task_input),
        _later("output", "v10 keeps what the policy writes to `ctx`", rewrite.output_policy),
        _later("set", "v10 says `set_ctx` and `set_iter`, in the policy", rewrite.set_words),
        _sugar("choose"),
        _sugar("while"),
        _sugar("until"),
    )
)

_CONTROLS = dict(_control(word) for word in sorted(CONTROL_WORDS))
_SETS = dict(
    (
        _later("set", "v10 says `set_ctx` and `set_iter`", rewrite.set_words),
        _later("input", "v10 says `args`", rewrite.renamed("input", "args")),
        _later("output", "v10 keeps what a policy writes to `ctx`", rewrite.output_policy),
    )
)

_RULES = {"rules": _CONTROLS["rules"]}

WORDS: Mapping[str, Mapping[str, Word]] = {
    "root": {
        **_STEP,
        **dict(
            (
                _legacy("vars", "inputs are `workload`, state is `ctx`", rewrite.root_vars),
                _legacy("result", "it stands in `executor.spec`", rewrite.root_result),
                _later("input", "v10 says `workload`", rewrite.root_vars),
                _later("output", "v10 says `executor.spec.result`", rewrite.root_result),
            )
        ),
    },
    "step": _STEP,
    "task": {**_TASK, **_RULES},
    "step.spec": dict(
        (
            _legacy("next_mode", "the router has its mode", rewrite.next_mode),
            _legacy("when", "a step's condition is its admission", rewrite.admission),
            _legacy("retry", "a task's policy retries it", rewrite.retry_policy),
            _elsewhere(
                "admit", "admission stands under `policy`", rewrite.under("policy", "admit")
            ),
            _elsewhere(
                "lifecycle", "it stands under `policy`", rewrite.under("policy", "lifecycle")
            ),
            _elsewhere("failure", "it stands under `policy`", rewrite.under("policy", "failure")),
        )
    ),
    "loop.spec": dict(
        (
            _elsewhere("exec", "it stands under `policy`", rewrite.under("policy", "exec")),
            _elsewhere("reducers", "it stands under `policy`", rewrite.under("policy", "reducers")),
        )
    ),
    "task.spec": _RULES
    | dict(
        (
            _legacy("retry", "a policy rule retries", rewrite.retry_policy),
            _legacy("eval", "outcomes are judged by `policy.rules`", rewrite.eval_policy),
        )
    ),
    "policy": _CONTROLS,
    "task.policy": {w: _CONTROLS[w] for w in sorted(CONTROL_WORDS - {"rules"})},
    "admit.then": _CONTROLS,
    "admit": {w: _CONTROLS[w] for w in sorted(CONTROL_WORDS - {"rules"})},
    "loop": dict(
        (
            _elsewhere("collection", "v10 says `in`", rewrite.renamed("collection", "in")),
            _elsewhere("items", "v10 says `in`", rewrite.renamed("items", "in")),
            _elsewhere("element", "v10 says `iterator`", rewrite.renamed("element", "iterator")),
            _elsewhere("mode", "the mode stands under `spec`", rewrite.under("spec", "mode")),
            _elsewhere(
                "max_in_flight", "it stands under `spec`", rewrite.under("spec", "max_in_flight")
            ),
        )
    ),
    "rule": dict(
        (
            _legacy("expr", "`when` is the only conditional", rewrite.expr_when),
            _later("set", "v10 says `set_ctx` and `set_iter`, under `then`", rewrite.set_words),
        )
    ),
    "then": {**_SETS, **dict(_as_do(w) for w in sorted(CONTROL_WORDS - {"do", "rules"}))}
    | dict(
        (
            _legacy("set_prev", "a `noop` task with `result:` sets `_prev`", rewrite.set_prev),
            _legacy("from", "`do: jump` with `to` goes back", rewrite.retry_from),
        )
    ),
    "next": dict(
        (
            _elsewhere("mode", "the mode stands under `spec`", rewrite.under("spec", "mode")),
            ("step", Word("A5.next-shape", "`next` is a router with `arcs`", rewrite.lone_arc)),
        )
    ),
    "arc": _SETS
    | dict(
        (
            _legacy("expr", "`when` is the only conditional", rewrite.expr_when),
            _elsewhere(
                "condition", "`when` is the only conditional", rewrite.renamed("condition", "when")
            ),
            _elsewhere("with", "v10 says `args`", rewrite.renamed("with", "args")),
            _elsewhere("then", "an arc names its step itself", rewrite.lone_arc),
        )
    ),
}

_EVERYWHERE: Mapping[str, Word] = dict(
    (
        _legacy("eval", "outcomes are judged by a task's policy", rewrite.eval_policy),
        _legacy("expr", "`when` is the only conditional", rewrite.expr_when),
        _legacy("case", "a step is admission, `tool` and `next`", rewrite.step_of),
        _legacy("pipe", "`tool` itself is the ordered pipeline", rewrite.pipe),
        _legacy("catch", "errors are handled by each task's policy rules", rewrite.catch),
    )
) | {**_SETS, **{word: _CONTROLS[word] for word in sorted(CONTROL_WORDS - {"rules"})}}
"""Words that no key of the language is called, wherever it stands."""

_INSIDE = ("pipe", "catch", "finally", "vars", "expr", "eval")
"""Old words that are told wherever they stand in a refused block."""
_BESIDE = {
    "set_prev": "do",
    "from": "do",
    "query": "kind",
    "credential": "kind",
    "output_select": "kind",
}
"""Old words that are such only beside another word: elsewhere they may be data."""


def word_at(place: str, key: str) -> Word | None:
    """The refused word that a key is at a place, if it is one."""
    return WORDS.get(place, {}).get(key) or _EVERYWHERE.get(key)


def refused(place: str, entry: Entry, parent: MappingNode) -> Refusal | None:
    """The refusal of a key at a place, with its replacement written out, or None."""
    word = word_at(place, entry.key)
    return _refusal(word, entry, parent) if word else None


def _refusal(word: Word, entry: Entry, parent: MappingNode) -> Refusal:
    hint = word.rewriter(first_values(entry.node), first_values(parent))
    return Refusal(word.code, word.message, hint)


def words_inside(node: Node, written: Path) -> Iterator[tuple[Path, Entry, Refusal]]:
    """Old words deeper inside a refused block, each with its own place and mapping."""
    match node:
        case MappingNode():
            for key, entry in node.entries.items():
                here = (*written, key)
                word = _inner_word(key, node)
                if word is not None:
                    yield here, entry, _refusal(word, entry, node)
                yield from words_inside(entry.node, here)
        case SequenceNode():
            for index, item in enumerate(node.items):
                yield from words_inside(item, (*written, index))


def _inner_word(key: str, parent: MappingNode) -> Word | None:
    if key in _INSIDE or (key in _BESIDE and _BESIDE[key] in parent.entries):
        return _STEP.get(key) or WORDS["then"].get(key) or _TASK.get(key)
    return None
