"""Compiled templates: the face of this package to everyone who has a text or a tree to render.

The checker compiles every text of a playbook; the control plane and the worker evaluate them
against a scope. Compiled templates are kept by their text, so that compiling twice costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetl_core.templates import grammar, possible
from noetl_core.templates.cache import Cache
from noetl_core.templates.compiler import Compiler, Path, compile_expression
from noetl_core.templates.data import when_truth
from noetl_core.templates.errors import TemplateError, TemplateProblem, TemplateProblems
from noetl_core.templates.frame import Frame
from noetl_core.templates.limits import LIMITS
from noetl_core.templates.operators import join_text
from noetl_core.templates.scan import MAX_PROBLEMS, Expression, Problem, problem_at, split
from noetl_core.templates.undefined import Eval, Operand, Undefined, undefined_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import nodes

    from noetl_core.templates.possible import Known
    from noetl_core.values import Value


class Template:
    """One compiled template; immutable and safe to share."""

    __slots__ = (
        "_fixed",
        "_leaves",
        "_parts",
        "_tree",
        "is_constant",
        "is_native",
        "outer_filter",
        "paths",
        "source",
    )

    source: str
    is_constant: bool
    """It has no expression: its value is its text."""
    is_native: bool
    """It is exactly one expression (K6), so its value keeps its type (B1)."""
    paths: tuple[Path, ...]
    """Every static path it reads, the name of the scope first."""
    outer_filter: str | None
    """Of a native template: the filter that is applied last, if one is."""

    def __init__(
        self,
        source: str,
        parts: tuple[tuple[str, Eval | None], ...],
        paths: tuple[Path, ...] = (),
        outer_filter: str | None = None,
        fixed: bool | None = None,
        tree: nodes.Expr | None = None,
    ) -> None:
        expressions = [evaluate for _, evaluate in parts if evaluate]
        around = "".join(text for text, evaluate in parts if not evaluate)
        self.source = source
        self.is_constant = not expressions
        self.is_native = len(expressions) == 1 and not around.strip()
        self.paths = paths
        self.outer_filter = outer_filter if self.is_native else None
        self._fixed = fixed
        self._leaves: possible.Leaves = {}
        self._tree = tree if self.is_native else None
        self._parts = tuple(part for part in parts if part[1]) if self.is_native else parts

    def __repr__(self) -> str:
        return f"Template({self.source!r})"

    def value(self, scope: Mapping[str, Value]) -> Value:
        """Its value; what is undefined is an error that names the missing path (B3)."""
        return self.value_in(Frame(scope, strict=True))

    def text(self, scope: Mapping[str, Value]) -> str:
        """Its value as text, also where it is one expression alone."""
        frame = Frame(scope, strict=True)
        value = self.value_in(frame)
        return _joined(frame, self.source, [value])

    def truth(self, scope: Mapping[str, Value]) -> bool:
        """Its truth as a `when` (B2): what is undefined is false and chains."""
        if self._fixed is not None:
            return self._fixed
        found = self._evaluate(Frame(scope, strict=False))
        return not isinstance(found, Undefined) and when_truth(found)

    def value_in(self, frame: Frame) -> Value:
        """Its value within the budget of an evaluation that has begun."""
        if self._fixed is not None:
            return self._fixed
        found = self._evaluate(frame)
        if isinstance(found, Undefined):
            error = undefined_error(found)
            error.expression = self._parts[0][0]
            raise error
        return found

    def _evaluate(self, frame: Frame) -> Operand:
        if self.is_native:
            return _run(frame, *self._parts[0])
        if self.is_constant:
            return "".join(text for text, _ in self._parts)
        pieces: list[Operand] = []
        for source, evaluate in self._parts:
            piece = source if evaluate is None else _run(frame, source, evaluate)
            if frame.strict and isinstance(piece, Undefined):
                error = undefined_error(piece)
                error.expression = source
                raise error
            pieces.append(piece)
        return _joined(frame, self.source, pieces)

    def possible(self, known: Known) -> bool | None:
        """Its truth where only some paths are known; None where it depends on the rest.

        `known` maps paths to their values, or to `MISSING` where nothing will ever stand there.
        """
        if self._fixed is not None:
            return self._fixed
        if not self.is_native:
            return self.truth({}) if self.is_constant else None
        if self._tree is None:
            self._tree = _parsed(self.source)
        return possible.possible_truth(self._tree, known, self._leaves)


def _joined(frame: Frame, source: str, pieces: list[Operand]) -> str:
    text = _run(frame, source, lambda frame: join_text(frame, pieces))
    assert isinstance(text, str)
    return text


def _run(frame: Frame, source: str, evaluate: Eval | None) -> Operand:
    assert evaluate is not None
    try:
        return evaluate(frame)
    except TemplateError as error:
        error.expression = error.expression or source
        raise
    except RecursionError:
        too_deep = TemplateError("the value is nested too deep", code=TemplateError.BUDGET)
        too_deep.expression = source
        raise too_deep from None
    except Exception as surprise:
        # Whatever else goes wrong is this template's error and never its process's (B7).
        message = f"it cannot be evaluated: {type(surprise).__name__}"
        unforeseen = TemplateError(message, code=TemplateError.INTERNAL)
        unforeseen.expression = source
        raise unforeseen from surprise


_ALWAYS = Template("true", (("true", None),), fixed=True)
_NEVER = Template("false", (("false", None),), fixed=False)
_cache: Cache[Template] = Cache(LIMITS.cache_chars)


def compile_template(text: str) -> Template:
    """The template of a text; raises `TemplateProblems` with all that is wrong with it."""
    template = _cache.get(text)
    if template is None:
        template = _compile(text)
        _cache.put(text, template)
    return template


def problems(text: str) -> tuple[TemplateProblem, ...]:
    """All that is wrong with the text of a template."""
    try:
        compile_template(text)
    except TemplateProblems as found:
        return found.problems
    return ()


def compile_when(condition: str | bool) -> Template:
    """The template of a `when`: a boolean or exactly one `{{ expression }}` (K7)."""
    if isinstance(condition, bool):
        return _ALWAYS if condition else _NEVER
    template = _cache.get(condition)
    if template is None:
        template = _compile(condition, keep_tree=True)
        _cache.put(condition, template)
    if not template.is_native:
        raise TemplateProblems((_not_a_condition(template),))
    return template


def _not_a_condition(template: Template) -> TemplateProblem:
    text = template.source.strip()
    if template.is_constant:
        bare = text in ("", "true", "false")
        hint = f"write {text or 'true or false'}" if bare else f"write {{{{ {text} }}}}"
    else:
        inner = text.replace("{{", "").replace("}}", "")
        hint = f"put one pair of braces around all of it: {{{{ {' '.join(inner.split())} }}}}"
    message = "a `when` is true, false or exactly one {{ expression }}"
    return TemplateProblem("K7.when", message, hint, text[:80])


def _parsed(text: str) -> nodes.Expr:
    """The tree of a native template's one expression."""
    parts, _ = split(text)
    return next(grammar.parse(text, one) for one in parts if not isinstance(one, str))


def _compile(text: str, *, keep_tree: bool = False) -> Template:
    """The tree is kept for conditions only: the checker asks them what is possible, often."""
    if "{" not in text:
        return Template(text, ((text, None),))
    if len(text) > LIMITS.template_chars:
        message = f"the text is longer than {LIMITS.template_chars:,} characters"
        raise TemplateProblems((problem_at(text, 0, "B7.size", message),))
    pieces, found = split(text)
    compiler = Compiler(text)
    compiler.problems.extend(found)
    parts: list[tuple[str, Eval | None]] = []
    node: nodes.Expr | None = None
    for piece in pieces:
        if isinstance(piece, str):
            parts.append((piece, None))
            continue
        evaluate, node = _compile_part(compiler, piece)
        parts.append((piece.source, evaluate))
        if len(compiler.problems) >= MAX_PROBLEMS:
            break
    if compiler.problems:
        raise TemplateProblems(tuple(sorted(compiler.problems, key=lambda one: one.offset)))
    outer = grammar.outer_filter(node) if node else None
    tree = node if keep_tree else None
    return Template(text, tuple(parts), tuple(compiler.paths), outer, tree=tree)


def _compile_part(compiler: Compiler, piece: Expression) -> tuple[Eval | None, nodes.Expr | None]:
    try:
        node = grammar.parse(compiler.text, piece)
    except Problem as problem:
        compiler.problems.append(problem.problem)
        return None, None
    try:
        return compile_expression(compiler, piece, node), node
    except RecursionError:
        # Its depth is bounded, but the caller may have left little of the stack.
        message = "the expression is too deep"
        compiler.problems.append(problem_at(compiler.text, piece.start, "B7.size", message))
        return None, None


def render(value: Value, scope: Mapping[str, Value]) -> Value:
    """A tree of data in which every text is a template (strict); keys of mappings are not (K6).

    One budget covers the whole tree. An error says where in the tree it happened.
    """
    return _render(value, Frame(scope, strict=True), 0)


def _render(value: Value, frame: Frame, depth: int) -> Value:
    if isinstance(value, str):
        return compile_template(value).value_in(frame) if "{" in value else value
    if not isinstance(value, list | dict):
        return value
    if depth > LIMITS.data_depth:
        raise TemplateError("the data is nested too deep", code=TemplateError.BUDGET)
    frame.items(len(value))
    key: str | int = 0
    try:
        if isinstance(value, list):
            rendered: list[Value] = []
            for key, one in enumerate(value):  # noqa: B007  # read by `except`
                rendered.append(_render(one, frame, depth + 1))
            return rendered
        entries: dict[str, Value] = {}
        for key, one in value.items():
            entries[key] = _render(one, frame, depth + 1)
        return entries
    except TemplateError as error:
        error.where = (key, *error.where)
        raise
