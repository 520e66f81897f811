"""What each tool kind takes (section I of the language): the keys of its tasks, beside `name`,
`kind`, `spec`.

The loader checks tasks by these tables, the JSON Schema shows them. A tool that plugs in by entry
point is an open kind: its own `Args` judge its keys when it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from noetl_core.scopes import Scope
from noetl_core.shape import (
    Boolean,
    Choice,
    Data,
    DataList,
    DataMap,
    Integer,
    Record,
    Templated,
    Text,
    key,
    record,
)
from noetl_core.shapes_sql import SqlCommand
from noetl_core.values import Value

_TEXT = Templated(Scope.TASK, Text())
_MAP = Templated(Scope.TASK, DataMap())
_ANY = Data(Scope.TASK)
_BOOL = Templated(Scope.TASK, Boolean())


class Fetch(StrEnum):
    """How many rows of a statement are kept."""

    ALL = "all"
    ONE = "one"
    NONE = "none"


_FETCH = Choice(Fetch, "I1.fetch")
_PARAMS = Templated(Scope.TASK, DataList(), DataMap())


class TaskKeys(Record):
    """Base of the key tables."""

    __slots__ = ()
    place: ClassVar[str] = "task"


@record
class HttpKeys(TaskKeys):
    """An HTTP request."""

    method: Value = key(_TEXT, "GET by default.", default=None)
    url: Value = key(_TEXT, "The address.")
    params: Value = key(_MAP, "Query parameters.", default=None)
    headers: Value = key(_MAP, "Request headers.", default=None)
    json: Value = key(_ANY, "A JSON body.", default=None)
    form: Value = key(_MAP, "A form body.", default=None)
    files: Value = key(_MAP, "A multipart body: field → text or {filename, content}.", default=None)
    body: Value = key(_ANY, "A text body; a mapping or list is sent as JSON.", default=None)
    auth: Value = key(_TEXT, "A keychain entry.", default=None)
    follow_redirects: Value = key(
        Templated(Scope.TASK, Boolean(), Integer(0)), "true by default, at most 5.", default=None
    )
    verify: Value = key(
        Templated(Scope.TASK, Boolean(), Text()), "true, false or a CA file.", default=None
    )


@record
class PostgresKeys(TaskKeys):
    """SQL on a Postgres server."""

    auth: Value = key(_TEXT, "A keychain entry of kind postgres_credential.")
    command: Value = key(
        SqlCommand("postgres"), "A statement, several, or a list of them.", default=None
    )
    params: Value = key(_PARAMS, "A list binds $1…, a mapping :name.", default=None)
    fetch: Fetch | None = key(_FETCH, "Which rows are kept.", default=None)
    table: Value = key(_TEXT, "With `rows`: the table to fill.", default=None)
    rows: Value = key(
        Templated(Scope.TASK, DataList()), "Rows to insert at the speed of COPY.", default=None
    )


@record
class DuckdbKeys(TaskKeys):
    """SQL on DuckDB."""

    command: Value = key(SqlCommand("duckdb"), "A statement, several, or a list of them.")
    params: Value = key(_PARAMS, "A list binds $1… or ?, a mapping :name.", default=None)
    fetch: Fetch | None = key(_FETCH, "Which rows are kept.", default=None)
    database: Value = key(_TEXT, "A file in the step-run's folder; else in memory.", default=None)
    attach: Value = key(
        Templated(Scope.TASK, Text(), DataList()), "Postgres entries to attach.", default=None
    )


@record
class PythonKeys(TaskKeys):
    """Python code in a child process."""

    code: str = key(Text(), "The code; what it leaves in `result` is the result.")
    args: Value = key(_MAP, "Its global names.", default=None)


@record
class SecretsKeys(TaskKeys):
    """Refreshes a keychain entry."""

    auth: Value = key(_TEXT, "The keychain entry.")


@record
class PlaybookKeys(TaskKeys):
    """Runs another playbook as a child execution."""

    playbook: Value = key(_TEXT, "A resource name, or with a `/` in it a path.")
    workload: Value = key(
        Templated(Scope.TASK_STORED, DataMap()), "The child's workload.", default=None
    )
    wait: Value = key(_BOOL, "Whether to wait for it; true by default.", default=None)


@record
class WorkbookKeys(TaskKeys):
    """Runs a task of the workbook; further keys overlay it."""

    task: str = key(Text(), "The task's name in the workbook.")


@record
class NoopKeys(TaskKeys):
    """Does nothing: a place for a policy."""

    result: Value = key(Data(Scope.TASK_STORED), "Its result; else `_prev` passes.", default=None)


@dataclass(frozen=True, slots=True)
class ToolKind:
    """A tool kind as the checker knows it."""

    name: str
    keys: type[TaskKeys] | None
    """None: an open kind, whose keys are not known here."""
    defaults: Mapping[str, Value] = field(default_factory=dict)
    """The innermost layer of every task's spec (rule F1)."""
    helpers: frozenset[str] = frozenset()
    """Which helpers its outcomes carry (rule D6)."""

    @property
    def takes_auth(self) -> bool:
        return self.keys is None or "auth" in self.keys.keys


OUTCOME_HELPERS = frozenset({"http", "pg", "py"})

BUILT_IN: Mapping[str, ToolKind] = {
    kind.name: kind
    for kind in (
        ToolKind(
            "http",
            HttpKeys,
            {"timeout": {"connect": 10, "read": 60}, "retry_statuses": []},
            frozenset({"http"}),
        ),
        ToolKind("postgres", PostgresKeys, {"numeric": "number"}, frozenset({"pg"})),
        ToolKind("duckdb", DuckdbKeys, {"numeric": "number"}),
        ToolKind("python", PythonKeys, {}, frozenset({"py"})),
        ToolKind("secrets", SecretsKeys),
        ToolKind("playbook", PlaybookKeys),
        ToolKind("workbook", WorkbookKeys),
        ToolKind("noop", NoopKeys),
    )
}
"""The kinds of section I."""
