"""The playbooks of a local run: its own file, and where its children are found.

A child is found by name, or by path where a `/` stands in it (rule K37): among the other documents
of the file, the files beside it, and the folders given with `--playbooks`. Files are read when a
child is asked for.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from noetl_cli import files
from noetl_cli.errors import UsageError
from noetl_core.check import Checked, check_text
from noetl_core.load import object_name
from noetl_core.model import KeychainEntry, Playbook
from noetl_core.values import Value
from noetl_core.wire.children import NOT_FOUND_CODE

if TYPE_CHECKING:
    from noetl_core.engine.triggers import CreateChild
    from noetl_operator.store.port import NewExecution

_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Where the playbooks of one run come from."""

    own: tuple[Playbook, ...] = ()
    """The documents of the file that is run."""
    file: Path | None = None
    folders: tuple[Path, ...] = ()
    """In the order in which they are searched."""

    @classmethod
    def of(cls, own: Sequence[Playbook], file: str | None, given: Sequence[str]) -> Catalogue:
        for name in given:
            if not Path(name).is_dir():
                raise UsageError(f"--playbooks {name}: there is no such folder")
        path = None if file in (None, files.STDIN) else Path(str(file)).absolute()
        beside = () if path is None else (path.parent,)
        return cls(tuple(own), path, (*beside, *(Path(name).absolute() for name in given)))

    def keychain(self) -> Iterator[KeychainEntry]:
        """Every keychain entry of the file."""
        for playbook in self.own:
            yield from playbook.keychain

    def find(self, wanted: str) -> Checked | Playbook | None:
        """The playbook of this name or path; with its problems where it is not valid."""
        for playbook in self.own:
            if _is_called(playbook, wanted):
                return playbook
        for path in self._files():
            found = _in_file(path, wanted)
            if found is not None:
                return found
        return None

    def _files(self) -> Iterator[Path]:
        for folder in self.folders:
            try:
                inside = sorted(p for p in folder.iterdir() if p.suffix in _SUFFIXES)
            except OSError:
                continue
            yield from (path for path in inside if path.is_file())


def _in_file(path: Path, wanted: str) -> Checked | None:
    try:
        data = files.read(str(path)).data
    except UsageError:
        return None
    # Most files beside a playbook are other playbooks: reading them all would take its time.
    if wanted.encode() not in data:
        return None
    return next((c for c in check_text(data) if _is_called(c.loaded.partial, wanted)), None)


def _is_called(playbook: Playbook | None, wanted: str) -> bool:
    if playbook is None:
        return False
    if "/" in wanted:
        return playbook.metadata.path == wanted
    return wanted in (playbook.metadata.name, object_name(playbook.metadata.name))


class LocalChildren:
    """Makes the executions of children; the outbox asks for them."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    async def request(self, action: CreateChild, parent: NewExecution) -> NewExecution:
        from noetl_core.load import digest, dump
        from noetl_operator.starting import child_name
        from noetl_operator.store.port import NewExecution

        found = self.catalogue.find(action.playbook)
        playbook = found.playbook if isinstance(found, Checked) else found
        problems: list[Value] = []
        if found is None:
            problems = [self._unknown(action.playbook)]
        elif isinstance(found, Checked) and playbook is None:
            problems = [dict(problem.as_json()) for problem in found.problems]
        return NewExecution(
            execution_id=action.child,
            namespace=parent.namespace,
            name=child_name(parent.name, action.child),
            playbook_name=playbook.metadata.name if playbook else action.playbook,
            digest=digest(playbook) if playbook else "none",
            document=dump(playbook) if playbook else {},
            workload=action.workload,
            parent=action.parent,
            depth=action.depth,
            shard=parent.shard,
            pool=parent.pool,
            problems=problems,
        )

    def _unknown(self, wanted: str) -> dict[str, Value]:
        where = ", ".join(str(folder) for folder in self.catalogue.folders) or "the file"
        kind = "path" if "/" in wanted else "name"
        return {
            "code": NOT_FOUND_CODE,
            "severity": "error",
            "path": "",
            "message": f"there is no playbook of the {kind} `{wanted}` (looked in {where})",
        }


def execution_name(playbook: str) -> str:
    """A name for a new execution."""
    return f"{object_name(playbook)[:56].strip('-.') or 'playbook'}-{secrets.token_hex(3)}"
