"""From the arguments of `run`, `rerun` and `resume` to a foreground run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from noetl_cli.errors import UsageError
from noetl_cli.local import documents, scratch
from noetl_cli.local import secrets as secret_files
from noetl_cli.local.catalogue import Catalogue, execution_name
from noetl_cli.local.data import DataFolder, Memory
from noetl_cli.local.display import display_for
from noetl_cli.local.engine import Engine, Scratch, Setup
from noetl_cli.local.foreground import Begin, Ended, Foreground
from noetl_cli.local.interrupts import Interrupts
from noetl_cli.output import Output
from noetl_core.values import Value

if TYPE_CHECKING:
    from noetl_core.model import Playbook
    from noetl_operator.store.port import NewExecution, Snapshot

NAMESPACE = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options that foreground commands share."""

    data: DataFolder
    secrets: str | None = None
    scratch: str | None = None
    playbooks: tuple[str, ...] = ()
    workers: int = 2
    timeout: float | None = None
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that was read before the engine starts, and what is remembered of it."""

    setup: Setup
    memory: Memory


def prepared(given: Given, catalogue: Catalogue, memory: Memory | None = None) -> Prepared:
    """Read what the options name; what they leave out, an earlier run may have told."""
    before = memory or Memory()
    path = given.secrets or before.secrets
    entry = given.scratch or before.scratch_entry
    found: Scratch | None = None
    if entry is not None:
        same = entry == before.scratch_entry and before.scratch_database
        database = before.scratch_database if same else None
        found = Scratch(scratch.entry_of(catalogue, entry), database or scratch.new_name())
    setup = Setup(
        data=given.data,
        catalogue=catalogue,
        secrets=secret_files.read(path),
        scratch=found,
        workers=given.workers,
    )
    return Prepared(setup, _memory(catalogue, path, found))


def _memory(catalogue: Catalogue, secrets: str | None, found: Scratch | None) -> Memory:
    from pathlib import Path

    beside = () if catalogue.file is None else (catalogue.file.parent,)
    return Memory(
        file=None if catalogue.file is None else str(catalogue.file),
        playbooks=[str(folder) for folder in catalogue.folders[len(beside) :]],
        secrets=None if secrets is None else str(Path(secrets).absolute()),
        scratch_entry=found.entry.name if found else None,
        scratch_database=found.database if found else None,
    )


def new(
    prepared_: Prepared,
    playbook: Playbook,
    workload: dict[str, Value],
    origin: dict[str, Value] | None = None,
) -> Begin:
    """Begin a new execution."""

    async def begin(engine: Engine) -> str:
        from noetl_core.load import digest, dump
        from noetl_operator.starting import new_execution_id
        from noetl_operator.store.port import NewExecution

        request = NewExecution(
            execution_id=new_execution_id(engine.plane.clock.now()),
            namespace=NAMESPACE,
            name=execution_name(playbook.metadata.name),
            playbook_name=playbook.metadata.name,
            digest=digest(playbook),
            document=dump(playbook),
            workload=workload,
            shard=engine.shard,
            pool=engine.pool,
            origin=origin,
        )
        prepared_.setup.data.remember(request.execution_id, prepared_.memory)
        await engine.plane.start(request)
        return request.execution_id

    return begin


def adopted(prepared_: Prepared, execution_id: str) -> Begin:
    """Go on with an execution whose process is gone."""

    async def begin(engine: Engine) -> str:
        prepared_.setup.data.remember(execution_id, prepared_.memory)
        live = await engine.reading.adopt(execution_id, engine.shard, engine.pool)
        await _hand_back_all(engine, live)
        for one in live:
            engine.plane.router.poke(one)
        await _resume(engine, execution_id)
        return execution_id

    return begin


async def _hand_back_all(engine: Engine, live: list[str]) -> None:
    for lease in await engine.reading.leases(live):
        await _hand_back(engine, lease.execution_id, lease.lease_id, lease.epoch)


async def _hand_back(engine: Engine, execution_id: str, lease_id: str, epoch: int) -> None:
    """A worker died with its process: that is nobody's fault, unless the author wants to know."""
    from noetl_core.engine.triggers import WorkerLost
    from noetl_core.model import OnWorkerLost

    execution = await engine.plane.live.get(execution_id)
    run_id = execution.state.leases.get(lease_id, lease_id)
    run = execution.state.runs.get(run_id)
    plan = execution.program.steps.get(run.step) if run else None
    fails = plan is not None and plan.lifecycle.on_worker_lost is OnWorkerLost.FAIL
    lost = WorkerLost(
        lease_id=lease_id,
        epoch=epoch,
        reason="the process that ran it is gone",
        handed_back=not fails,
    )
    await engine.plane.router.apply(execution_id, lost)


async def _resume(engine: Engine, execution_id: str) -> None:
    from noetl_cli.local.wishes import by
    from noetl_core.engine.triggers import Resume

    execution = await engine.plane.live.get(execution_id)
    if execution.state.suspended:
        await engine.plane.router.apply(execution_id, Resume(by=by()))


def run_foreground(out: Output, given: Given, prepared_: Prepared, begin: Begin) -> Ended:
    """Run it with a display that fits, heeding Ctrl-C from here on."""
    interrupts = Interrupts()
    with interrupts.installed():
        return Foreground(
            setup=prepared_.setup,
            begin=begin,
            display=display_for(out.quiet),
            interrupts=interrupts,
            timeout=given.timeout,
            keep=given.keep,
        ).run()


def finish(out: Output, given: Given, ended: Ended, *, listed: bool = False) -> int:
    """Print how it ended: the result or the document, and the exit code of its phase."""
    request, state = ended.snapshot.request, ended.snapshot.state
    documents.last_words(out, request, state, given.data.option)
    if ended.scratch is not None:
        out.note(f"the scratch database is kept: {ended.scratch}")
    if out.is_json:
        out.document(_document(request, ended, listed))
    else:
        documents.print_result(out, state.result)
    return documents.exit_code(state.phase.value)


def _document(request: NewExecution, ended: Ended, listed: bool) -> dict[str, Value]:
    document = documents.run_document(request, ended.snapshot.state)
    if listed:
        document |= {"name": request.name, "namespace": request.namespace}
    return document


def with_options(memory: Memory, given: Given) -> tuple[list[str], str | None]:
    """Folders of children and the file of an earlier run."""
    return [*given.playbooks, *memory.playbooks], memory.file


def catalogue_again(playbook: Playbook, memory: Memory, given: Given) -> Catalogue:
    """Where the children of an earlier run are found now."""
    from pathlib import Path

    folders, file = with_options(memory, given)
    there = [folder for folder in dict.fromkeys(folders) if Path(folder).is_dir()]
    missing = [folder for folder in given.playbooks if not Path(folder).is_dir()]
    if missing:
        raise UsageError(f"--playbooks {missing[0]}: there is no such folder")
    catalogue = Catalogue.of([playbook], file, there)
    return replace(catalogue, own=(playbook, *_others(catalogue, playbook)))


def _others(catalogue: Catalogue, playbook: Playbook) -> list[Playbook]:
    """The other documents of the file, as they are now."""
    from noetl_cli import files
    from noetl_core.check import check_text

    if catalogue.file is None or not catalogue.file.is_file():
        return []
    checked = check_text(files.read(str(catalogue.file)).data)
    found = [c.playbook for c in checked if c.playbook is not None]
    return [p for p in found if p.metadata.name != playbook.metadata.name]


def cancelled(given: Given, snapshot: Snapshot, body: dict[str, Value]) -> tuple[Prepared, Begin]:
    """Cancel an execution whose process is gone: its end is run here."""
    prepared_ = again(given, snapshot)
    execution_id = snapshot.request.execution_id

    async def begin(engine: Engine) -> str:
        from uuid import uuid4

        from noetl_cli.local.wishes import trigger_of

        live = await engine.reading.adopt(execution_id, engine.shard, engine.pool)
        await engine.plane.router.apply(execution_id, trigger_of(str(uuid4()), body))
        await _hand_back_all(engine, live)
        return execution_id

    return prepared_, begin


def again(given: Given, snapshot: Snapshot) -> Prepared:
    """An execution of an earlier process, with what was remembered of it."""
    from noetl_core.load import load_data

    request = snapshot.request
    playbook = load_data(request.document).playbook if request.document else None
    if playbook is None:
        raise UsageError("its playbook can't be read: it was started by another version")
    memory = given.data.recall(request.execution_id)
    return prepared(given, catalogue_again(playbook, memory, given), memory)
