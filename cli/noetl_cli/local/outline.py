"""The steps of an execution as a tree: runs, tasks, loops, errors, children below their tasks.

Iterations are counted by the database, so a loop of any length costs the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from noetl_cli.local.display import Lines, seconds_text
from noetl_cli.local.progress import Progress, StepProgress, between, text_of
from noetl_cli.terminal import printable
from noetl_core.engine import events as facts
from noetl_core.engine.events import Event
from noetl_core.engine.state import Run, State
from noetl_core.values import Value

if TYPE_CHECKING:
    from noetl_operator.store.reading import Counted, Entry, Reading

MOST_ITERATIONS = 5
"""Failed iterations that are shown by name."""
MOST_CHILDREN = 50
DEEPEST = 20


@dataclass(slots=True)
class TaskLine:
    """One task of a step."""

    task: str
    kind: str | None = None
    runs: int = 0
    attempts: int = 1
    failed_attempts: int = 0
    state: str = "running"
    error: str | None = None

    def as_json(self) -> dict[str, Value]:
        return {
            "task": self.task,
            "kind": self.kind,
            "state": self.state,
            "runs": self.runs,
            "attempts": self.attempts,
            "error": self.error,
        }


@dataclass(slots=True)
class Node:
    """One step with what belongs to it."""

    line: StepProgress
    tasks: dict[str, TaskLine] = field(default_factory=dict)
    failures: list[tuple[str, str]] = field(default_factory=list)
    """(iteration, error) of failed iterations."""
    children: list[Tree] = field(default_factory=list)


@dataclass(slots=True)
class Tree:
    """One execution."""

    entry: Entry
    now: str
    nodes: dict[str, Node] = field(default_factory=dict)

    def as_json(self) -> list[Value]:
        return [_node_json(node, self.now) for node in self.nodes.values()]


async def outline(reading: Reading, execution_id: str, depth: int = 0) -> Tree:
    """Everything that is shown of an execution, its children included."""
    head = await reading.head(execution_id)
    tree = Tree(await reading.entry(execution_id), await reading.store.now())
    progress = Progress()
    async for event in reading.outline(execution_id):
        progress.take(event)
        if event.fact.step is not None:
            node = tree.nodes.setdefault(event.fact.step, Node(progress.steps[event.fact.step]))
            _take(node, event)
    for counted in await reading.counted(execution_id):
        _count(tree, counted)
    for event in await reading.failed_iterations(execution_id, MOST_ITERATIONS * 20):
        _failed(tree, event)
    _still_open(tree, head.state)
    if depth < DEEPEST:
        await _children(reading, tree, depth)
    return tree


def _take(node: Node, event: Event) -> None:
    fact = event.fact
    if fact.task is None:
        return
    task = node.tasks.setdefault(fact.task, TaskLine(fact.task))
    match fact:
        case facts.TaskStarted():
            task.kind, task.state = fact.kind, "running"
            task.runs += fact.attempt in (None, 1)
            task.attempts = max(task.attempts, fact.attempt or 1)
        case facts.TaskAttemptFailed():
            task.state, task.error = "retrying", text_of(fact.error)
        case facts.TaskDone():
            task.state, task.error = "done", None
        case facts.TaskFailed():
            task.state, task.error = "failed", text_of(fact.error)


def _count(tree: Tree, counted: Counted) -> None:
    node = tree.nodes.get(counted.step or "")
    if node is None:
        return
    loop = node.line.loop
    if loop is not None and counted.name == "loop.iteration.done":
        loop.done += counted.times
    elif loop is not None and counted.name == "loop.iteration.failed":
        loop.failed += counted.times
    elif counted.task is not None:
        task = node.tasks.setdefault(counted.task, TaskLine(counted.task, state="done"))
        task.attempts = max(task.attempts, counted.attempt or 1)
        if counted.name == "task.started":
            task.runs += counted.times
            node.line.attempt = max(node.line.attempt, counted.attempt or 1)
        elif counted.name == "task.failed":
            task.state = "failed"


def _failed(tree: Tree, event: Event) -> None:
    node = tree.nodes.get(event.fact.step or "")
    fact = event.fact
    if node is None or not isinstance(fact, facts.IterationFailed):
        return
    if len(node.failures) < MOST_ITERATIONS:
        node.failures.append((fact.iteration or "", text_of(fact.error)))


def _still_open(tree: Tree, state: State) -> None:
    """What the state knows better than the log's outline: who waits, how far loops are."""
    for token in state.waiting.values():
        node = tree.nodes.get(token.step)
        if node is not None:
            node.line.state, node.line.since = "waiting", token.arrived_at
    for run in state.runs.values():
        _running(tree.nodes.get(run.step), run)


def _running(node: Node | None, run: Run) -> None:
    if node is None:
        return
    started = any(lease.started for lease in run.leases.values())
    if node.line.state == "queued" and started:
        node.line.state = "running"
    if run.cancelling is not None:
        node.line.note = f"is being cancelled: {run.cancelling}"


async def _children(reading: Reading, tree: Tree, depth: int) -> None:
    children = await reading.children(tree.entry.execution_id)
    steps = {child: step async for child, step in _askers(reading, tree)} if children else {}
    for child in children[:MOST_CHILDREN]:
        node = tree.nodes.get(steps.get(child.execution_id, ""))
        if node is not None:
            node.children.append(await outline(reading, child.execution_id, depth + 1))


async def _askers(reading: Reading, tree: Tree) -> AsyncIterator[tuple[str, str]]:
    async for event in reading.matching(tree.entry.execution_id, like="child.requested"):
        if isinstance(event.fact, facts.ChildRequested) and event.fact.step is not None:
            yield event.fact.child, event.fact.step


def _node_json(node: Node, now: str) -> Value:
    line = node.line
    loop: Value = None
    if line.loop is not None:
        loop = {"total": line.loop.total, "done": line.loop.done, "failed": line.loop.failed}
    seconds = line.seconds(now)
    return {
        "step": line.step,
        "state": line.state,
        "runs": line.runs,
        "attempts": line.attempt,
        "loop": loop,
        "startedAt": line.since,
        "finishedAt": line.until,
        "durationMs": None if seconds is None else round(seconds * 1000),
        "error": line.note,
        "tasks": [task.as_json() for task in node.tasks.values()],
        "iterations": [{"iteration": i, "error": error} for i, error in node.failures],
        "children": [{**child.entry.as_json(), "tree": child.as_json()} for child in node.children],
    }


# For people


def rendered(tree: Tree, lines: Lines) -> Iterator[str]:
    """The tree in lines."""
    entry = tree.entry
    style = lines.style
    took = ""
    if entry.started_at:
        took = seconds_text(between(entry.started_at, entry.finished_at or tree.now))
    reason = f" ({entry.reason})" if entry.reason and entry.reason != entry.phase else ""
    yield f"{style(printable(entry.playbook), 'bold')} {entry.phase}{reason} {style(took, 'dim')}"
    if entry.message and entry.phase != "Succeeded":
        yield f"  {printable(entry.message)}"
    nodes = list(tree.nodes.values())
    for index, node in enumerate(nodes):
        last = index == len(nodes) - 1
        yield from _node(node, tree.now, lines, "└─ " if last else "├─ ", "   " if last else "│  ")


def _node(node: Node, now: str, lines: Lines, branch: str, indent: str) -> Iterator[str]:
    yield branch + lines.step(node.line, 0, now)
    below: list[str] = []
    for task in node.tasks.values():
        below.append(_task(task, lines))
    below += [
        f"{lines.glyph('failed')} [{printable(i)}] {printable(error)}" for i, error in node.failures
    ]
    for text in below:
        yield f"{indent}  {text}"
    for child in node.children:
        for text in rendered(child, lines):
            yield (
                f"{indent}  ↳ {text}"
                if not text.startswith((" ", "├", "└", "│"))
                else (f"{indent}    {text}")
            )


def _task(task: TaskLine, lines: Lines) -> str:
    parts = [lines.glyph(task.state), printable(task.task)]
    if task.kind:
        parts.append(lines.style(printable(task.kind), "dim"))
    if task.runs > 1:
        parts.append(f"×{task.runs}")
    if task.attempts > 1:
        parts.append(f"attempts {task.attempts}")
    if task.error:
        parts.append(lines.style(f"— {printable(task.error)}", "dim"))
    return " ".join(parts)
