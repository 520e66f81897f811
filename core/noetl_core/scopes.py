"""Which names a template may read, by the place where it stands (rules B4, K31, K45)."""

from __future__ import annotations

from enum import Enum

_CONTROL = frozenset({"workload", "ctx", "args", "execution", "execution_id"})
_WORKER = _CONTROL | {"iter", "_prev", "_task", "_attempt"}

RESERVED = frozenset(_WORKER | {"keychain", "outcome", "event"})
"""Names of scopes: no iterator and no label may be one of them."""

ITER_KEYS = frozenset({"index", "total", "parent"})
"""What `iter` holds of its own, so that no iterator may be called so."""


class Scope(Enum):
    """A place of a playbook where templates are rendered, with the names visible there."""

    ADMIT = ("an admission rule", _CONTROL | {"event"})
    ARC = ("an arc", _CONTROL | {"event"})
    RESULT = ("the execution's result", _CONTROL | {"event"})
    LOOP = ("a loop", _CONTROL)
    INNER_LOOP = ("a nested loop", _CONTROL | {"iter"})
    TASK = ("a task", _WORKER | {"keychain"})
    TASK_STORED = ("a value that is stored", _WORKER)
    POLICY = ("a policy rule", _WORKER | {"outcome"})
    DELAY = ("a delay", _WORKER | {"outcome", "keychain"})

    def __init__(self, title: str, names: frozenset[str]) -> None:
        self.title = title
        self.names = names

    @property
    def in_worker(self) -> bool:
        """Rendered inside a pipeline, where labels of tasks are names too."""
        return "_prev" in self.names
