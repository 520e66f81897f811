"""One seed, one schedule: engine, store in memory and workers, with faults between any two steps.

Everything is drawn from the seed: the playbook, what its tools answer, in which order things are
done, which posts are lost, doubled or late, who crashes when, and how the clock goes. After a while
the faults stop, and the execution has to end as the reference says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

from noetl_core.engine import Program
from noetl_core.engine.events import ChildFinished, Event
from noetl_core.engine.transition import Fence
from noetl_core.engine.triggers import (
    Cancel,
    CancelChild,
    CancelMode,
    ChildEnded,
    CreateChild,
    Patch,
    Reported,
    Resume,
    StartChild,
    Suspend,
    TellParent,
    Tick,
    Trigger,
    Verdict,
    WorkerLost,
)
from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_operator.store.memory import Memory, iso
from noetl_operator.store.port import NewExecution
from tests.support.generated import Made
from tests.support.simulation_checks import (
    Checker,
    Recorded,
    check_log,
    check_queue,
    check_replay,
)
from tests.support.simulation_faults import CALM, Faults, faults_of, wild_faults
from tests.support.simulation_operator import Operator, Work
from tests.support.simulation_worker import Job, World

LEASE_TTL_S = 30.0
FROM_OUTSIDE = (Patch, Suspend, Resume, Cancel, ChildEnded)
"""Whoever asks for these asks again until they were taken."""
PATIENCE = 4000
"""Steps without faults after which an execution that has not ended is stuck."""


class Stuck(AssertionError):
    """Nothing goes on although the execution has not ended."""


@dataclass
class _Post:
    """A report on its way."""

    job: Job
    trigger: Reported | StartChild
    number: int
    child: str | None = None

    @property
    def key(self) -> tuple[int, str | None]:
        return self.job.number, self.child


@dataclass
class _Worker:
    name: str
    jobs: list[Job] = field(default_factory=list)
    paused: bool = False


class Simulation:
    """One run of one playbook."""

    def __init__(self, made: Made, random: Random, faults: Faults, workers: int = 2) -> None:
        self.made, self.random, self.faults = made, random, faults
        self.time = datetime(2026, 1, 1, tzinfo=UTC)
        self.memory = Memory(lambda: self.time)
        execution_id = str(UUID(int=(0x7 << 76) | (0x2 << 62) | 1))
        self.program = Program.of(
            made.playbook, execution_id=execution_id, name="one", namespace="here"
        )
        self.execution_id = execution_id
        self.checker = Checker(execution_id)
        self.deadline_at: str | None = None
        self.world = World(
            made.playbook, made.script, self.memory, self.program.execution, self.program.workload
        )
        self.workers = [_Worker(f"w{n}") for n in range(workers)]
        self.operators = [Operator("op0", self.memory, self.program)]
        self.born = 1
        self.posts: list[_Post] = []
        self.calls: list[Trigger] = []
        """From outside, waiting to be taken."""
        self.patches = list(made.patches)
        self.outstanding: dict[tuple[int, str | None], int] = {}
        """Job (and child it asks for) → the number of its post that is on its way."""
        self.numbers = 0
        self.living: list[str] = []
        """Child executions under way."""
        self.cancelled_children: set[str] = set()
        self.refused: set[str] = set()
        self.ended_children: set[str] = set()
        """Whose end is in the log."""

    # The run

    def run(self) -> list[Event]:
        self.memory.create(
            NewExecution(
                execution_id=self.execution_id, namespace="here", name="one",
                playbook_name="made", digest="", document={}, workload={},
            )
        )  # fmt: skip
        for _ in range(self.faults.steps):
            if self.is_over:
                break
            self.faulty_step()
        self.calm_down()
        log = self.memory.executions[self.execution_id].log
        check_log(log)
        assert not self.memory.rows, "commands are left in the queue of a finished execution"
        return log

    @property
    def is_over(self) -> bool:
        return self.memory.executions[self.execution_id].state.phase.is_final

    def replay(self) -> None:
        check_replay(self.program, self.memory, self.checker.history)

    def chance(self, percent: int) -> bool:
        return percent > 0 and self.random.randrange(100) < percent

    def faulty_step(self) -> None:
        self.time += timedelta(milliseconds=self.random.choice([1, 10, 200]))
        if self.chance(6):
            self.pass_time(self.random.choice([3, 6, 12]))
        if self.chance(self.faults.worker):
            self.worker_fault()
        if self.chance(self.faults.operator):
            self.operator_fault()
        if self.chance(self.faults.suspend):
            self.calls.append(self.random.choice([Suspend(), Resume(), Tick()]))
        if self.chance(self.faults.cancel):
            self.calls.append(Cancel(mode=self.random.choice(list(CancelMode))))
        if self.patches and self.chance(4):
            self.call_patch()
        options = self.options()
        if options:
            options[self.random.randrange(len(options))]()
        else:
            self.pass_time(2)

    def time_out(self) -> None:
        """Posts that got lost with whoever had them are posted again."""
        for operator in self.operators:
            self.rescue(operator)
        alive = {post.number for post in self.posts}
        alive |= {work.post for operator in self.operators for work in operator.works}
        self.outstanding = {key: n for key, n in self.outstanding.items() if n in alive}

    def options(self) -> list[Callable[[], object]]:
        """All that could happen now."""
        self.time_out()
        found: list[Callable[[], object]] = []
        if self.memory.outbox:
            found.append(self.act)
        if self.living:
            found.append(self.end_child)
        for operator in self.operators:
            found += self.operator_options(operator)
        for worker in self.workers:
            if worker.paused:
                continue
            if self.queued and len(worker.jobs) < 4:
                found.append(lambda w=worker: self.lease(w))  # type: ignore[misc]
            for job in worker.jobs:
                found.append(lambda j=job: j.step(self.random))  # type: ignore[misc]
                if job.asking:
                    found.append(lambda j=job: self.children_of(j))  # type: ignore[misc]
                if (job.number, None) not in self.outstanding and self.wants_to_post(job):
                    found.append(lambda j=job: self.post(j))  # type: ignore[misc]
        return found

    def operator_options(self, operator: Operator) -> list[Callable[[], object]]:
        if operator.shard is None:
            return [operator.lead]
        found: list[Callable[[], object]] = (
            [lambda: self.commit(operator)] * len(operator.works) * 3
        )
        if len(operator.works) > 1:
            return found
        found.append(lambda: self.sweep(operator))
        for number in range(len(self.posts)):
            found.append(lambda n=number: self.take_post(operator, n))  # type: ignore[misc]
        if self.calls:
            found.append(lambda: self.take_call(operator))
        return found

    # The operators

    def sweep(self, operator: Operator) -> bool:
        trigger = operator.sweep(self.deadline_at)
        if trigger is None:
            return False
        operator.decide(trigger)
        return True

    def take_call(self, operator: Operator) -> None:
        operator.decide(self.calls.pop(0))

    def take_post(self, operator: Operator, number: int) -> None:
        post = self.posts.pop(number)
        if self.chance(self.faults.double_post):
            self.posts.append(post)
        if self.chance(self.faults.lost_post):
            return
        operator.decide(post.trigger, lambda verdict: self.answer(post, verdict), post.number)

    def commit(self, operator: Operator) -> None:
        work = self.random.choice(operator.works)
        if not operator.commit(work):
            self.try_again(operator, work)
            return
        if work.transition.events:
            recorded = Recorded(work.trigger, work.now, work.transition)
            self.checker.committed(recorded, deep=self.chance(10))
            self.ended_children |= {
                event.fact.child
                for event in work.transition.events
                if isinstance(event.fact, ChildFinished)
            }
            check_queue(self.memory, work.transition.state)
        if work.decision.verdict is Verdict.REFUSED and isinstance(work.trigger, Patch):
            self.calls.append(work.trigger)
        if work.reply is not None and not self.chance(self.faults.lost_answer):
            work.reply(work.decision.verdict)

    def try_again(self, operator: Operator, work: Work) -> None:
        """The router's way out of a conflict: read again, decide again."""
        if operator.shard is not None:
            operator.decide(work.trigger, work.reply, work.post)
        elif isinstance(work.trigger, FROM_OUTSIDE):
            self.calls.append(work.trigger)

    def operator_fault(self) -> None:
        """A crash at any point, or a second process that waits for the first one's time to end."""
        if len(self.operators) > 1 or self.chance(50):
            dead = self.operators.pop(self.random.randrange(len(self.operators)))
            dead.forget()
            self.rescue(dead)
        if len(self.operators) < 2:
            self.operators.append(Operator(f"op{self.born}", self.memory, self.program))
            self.born += 1

    def rescue(self, operator: Operator) -> None:
        """Calls from outside that it lost are repeated by whoever made them."""
        self.calls += [one for one in operator.lost if isinstance(one, FROM_OUTSIDE)]
        operator.lost = []

    # The workers

    @property
    def queued(self) -> bool:
        return any(row.owner is None for row in self.memory.rows.values())

    def lease(self, worker: _Worker) -> None:
        for leased in self.memory.lease("default", worker.name, 1, LEASE_TTL_S):
            ctx = self.memory.executions[self.execution_id].state.ctx
            self.numbers += 1
            worker.jobs.append(Job(self.world, worker.name, leased, dict(ctx), self.numbers))

    def wants_to_post(self, job: Job) -> bool:
        return bool(job.waiting or job.end is not None or len(job.buffer) > 2)

    def post(self, job: Job) -> bool:
        report = job.report()
        if report is None:
            return False
        self.send(job, report)
        return True

    def send(self, job: Job, trigger: Reported | StartChild, child: str | None = None) -> None:
        self.numbers += 1
        post = _Post(job, trigger, self.numbers, child)
        self.outstanding[post.key] = self.numbers
        self.posts.append(post)

    def children_of(self, job: Job) -> bool:
        """Ask for children, and hear of those that ended; whether there was anything to do."""
        busy = False
        for child, asking in list(job.asking.items()):
            ended = child in self.ended_children
            if asking.taken and ended:
                job.child_ended(child, self.outcome_of(child))
                busy = True
            elif not asking.taken and (job.number, child) not in self.outstanding:
                self.send(job, asking.wish, child)
                busy = True
        return busy

    def answer(self, post: _Post, verdict: Verdict) -> None:
        if self.outstanding.get(post.key) != post.number:
            return
        del self.outstanding[post.key]
        if isinstance(post.trigger, StartChild):
            self.child_answered(post, verdict)
        elif not post.job.answered(post.trigger, verdict):
            self.drop(post.job)

    def child_answered(self, post: _Post, verdict: Verdict) -> None:
        asking = post.job.asking.get(post.child or "")
        if verdict is Verdict.GONE:
            self.drop(post.job)
        elif asking is not None and verdict is Verdict.REFUSED:
            self.refused.add(post.child or "")
            asking.taken = True
        elif asking is not None:
            asking.taken = True

    def outcome_of(self, child: str) -> Outcome:
        if child in self.refused or child in self.cancelled_children:
            kind = ErrorKind.CHILD_FAILED
            return Outcome(error=TaskError(kind=kind, message="the child was cancelled"))
        return self.world.children[child]

    def act(self) -> bool:
        """Do what the outbox asks for: children begin, end, are cancelled."""
        for action in self.memory.actions(0, 1):
            match action.effect:
                case CreateChild(child=child):
                    self.living.append(child)
                case CancelChild(child=child):
                    self.cancelled_children.add(child)
                case TellParent():
                    raise AssertionError("nobody is this execution's parent")
            if not self.chance(self.faults.lost_answer):
                self.memory.acted([action.id])
            return True
        return False

    def end_child(self) -> None:
        """A child execution ends; its parent is told, perhaps more than once."""
        child = self.living.pop(self.random.randrange(len(self.living)))
        outcome = self.outcome_of(child)
        phase = "Succeeded" if outcome.error is None else "Failed"
        ended = ChildEnded(
            child=child, phase=phase, reason=phase, message=None, result=outcome.result
        )
        self.calls.append(ended)

    def drop(self, job: Job) -> None:
        for worker in self.workers:
            worker.jobs = [one for one in worker.jobs if one is not job]

    def worker_fault(self) -> None:
        worker = self.random.choice(self.workers)
        if any(job.epoch > self.faults.most_losses for job in worker.jobs):
            return
        match self.random.randrange(3):
            case 0:
                worker.jobs = []
            case 1:
                worker.paused = not worker.paused
            case _:
                if worker.jobs:
                    self.hand_back(worker.jobs[0])

    def hand_back(self, job: Job) -> None:
        self.drop(job)
        gone = WorkerLost(
            lease_id=job.lease_id, epoch=job.epoch, reason="handed back", handed_back=True
        )
        self.calls.append(gone)

    # Time

    def pass_time(self, seconds: float) -> None:
        """Leases of workers that are well are prolonged; leaders keep their shard if they can."""
        self.time += timedelta(seconds=seconds)
        for worker in self.workers:
            if not worker.paused:
                self.heartbeat(worker)
        if not self.chance(self.faults.operator * 5):
            for operator in self.operators:
                if operator.shard is not None:
                    operator.lead()

    def heartbeat(self, worker: _Worker) -> None:
        held = self.memory.heartbeat([Fence(j.lease_id, j.epoch) for j in worker.jobs], LEASE_TTL_S)
        for job in list(worker.jobs):
            if job.lease_id not in held:
                self.drop(job)
            elif held[job.lease_id]:
                job.stop()

    # Without faults, to the end

    def calm_down(self) -> None:
        self.faults = CALM
        self.calls.append(Resume())
        for worker in self.workers:
            worker.paused = False
        idle = 0
        for _ in range(PATIENCE):
            if self.is_over:
                return
            self.time += timedelta(milliseconds=1)
            if self.round():
                idle = 0
                continue
            idle += 1
            if self.patches:
                self.call_patch()
            if self.memory.executions[self.execution_id].state.suspended:
                self.calls.append(Resume())
            self.pass_time(4)
            if idle > 40:
                break
        state = self.memory.executions[self.execution_id].state
        raise Stuck(f"{state.phase} at seq {state.seq}, runs {list(state.runs.values())}")

    def call_patch(self) -> None:
        values = self.patches.pop(0)
        self.calls.append(Patch(id=f"p{len(self.patches)}", set=values, by="test"))

    def round(self) -> bool:
        """Everyone does one thing; False where nobody had any."""
        self.time_out()
        busy = self.act()
        if self.living:
            self.end_child()
            busy = True
        for operator in self.operators:
            busy |= self.operator_round(operator)
        for worker in self.workers:
            if self.queued:
                self.lease(worker)
                busy = True
            for job in list(worker.jobs):
                busy |= job.step(self.random)
                busy |= self.children_of(job)
                if (job.number, None) not in self.outstanding and self.wants_to_post(job):
                    busy |= self.post(job)
        return busy

    def operator_round(self, operator: Operator) -> bool:
        if operator.shard is None:
            return operator.lead()
        if operator.works:
            self.commit(operator)
        elif self.posts:
            self.take_post(operator, 0)
        elif self.sweep(operator):
            return True
        elif self.calls:
            self.take_call(operator)
        else:
            return False
        return True


def simulate_wild(made: Made, seed: int) -> Simulation:
    """The same without bounds: workers are lost for good, someone cancels, time runs out."""
    random = Random(seed)
    simulation = Simulation(made, random, wild_faults(random), random.randint(1, 3))
    if random.randrange(100) < 15:
        simulation.deadline_at = iso(simulation.time + timedelta(seconds=random.randint(0, 60)))
    simulation.run()
    return simulation


def simulate(made: Made, seed: int) -> Simulation:
    """Run one schedule to its end; raises where an invariant breaks."""
    random = Random(seed)
    simulation = Simulation(made, random, faults_of(random, made), random.randint(1, 3))
    simulation.run()
    return simulation
