"""Tasks in every shape that rule A3 knows, of steps and of the workbook (rule I5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from noetl_core import legacy, rewrite
from noetl_core.nodes import (
    Entry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    first_values,
    kind_of,
    plain_value,
)
from noetl_core.problems import Severity, nearest
from noetl_core.reading import Cursor, Place
from noetl_core.scopes import Scope
from noetl_core.shape import (
    Definitions,
    Rec,
    Schema,
    Shape,
    Text,
    dump_record,
    name_text,
    read_keys,
)
from noetl_core.shapes_forms import Lazy
from noetl_core.values import Value

if TYPE_CHECKING:
    from noetl_core.model import Task, TaskSpec
    from noetl_core.tools import ToolKind


class StepTools(Lazy["Task"], Shape[tuple["Task", ...]]):
    """The task shapes of rule A3, all read into a tuple of named tasks."""

    expected = "a task or a list of tasks"

    def blank(self) -> tuple[Task, ...]:
        return ()

    def read(self, node: Node, at: Cursor) -> tuple[Task, ...]:
        if isinstance(node, SequenceNode):
            return tuple(self._item(item, i, at) for i, item in enumerate(node.items))
        if not isinstance(node, MappingNode):
            return self.wrong(node, at)
        path = (*at.path, 0)
        if "kind" not in node.entries and len(node.entries) >= 1:
            labelled = [e for e in node.entries.values() if _is_labelled_body(e.node)]
            if len(labelled) == len(node.entries):
                return self._labelled_map(node, labelled, at)
        return (self._task(node, at.at(path, at.written, node), f"{_step_name(at)}_task"),)

    def _labelled_map(
        self, node: MappingNode, labelled: list[Entry], at: Cursor
    ) -> tuple[Task, ...]:
        """`tool: {fetch: {kind: …}}` is not a task shape, but its meaning is clear."""
        hint = rewrite.named_tasks({e.key: first_values(e.node) for e in labelled})
        message = "`tool` is a list of tasks, not a mapping of labels"
        at.error("A3.labelled-map", message, node, hint)
        return ()

    def _item(self, node: Node, index: int, at: Cursor) -> Task:
        path, written = (*at.path, index), (*at.written, index)
        here = at.at(path, written, node)
        if not isinstance(node, MappingNode):
            here.error("A2.type", f"a task is a mapping, not {kind_of(node)}", node)
            return Rec(self.cls).blank()
        if len(node.entries) == 1 and not {"kind", "name", "tool"} & set(node.entries):
            entry = next(iter(node.entries.values()))
            if isinstance(entry.node, MappingNode) and not _is_refused_block(entry):
                return self._labelled(entry, here)
        return self._task(node, here, f"task_{index}")

    def _labelled(self, entry: Entry, at: Cursor) -> Task:
        inner = at.at(at.path, (*at.written, entry.key), entry.node)
        body = cast(MappingNode, entry.node)
        message = f"the labelled form of a task (`{entry.key}: {{…}}`) is not canonical"
        is_full = at.reading.found.is_full(Severity.WARNING)
        hint = None if is_full else rewrite.named_task(entry.key, first_values(body))
        inner.warning("A3.labelled-task", message, entry.key_node, hint)
        name_text().read(entry.key_node, inner)
        at.reading.places[(*at.path, "name")] = Place(inner.written, entry.key_node)
        return self._task(body, inner, entry.key, named=True)

    def _task(self, node: MappingNode, at: Cursor, name: str, *, named: bool = False) -> Task:
        return read_task(self.cls, node, at, name, named=named)

    def dump(self, value: tuple[Task, ...]) -> Value:
        return [dump_task(task) for task in value]

    def schema(self, defs: Definitions) -> Schema:
        task = task_schema(self.cls, defs)
        return {"anyOf": [task, {"type": "array", "items": task}]}


def _is_labelled_body(node: Node) -> bool:
    return isinstance(node, MappingNode) and ("kind" in node.entries or "tool" in node.entries)


def _is_refused_block(entry: Entry) -> bool:
    """`- while: {…}` is an old block; `- while: {kind: …}` a task that is called so."""
    return not _is_labelled_body(entry.node) and legacy.word_at("task", entry.key) is not None


def _step_name(at: Cursor) -> str:
    """The name of the step that holds this tool, for the label of a lone task."""
    place = at.reading.places.get((*at.path[:-1], "step"))
    if place and isinstance(place.node, ScalarNode) and isinstance(place.node.value, str):
        return place.node.value
    return "step"


_OWN = frozenset({"name", "kind", "spec"})
"""Keys that every task has, whatever its kind."""


def read_task(
    cls: type[Task], node: MappingNode, at: Cursor, name: str, *, named: bool = False
) -> Task:
    """A task's mapping: its own keys, then those of its tool kind."""
    kind_node = node.get("kind")
    kind = kind_node.value if isinstance(kind_node, ScalarNode) else None
    tool = at.reading.kinds.get(kind) if isinstance(kind, str) else None
    if kind_node is None or (isinstance(kind_node, ScalarNode) and kind is None):
        _missing_kind(node, at)
    elif tool is None:
        _unknown_kind(kind_node, at)
    if tool is not None and tool.keys is not None and tool.name != "workbook":
        # What a task of the workbook leaves out, its callers may bring.
        read_keys(tool.keys, node, at, _OWN, complete=at.path[0] != "workbook")
        known = tool.keys.keys
        inputs = {k: plain_value(e.node) for k, e in node.entries.items() if k in known}
    else:
        inputs = _free_keys(node, at, tool)
    return cls(
        name=_task_name(node, at, name, named),
        kind=kind if isinstance(kind, str) else "",
        spec=_task_spec(cls, node, at),
        inputs=inputs,
    )


def _free_keys(node: MappingNode, at: Cursor, tool: ToolKind | None) -> dict[str, Value]:
    """The keys of a task whose kind is unknown, plugs in, or overlays a task of the workbook."""
    inputs: dict[str, Value] = {}
    calls_workbook = tool is not None and tool.name == "workbook"
    if calls_workbook and "task" not in node.entries:
        at.missing("task", "The task's name in the workbook.", node)
    plugs_in = tool is not None and not calls_workbook
    for key, entry in node.entries.items():
        if key in _OWN:
            continue
        here = at.child(key, entry.node)
        if not plugs_in and legacy.word_at("task", key) is not None:
            at.unknown_key(entry, "task", [], node)
            continue
        if calls_workbook and key == "task":
            Text().read(entry.node, here)
        elif not calls_workbook:
            here.templates_in(entry.node, Scope.TASK)
        inputs[key] = plain_value(entry.node)
    return inputs


def _unknown_kind(node: Node, at: Cursor) -> None:
    here = at.child("kind", node)
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
        here.error("A2.type", f"`kind` is the name of a tool, not {kind_of(node)}", node)
        return
    close = legacy.TOOL_KINDS.get(node.value) or nearest(node.value, at.reading.kinds)
    known = ", ".join(f"`{k}`" for k in at.reading.kinds)
    hint = f"did you mean `{close}`?" if close else f"known: {known}"
    here.error("A5.unknown-kind", f"unknown tool kind `{node.value}`", node, hint)


def _missing_kind(node: MappingNode, at: Cursor) -> None:
    if "tool" in node.entries or any(_is_refused_block(e) for e in node.entries.values()):
        return
    at.missing("kind", "The tool kind: " + ", ".join(at.reading.kinds), node)


def _task_name(node: MappingNode, at: Cursor, name: str, named: bool) -> str:
    entry = node.entries.get("name")
    if entry is None:
        return name
    if named:
        message = f"the task has the label `{name}` and a `name` of its own"
        at.child("name", entry.node).error("A3.two-names", message, entry.node, "keep `name:`")
    return name_text().read(entry.node, at.child("name", entry.node)) or name


def _task_spec(cls: type[Task], node: MappingNode, at: Cursor) -> TaskSpec:
    entry = node.entries.get("spec")
    shape = cast("Rec[TaskSpec]", cls.keys["spec"].shape)
    if entry is None:
        return shape.blank()
    return shape.read(entry.node, at.child("spec", entry.node))


def dump_task(task: Task) -> dict[str, Value]:
    """A task in the canonical `name:` form."""
    dumped: dict[str, Value] = {"name": task.name, "kind": task.kind, **task.inputs}
    spec = dump_record(task.spec)
    return dumped | {"spec": spec} if spec else dumped


def task_schema(cls: type[Task], defs: Definitions, *, complete: bool = True) -> Schema:
    """One schema for all kinds: the kind decides which keys there are. Tasks of the workbook need
    not be complete."""
    name = "Task" if complete else "WorkbookTask"
    if name not in defs.schemas:
        defs.schemas[name] = {}
        own: dict[str, Value] = {
            k.name: {"description": k.doc, **k.shape.schema(defs)}
            for k in cls.keys.values()
            if k.name != "inputs"
        }
        defs.schemas[name] = {
            "type": "object",
            "description": (cls.__doc__ or "").strip(),
            "properties": own,
            "required": ["kind"],
            "allOf": _kind_schemas(own, defs, complete=complete),
        }
    return {"$ref": f"#/$defs/{name}"}


def _kind_schemas(own: dict[str, Value], defs: Definitions, *, complete: bool) -> list[Value]:
    from noetl_core.tools import BUILT_IN

    branches: list[Value] = []
    for kind in BUILT_IN.values():
        if kind.keys is None or kind.name == "workbook":
            continue
        known = {
            k.name: {"description": k.doc, **k.shape.schema(defs)} for k in kind.keys.keys.values()
        }
        branch: Schema = {"properties": {**own, **known}, "additionalProperties": False}
        if complete:
            branch["required"] = [k.name for k in kind.keys.required]
        is_kind: Schema = {"properties": {"kind": {"const": kind.name}}, "required": ["kind"]}
        branches.append({"if": is_kind, "then": branch})
    return branches


class WorkbookShape(Lazy["Task"], Shape[dict[str, "Task"]]):
    """Named tasks, as a mapping by name or a list of named tasks (rule I5)."""

    expected = "a mapping of tasks by name, or a list of named tasks"

    def blank(self) -> dict[str, Task]:
        return {}

    def read(self, node: Node, at: Cursor) -> dict[str, Task]:
        if isinstance(node, SequenceNode):
            return self._list(node, at)
        if not isinstance(node, MappingNode):
            return self.wrong(node, at)
        tasks: dict[str, Task] = {}
        for name, entry in node.entries.items():
            here = at.child(name, entry.node)
            name_text().read(entry.key_node, here)
            if isinstance(entry.node, MappingNode):
                tasks[name] = read_task(self.cls, entry.node, here, name)
                self._same_name(tasks[name], name, entry, here)
            else:
                here.error("A2.type", f"a task is a mapping, not {kind_of(entry.node)}", entry.node)
        return {name: self._renamed(task, name) for name, task in tasks.items()}

    def _same_name(self, task: Task, name: str, entry: Entry, at: Cursor) -> None:
        if task.name != name:
            message = f"the task `{name}` of the workbook calls itself `{task.name}`"
            at.error("I5.name", message, entry.node, "leave `name` out of the mapping form")

    def _renamed(self, task: Task, name: str) -> Task:
        return self.cls(name=name, kind=task.kind, spec=task.spec, inputs=task.inputs)

    def _list(self, node: SequenceNode, at: Cursor) -> dict[str, Task]:
        tasks: dict[str, Task] = {}
        for index, item in enumerate(node.items):
            name = self._name_of(item)
            here = at.at((*at.path, name or index), (*at.written, index), item)
            if not isinstance(item, MappingNode):
                here.error("A2.type", f"a task is a mapping, not {kind_of(item)}", item)
                continue
            if name is None:
                here.missing("name", "The name by which steps use the task.", item)
                continue
            if name in tasks:
                message = f"the workbook has two tasks `{name}`"
                here.error("A5.duplicate-label", message, item)
                continue
            tasks[name] = read_task(self.cls, item, here, name)
        return tasks

    def _name_of(self, node: Node) -> str | None:
        found = node.get("name") if isinstance(node, MappingNode) else None
        return str(found.value) if isinstance(found, ScalarNode) and found.value else None

    def dump(self, value: dict[str, Task]) -> Value:
        return {
            name: {k: v for k, v in dump_task(task).items() if k != "name"}
            for name, task in value.items()
        }

    def schema(self, defs: Definitions) -> Schema:
        task = task_schema(self.cls, defs, complete=False)
        by_name: Schema = {"type": "object", "additionalProperties": task}
        return {"anyOf": [by_name, {"type": "array", "items": task}]}
