"""From a tree to a function: every node becomes one small closure `fn(frame) -> value`.

The tree is walked once, and whatever is not on the list of what expressions may hold is a problem
(B6), with the words to blame. No Python code is generated, and no closure reads an attribute of
data, so there is nothing of Python that a template could reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from jinja2 import nodes

from noetl_core.templates import calls, operators
from noetl_core.templates.advice import advise_call
from noetl_core.templates.limits import LIMITS
from noetl_core.templates.scan import Expression, problem_at
from noetl_core.templates.undefined import Eval, Operand, Undefined, item, read_path
from noetl_core.values import type_name

if TYPE_CHECKING:
    from noetl_core.templates.errors import TemplateProblem
    from noetl_core.templates.frame import Frame
    from noetl_core.values import Value

Path: TypeAlias = tuple[str | int, ...]

T = TypeVar("T")

RESERVED = frozenset(("and", "else", "if", "in", "is", "not", "or", "self"))


def static_path(node: nodes.Node) -> Path | None:
    """The path that a node reads, where no part of it is computed: `ctx.users[0].name`."""
    keys: list[str | int] = []
    for _ in range(LIMITS.depth):
        if isinstance(node, nodes.Name):
            return None if node.name in RESERVED else (node.name, *reversed(keys))
        if isinstance(node, nodes.Getattr):
            keys.append(node.attr)
        elif isinstance(node, nodes.Getitem):
            key = _static_key(node.arg)
            if key is None:
                return None
            keys.append(key)
        else:
            return None
        node = node.node
    return None


def _static_key(node: nodes.Expr) -> str | int | None:
    if isinstance(node, nodes.Neg) and isinstance(node.node, nodes.Const):
        key = node.node.value
        return -key if type(key) is int else None
    if isinstance(node, nodes.Const) and type(node.value) in (str, int):
        key = node.value
        return key if isinstance(key, str | int) else None
    return None


class Compiler:
    """Compiles the expressions of one template; gathers its problems and the paths it reads."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.problems: list[TemplateProblem] = []
        self.paths: dict[Path, None] = {}
        self._depth = 0

    def compile(self, node: nodes.Node) -> Eval:
        """The function of a node; of a node that is refused, one that is never called."""
        compile_node = _NODES.get(type(node))
        if compile_node is None:
            self.problem(node, "B6.syntax", "this is not part of the language")
            return _refused
        refused: Eval = _refused
        return self.deeper(node, lambda: compile_node(self, node), refused)

    def deeper(self, node: nodes.Node, make: Callable[[], T], otherwise: T) -> T:
        """What `make` gives one level further down; `otherwise` where that is too deep."""
        if self._depth >= LIMITS.depth:
            self.problem(node, "B7.size", f"a chain of more than {LIMITS.depth} links")
            return otherwise
        self._depth += 1
        try:
            return make()
        finally:
            self._depth -= 1

    def compile_all(self, many: list[nodes.Expr]) -> list[Eval]:
        return [self.compile(node) for node in many]

    def problem(
        self, node: nodes.Node, code: str, message: str, *, hint: str = "", snippet: str = ""
    ) -> None:
        if self.problems and self.problems[-1].code == code == "B7.size":
            return
        self.problems.append(
            problem_at(self.text, node.lineno, code, message, hint=hint, snippet=snippet)
        )


def compile_expression(compiler: Compiler, expression: Expression, node: nodes.Expr) -> Eval:
    """The function of one whole expression; problems without a snippet show all of it."""
    known = len(compiler.problems)
    compiled = compiler.compile(node)
    if len(compiler.problems) > known:
        compiler.problems[known:] = [
            problem
            if problem.snippet
            else problem_at(
                compiler.text,
                problem.offset,
                problem.code,
                problem.message,
                hint=problem.hint,
                snippet=expression.source,
            )
            for problem in compiler.problems[known:]
        ]
    return compiled


def _refused(_: Frame) -> Operand:
    raise AssertionError("a template with problems is never evaluated")


def _path(compiler: Compiler, node: nodes.Node) -> Eval:
    path = static_path(node)
    if path is not None:
        compiler.paths[path] = None
        root, *keys = path
        return read_path(str(root), tuple(keys))
    if isinstance(node, nodes.Name):
        message = f"`{node.name}` is a word of the language, not a name"
        compiler.problem(node, "B6.syntax", message)
        return _refused
    if isinstance(node, nodes.Getattr):
        return _item(compiler.compile(node.node), _constant(node.attr), None)
    assert isinstance(node, nodes.Getitem)
    if isinstance(node.arg, nodes.Slice):
        return _slice(compiler, node.node, node.arg)
    return _item(compiler.compile(node.node), compiler.compile(node.arg), static_path(node.node))


def _item(holder: Eval, key: Eval, path: Path | None) -> Eval:
    """`holder[key]` where one of them is computed; `path` is the holder's, if it is not."""

    def look(frame: Frame) -> Operand:
        value, name = holder(frame), key(frame)
        if isinstance(name, Undefined):
            operators.is_missing(frame, name)
            return name
        found = item(value, name, ())
        if isinstance(found, Undefined) and found is not value:
            if path and isinstance(name, str | int):
                return Undefined((*path, _shortened(name)), found.holder)
            return Undefined((), what=f"the item {_shortened(name)!r}")
        return found

    return look


def _shortened(name: Value) -> str | int:
    """A computed key as messages show it: short, whatever it is."""
    if isinstance(name, int) and name.bit_length() < 64:
        return int(name)
    return name[:80] if isinstance(name, str) else type_name(name)


def _slice(compiler: Compiler, node: nodes.Expr, arg: nodes.Slice) -> Eval:
    value = compiler.compile(node)
    bounds = [
        compiler.compile(bound) if bound else _constant(None)
        for bound in (arg.start, arg.stop, arg.step)
    ]
    return lambda frame: operators.cut(frame, value(frame), [bound(frame) for bound in bounds])


def _constant(value: Value) -> Eval:
    return lambda _: value


def _const(_: Compiler, node: nodes.Node) -> Eval:
    assert isinstance(node, nodes.Const)
    value = node.value
    assert value is None or isinstance(value, bool | int | float | str)
    return _constant(value)


def _list(compiler: Compiler, node: nodes.Node) -> Eval:
    assert isinstance(node, nodes.List | nodes.Tuple)
    members = compiler.compile_all(node.items)
    as_value = operators.as_value
    return lambda frame: [as_value(frame, member(frame)) for member in members]


def _dict(compiler: Compiler, node: nodes.Node) -> Eval:
    assert isinstance(node, nodes.Dict)
    pairs = [(compiler.compile(pair.key), compiler.compile(pair.value)) for pair in node.items]

    def build(frame: Frame) -> Operand:
        built: dict[str, Value] = {}
        for key, value in pairs:
            name = operators.as_value(frame, key(frame))
            if not isinstance(name, str):
                raise operators.key_error(name)
            built[name] = operators.as_value(frame, value(frame))
        return built

    return build


def _concat(compiler: Compiler, node: nodes.Node) -> Eval:
    assert isinstance(node, nodes.Concat)
    pieces = compiler.compile_all(node.nodes)
    return lambda frame: operators.join_text(frame, [piece(frame) for piece in pieces])


def _and(compiler: Compiler, node: nodes.Node) -> Eval:
    left, right = _flat(compiler, node, nodes.And)
    truth = operators.truth

    def both(frame: Frame) -> Operand:
        value: Operand = None
        for part in left:
            value = part(frame)
            if not truth(frame, value):
                return value
        return right(frame)

    return both


def _or(compiler: Compiler, node: nodes.Node) -> Eval:
    left, right = _flat(compiler, node, nodes.Or)
    truth = operators.truth

    def either(frame: Frame) -> Operand:
        for part in left:
            value = part(frame)
            if truth(frame, value):
                return value
        return right(frame)

    return either


def _flat(
    compiler: Compiler, node: nodes.Node, kind: type[nodes.And] | type[nodes.Or]
) -> tuple[tuple[Eval, ...], Eval]:
    """`a and b and c` as one list: the parser nests it to the left."""
    parts: list[nodes.Expr] = []
    while isinstance(node, kind):
        parts.append(node.right)
        node = node.left
    first = compiler.compile(node)
    last, *middle = parts
    return (first, *compiler.compile_all(middle[::-1])), compiler.compile(last)


def _not(compiler: Compiler, node: nodes.Node) -> Eval:
    assert isinstance(node, nodes.Not)
    value = compiler.compile(node.node)
    return lambda frame: not operators.truth(frame, value(frame))


def _condition(compiler: Compiler, node: nodes.Node) -> Eval:
    assert isinstance(node, nodes.CondExpr)
    test, yes = compiler.compile(node.test), compiler.compile(node.expr1)
    no = compiler.compile(node.expr2) if node.expr2 else _no_else
    return lambda frame: yes(frame) if operators.truth(frame, test(frame)) else no(frame)


def _no_else(_: Frame) -> Operand:
    return Undefined((), what="the value of an `if` without `else`")


def _compare(compiler: Compiler, node: nodes.Node) -> Eval:
    assert isinstance(node, nodes.Compare)
    left = compiler.compile(node.expr)
    if len(node.ops) == 1:
        return _single(left, node.ops[0].op, _compared(compiler, node.ops[0]))
    rest = [(operators.COMPARISONS[op.op], compiler.compile(op.expr)) for op in node.ops]

    def chained(frame: Frame) -> Operand:
        value = left(frame)
        for compare, operand in rest:
            following = operand(frame)
            if not compare(frame, value, following):
                return False
            value = following
        return True

    return chained


def _single(left: Eval, op: str, right: Eval) -> Eval:
    compare = operators.COMPARISONS[op]
    return lambda frame: compare(frame, left(frame), right(frame))


def _compared(compiler: Compiler, operand: nodes.Operand) -> Eval:
    """A list of constants after `in` is built once: it is only ever looked into."""
    node = operand.expr
    if operand.op in ("in", "notin") and isinstance(node, nodes.List | nodes.Tuple):
        members = [one.value for one in node.items if isinstance(one, nodes.Const)]
        if len(members) == len(node.items):
            return _constant(members)
    return compiler.compile(node)


_SIGNS: dict[type[nodes.Node], tuple[str, str]] = {
    nodes.Add: ("add", "+"),
    nodes.Sub: ("sub", "-"),
    nodes.Mul: ("mul", "*"),
    nodes.Div: ("div", "/"),
    nodes.FloorDiv: ("floordiv", "//"),
    nodes.Mod: ("mod", "%"),
}


def _binary(compiler: Compiler, node: nodes.Node) -> Eval:
    assert isinstance(node, nodes.BinExpr)
    name, sign = _SIGNS[type(node)]
    if sign == "*" and (_is_sequence(node.left) or _is_sequence(node.right)):
        compiler.problem(node, "B6.operator", "a text or list cannot be repeated with `*`")
    elif sign == "%" and _is_sequence(node.left):
        hint = "write 'text with %s' | format(value)"
        compiler.problem(node, "B6.operator", "`%` takes numbers, not text", hint=hint)
    left, right = compiler.compile(node.left), compiler.compile(node.right)
    compute = operators.ARITHMETIC[name]
    return lambda frame: compute(frame, left(frame), right(frame))


def _is_sequence(node: nodes.Node) -> bool:
    text = isinstance(node, nodes.Const) and isinstance(node.value, str)
    return text or isinstance(node, nodes.List | nodes.Tuple | nodes.Concat)


def _power(compiler: Compiler, node: nodes.Node) -> Eval:
    hint = "write x * x, or compute it in a python task"
    compiler.problem(node, "B6.operator", "`**` is not part of the language", hint=hint)
    return _refused


def _sign(compiler: Compiler, node: nodes.Node) -> Eval:
    assert isinstance(node, nodes.Neg | nodes.Pos)
    value = compiler.compile(node.node)
    apply = operators.negate if isinstance(node, nodes.Neg) else operators.posit
    return lambda frame: apply(frame, value(frame))


def _call(compiler: Compiler, node: nodes.Node) -> Eval:
    assert isinstance(node, nodes.Call)
    message, hint, snippet = advise_call(node)
    compiler.problem(node, "B6.call", message, hint=hint, snippet=snippet)
    return _refused


def _filter(compiler: Compiler, node: nodes.Node) -> Eval:
    assert isinstance(node, nodes.Filter)
    return calls.compile_filter(compiler, node)


def _test(compiler: Compiler, node: nodes.Node) -> Eval:
    assert isinstance(node, nodes.Test)
    return calls.compile_test(compiler, node)


_NODES: dict[type[nodes.Node], Callable[[Compiler, nodes.Node], Eval]] = {
    nodes.Name: _path,
    nodes.Getattr: _path,
    nodes.Getitem: _path,
    nodes.Const: _const,
    nodes.List: _list,
    nodes.Tuple: _list,
    nodes.Dict: _dict,
    nodes.Concat: _concat,
    nodes.And: _and,
    nodes.Or: _or,
    nodes.Not: _not,
    nodes.CondExpr: _condition,
    nodes.Compare: _compare,
    nodes.Pow: _power,
    nodes.Neg: _sign,
    nodes.Pos: _sign,
    nodes.Call: _call,
    nodes.Filter: _filter,
    nodes.Test: _test,
    **dict.fromkeys(_SIGNS, _binary),
}
