"""Data of a playbook whose texts are templates, prepared once and rendered for every run.

A tree knows every path that its templates read, so that references on these paths can be fetched
before it is rendered, and whether it holds a template at all: what is plain data costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from noetl_core.templates import Template, compile_template, render
from noetl_core.templates.compiler import Path
from noetl_core.values import Value


class Tree:
    """One value as written in a playbook."""

    __slots__ = ("is_static", "paths", "written")

    def __init__(self, written: Value) -> None:
        templates = list(_templates(written))
        self.written = written
        self.is_static = not templates
        self.paths = paths_of(templates)

    def render(self, scope: Mapping[str, Value]) -> Value:
        """Its value; raises `TemplateError`, which says where in the tree it happened."""
        return self.written if self.is_static else render(self.written, scope)


class Entries:
    """A mapping as written in a playbook: keys are plain, values are trees."""

    __slots__ = ("_tree", "paths", "written")

    def __init__(self, written: dict[str, Value]) -> None:
        self._tree = Tree(written)
        self.paths = self._tree.paths
        self.written = written

    def render(self, scope: Mapping[str, Value]) -> dict[str, Value]:
        rendered = self._tree.render(scope)
        assert isinstance(rendered, dict)
        return rendered


def paths_of(templates: list[Template]) -> tuple[Path, ...]:
    """Every path that one of the templates reads, each once.

    Those that look at `selected` come first: a reference on such a path keeps its chosen fields
    also where another path needs the value behind it.
    """
    found = {path: None for template in templates for path in template.paths}
    return tuple(sorted(found, key=lambda path: "selected" not in path))


def _templates(value: Value) -> Iterator[Template]:
    match value:
        case str():
            # A lone "{#…#}" is a comment, so the brace alone decides whether there is work to do.
            if "{" in value:
                yield compile_template(value)
        case list():
            for item in value:
                yield from _templates(item)
        case dict():
            for item in value.values():
                yield from _templates(item)
