"""How SQL is written in a task: statements with templates that are bound, never spliced (rules
I1, K35)."""

from __future__ import annotations

from typing import Literal

from noetl_core.nodes import Node, ScalarNode, SequenceNode, plain_value
from noetl_core.reading import Cursor
from noetl_core.scopes import Scope
from noetl_core.shape import Definitions, Schema, Shape
from noetl_core.sql import compile_sql
from noetl_core.templates import TemplateProblems
from noetl_core.values import Value


class SqlCommand(Shape[Value]):
    """One text of statements, or a list of such texts."""

    expected = "SQL text or a list of SQL texts"

    def __init__(self, dialect: Literal["postgres", "duckdb"]) -> None:
        self._dialect = dialect

    def blank(self) -> Value:
        return ""

    def read(self, node: Node, at: Cursor) -> Value:
        if isinstance(node, SequenceNode):
            for index, item in enumerate(node.items):
                self._statement(item, at.child(index, item))
        else:
            self._statement(node, at)
        return plain_value(node)

    def _statement(self, node: Node, at: Cursor) -> None:
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            self.wrong(node, at)
            return
        try:
            compiled = compile_sql(node.value, self._dialect)
        except TemplateProblems as wrong:
            at.template_problems(wrong, node)
            return
        for template in compiled.templates:
            at.met(template, node, Scope.TASK)

    def schema(self, defs: Definitions) -> Schema:
        text: Schema = {"type": "string"}
        return {"anyOf": [text, {"type": "array", "items": dict(text)}]}
