"""What a condition can still become when only some of its inputs are known.

The checker asks this of every guard: a `when` that is false whatever the rest turns out to be
can never match. Three values: true, false, and unknown; `and`, `or`, `not`, comparisons and the
conditional expression decide as early as they can, everything else needs all of its inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from jinja2 import nodes

from noetl_core.templates import operators
from noetl_core.templates.compiler import Compiler, Path
from noetl_core.templates.data import when_truth
from noetl_core.templates.errors import TemplateError
from noetl_core.templates.frame import Frame
from noetl_core.templates.undefined import Eval, Operand, Undefined

if TYPE_CHECKING:
    from noetl_core.values import Value


class Missing:
    """Stands in `known` for a path at which nothing will ever be."""

    def __repr__(self) -> str:
        return "MISSING"


class Unknown:
    """A value that depends on what is not known."""


MISSING: Final = Missing()
_UNKNOWN: Final = Unknown()

Known: TypeAlias = "Mapping[tuple[str, ...], Value | Missing]"
Guess: TypeAlias = "Operand | Unknown"


Leaves: TypeAlias = "dict[int, tuple[Eval, tuple[Path, ...]]]"
"""The compiled leaves of one tree, by the identity of their nodes: the same guard is judged again
and again, each time with other facts."""


def possible_truth(node: nodes.Expr, known: Known, leaves: Leaves) -> bool | None:
    """The truth of a whole `when`, or None where it depends on what is not known."""
    try:
        found = _Judge(known, leaves).judge(node)
    except (TemplateError, RecursionError):
        # It fails whenever it is evaluated, and that is for the run to report, not a "never"; or
        # it is a chain so long that nobody needs an answer.
        return None
    if isinstance(found, Unknown):
        return None
    return not isinstance(found, Undefined) and when_truth(found)


class _Judge:
    """Evaluates a tree with gaps."""

    def __init__(self, known: Known, leaves: Leaves) -> None:
        self.known = known
        self.leaves = leaves
        self.frame = Frame(_scope(known), strict=False)

    def judge(self, node: nodes.Node) -> Guess:
        match node:
            case nodes.Const():
                return node.value  # type: ignore[no-any-return]  # the parser makes scalars only
            case nodes.And():
                return self._both(node.left, node.right, stop=False)
            case nodes.Or():
                return self._both(node.left, node.right, stop=True)
            case nodes.Not():
                truth = self._truth(self.judge(node.node))
                return _UNKNOWN if truth is None else not truth
            case nodes.CondExpr():
                return self._condition(node)
            case nodes.Compare(ops=[_]):
                return self._compare(node)
        return self._whole(node)

    def _whole(self, node: nodes.Node) -> Guess:
        """A node that needs all of its inputs."""
        compiled = self.leaves.get(id(node))
        if compiled is None:
            compiler = Compiler("")
            evaluate = compiler.compile(node)
            compiled = self.leaves[id(node)] = (evaluate, tuple(compiler.paths))
        evaluate, paths = compiled
        return evaluate(self.frame) if all(self._is_known(p) for p in paths) else _UNKNOWN

    def _is_known(self, path: tuple[str | int, ...]) -> bool:
        forms = [path] if path[0] in self.frame.scope else [path, ("workload", *path)]
        return any(form[:end] in self.known for form in forms for end in range(1, len(form) + 1))

    def _truth(self, value: Guess) -> bool | None:
        return None if isinstance(value, Unknown) else operators.truth(self.frame, value)

    def _both(self, left: nodes.Expr, right: nodes.Expr, *, stop: bool) -> Guess:
        """`and` ends at the first false, `or` at the first true, wherever that stands."""
        first = self.judge(left)
        if self._truth(first) is stop:
            return first
        second = self.judge(right)
        if not isinstance(first, Unknown):
            return second
        return stop if self._truth(second) is stop else _UNKNOWN

    def _condition(self, node: nodes.CondExpr) -> Guess:
        truth = self._truth(self.judge(node.test))
        no = self.judge(node.expr2) if node.expr2 else Undefined((), what="else")
        if truth is None:
            yes = self.judge(node.expr1)
            same = self._truth(yes) is not None and self._truth(yes) is self._truth(no)
            return yes if same else _UNKNOWN
        return self.judge(node.expr1) if truth else no

    def _compare(self, node: nodes.Compare) -> Guess:
        op = node.ops[0].op
        left, right = self.judge(node.expr), self.judge(node.ops[0].expr)
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            missing = isinstance(left, Undefined) or isinstance(right, Undefined)
            if missing and op not in ("eq", "ne"):
                # Undefined has no order and is in nothing, whatever stands on the other side.
                return op == "notin"
            return False if op == "in" and right == [] else _UNKNOWN
        return operators.COMPARISONS[op](self.frame, left, right)


def _scope(known: Known) -> dict[str, Value]:
    """The known values as a scope; what is `MISSING` is simply not in it."""
    scope: dict[str, Value] = {}
    for path, value in sorted(known.items(), key=lambda entry: len(entry[0])):
        holder = scope
        for key in path[:-1]:
            inner = holder.setdefault(key, {})
            if not isinstance(inner, dict):
                break
            holder = inner
        else:
            if not isinstance(value, Missing):
                holder[path[-1]] = value
    return scope
