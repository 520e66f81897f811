"""Local loops: which iterations may run when, and what becomes of them (rules E2–E7, K26–K29)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl_core.engine.events import IterationDone, IterationFailed
from noetl_core.engine.triggers import EndStatus, RunEnd
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.pipeline.loops import LocalLoop
from noetl_core.pipeline.plan import Plan
from noetl_core.pipeline.requests import PipelineEnd
from noetl_core.pipeline.run import pipeline
from noetl_core.pipeline.scopes import Iteration, RunScope
from noetl_core.values import Value
from tests.support.driving import Driver, plan_of, scope, stored

BOOM = TaskError(kind=ErrorKind.PARSE, message="boom")
CANCELLED = TaskError(kind=ErrorKind.CANCELLED, message="told to stop")


@dataclass
class Going:
    """A local loop with its iterations in the hands of a test."""

    plan: Plan
    items: Value
    window: int = 1
    scope: RunScope = field(default_factory=scope)
    iters: tuple[dict[str, Value], ...] = ()
    path: str | None = None
    results: dict[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.driver = Driver(self.plan, scope=self.scope, results=self.results)
        self.loop = LocalLoop(
            self.plan, self.scope, self.items, self.window, iters=self.iters, path=self.path
        )
        self.open: dict[str, Iteration] = {}

    def take(self, limit: int | None = None) -> list[str]:
        taken = self.driver.drive(self.loop.take(limit))
        self.open |= {one.path: one for one in taken}
        return [one.path for one in taken]

    def finish(
        self, path: str, error: TaskError | None = None
    ) -> IterationDone | IterationFailed | None:
        del self.open[path]
        task = "t" if error else None
        return self.loop.ended(path, PipelineEnd(result=path, error=error, task=task))

    def run_all(self, fails: Callable[[str], bool] = lambda _: False) -> tuple[list[str], RunEnd]:
        order: list[str] = []
        while not self.loop.is_over:
            order += self.take()
            if self.open:
                path = next(iter(self.open))
                self.finish(path, BOOM if fails(path) else None)
        return order, self.loop.end()


def looping(spec: str = "", inner: str = "", step: str = "") -> Plan:
    body = f"loop: {{in: [], iterator: x{spec}{inner}}}\ntool: {{kind: noop}}\n{step}"
    return plan_of(body)


PARALLEL = ", spec: {mode: parallel, max_in_flight: 3, policy: {exec: local}}"
BEST_EFFORT = "spec: {policy: {failure: {mode: best_effort}}}"


def inner(of: str, spec: str = "") -> str:
    return f", loop: {{in: {of}, iterator: y{spec}}}"


def test_E2_sequential_keeps_the_order_one_at_a_time() -> None:
    going = Going(looping(), ["a", "b", "c"])
    assert going.take() == ["0"]
    assert going.take() == []
    assert going.open["0"].iter == {"x": "a", "index": 0, "total": 3}
    going.finish("0")
    assert going.take() == ["1"]
    going.finish("1")
    assert going.take() == ["2"]
    assert not going.loop.is_over
    going.finish("2")
    assert going.loop.is_over
    assert going.loop.end() == RunEnd(status=EndStatus.OK)


def test_E2_E3_parallel_runs_up_to_its_window() -> None:
    going = Going(looping(PARALLEL), list(range(5)), window=3)
    assert going.take() == ["0", "1", "2"]
    going.finish("1")
    assert going.take() == ["3"]
    going.finish("0")
    going.finish("3")
    assert going.take() == ["4"]


def test_take_gives_no_more_than_it_is_asked_for() -> None:
    going = Going(looping(PARALLEL), list(range(5)), window=3)
    assert going.take(2) == ["0", "1"]
    assert going.take(2) == ["2"]


def test_E1_an_empty_list_is_over_at_once() -> None:
    going = Going(looping(), [])
    assert going.take() == []
    assert going.loop.is_over
    assert going.loop.end().status is EndStatus.OK


def test_J_iterations_are_reported_started_and_done_with_their_results() -> None:
    going = Going(looping(), [1])
    going.take()
    assert going.driver.names == ["loop.iteration.started"]
    assert going.driver.facts[0].iteration == "0"
    done = going.finish("0")
    assert isinstance(done, IterationDone)
    assert (done.iteration, done.result, done.step) == ("0", "0", "s")


def test_E4_nested_loops_read_the_outer_iteration_and_chain_to_it() -> None:
    plan = looping(inner=inner("'{{ iter.x.list }}'"))
    going = Going(plan, [{"list": [1, 2]}, {"list": [3]}])
    assert going.take() == ["0.0"]
    assert going.open["0.0"].iter == {
        "y": 1,
        "index": 0,
        "total": 2,
        "parent": {"x": {"list": [1, 2]}, "index": 0, "total": 2},
    }
    going.finish("0.0")
    assert going.take() == ["0.1"]
    going.finish("0.1")
    assert going.take() == ["1.0"]
    opened = going.driver.of("loop.opened")
    assert [(f.iteration, f.payload()["total"]) for f in opened] == [("0", 2), ("1", 1)]


def test_E4_three_levels_chain_parent_to_parent() -> None:
    deepest = "loop: {in: '{{ [iter.y, iter.parent.x] }}', iterator: z}"
    deep = f", loop: {{in: '{{{{ [iter.x] }}}}', iterator: y, {deepest}}}"
    going = Going(looping(inner=deep), ["v"])
    order, _ = going.run_all()
    assert order == ["0.0.0", "0.0.1"]
    going = Going(looping(inner=deep), ["v"])
    going.take()
    here = going.open["0.0.0"].iter
    assert here["parent"]["parent"] == {"x": "v", "index": 0, "total": 1}  # type: ignore[index,call-overload]


def test_E4_the_levels_of_the_control_plane_are_the_outer_iterations() -> None:
    plan = looping(inner=inner("'{{ iter.x }}'"))
    outer: dict[str, Value] = {"x": [7, 8], "index": 4, "total": 9}
    going = Going(plan, [7, 8], iters=(outer,), path="4")
    order, end = going.run_all()
    assert order == ["4.0", "4.1"]
    assert end.status is EndStatus.OK
    again = Going(plan, [7, 8], iters=(outer,), path="4")
    again.take()
    assert again.open["4.0"].iter == {"y": 7, "index": 0, "total": 2, "parent": outer}


def test_K27_windows_are_per_level_and_inner_ones_may_be_templates() -> None:
    spec = ", spec: {mode: parallel, max_in_flight: '{{ ctx.w }}', policy: {exec: local}}"
    plan = looping(PARALLEL, inner("'{{ iter.x }}'", spec))
    going = Going(plan, [[1] * 4] * 4, window=2, scope=scope(ctx={"w": 3}))
    assert going.take() == ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]
    going.finish("1.0")
    assert going.take() == ["1.3"]


def test_K27_a_sequential_outer_level_waits_for_all_of_its_inner_list() -> None:
    going = Going(looping(inner=inner("'{{ iter.x }}'", PARALLEL)), [[1, 2], [3]])
    assert going.take() == ["0.0", "0.1"]
    going.finish("0.1")
    assert going.take() == []
    going.finish("0.0")
    assert going.take() == ["1.0"]


def test_K27_empty_inner_lists_are_reported_and_passed_over() -> None:
    going = Going(looping(inner=inner("'{{ iter.x }}'")), [[], [1], []])
    order, end = going.run_all()
    assert order == ["1.0"]
    assert end.status is EndStatus.OK
    opened = [(f.iteration, f.payload()["total"]) for f in going.driver.of("loop.opened")]
    assert opened == [("0", 0), ("1", 1), ("2", 0)]


def test_E5_fail_fast_stops_the_rest_with_the_first_error() -> None:
    going = Going(looping(PARALLEL), list(range(9)), window=3)
    going.take()
    failed = going.finish("1", BOOM)
    assert isinstance(failed, IterationFailed)
    assert (failed.task, failed.iteration) == ("t", "1")
    assert going.loop.stopping == BOOM
    assert going.take() == []
    assert not going.loop.is_over
    assert going.finish("0", CANCELLED) is None
    assert isinstance(going.finish("2"), IterationDone)
    assert going.loop.end() == RunEnd(status=EndStatus.ERROR, error=BOOM, task="t", iteration="1")


def test_E5_best_effort_runs_them_all() -> None:
    going = Going(looping(step=BEST_EFFORT), [1, 2, 3])
    order, end = going.run_all(fails=lambda path: path != "1")
    assert order == ["0", "1", "2"]
    assert end.status is EndStatus.OK


@pytest.mark.parametrize("step", ["", BEST_EFFORT])
def test_E1_an_inner_in_that_is_no_list_fails_the_step_naming_the_type(step: str) -> None:
    going = Going(looping(inner=inner("'{{ iter.x }}'"), step=step), [[1], 5])
    going.run_all()
    end = going.loop.end()
    assert end.error is not None
    assert (end.error.kind, end.iteration) == ("schema", "1")
    assert "a number" in end.error.message


@pytest.mark.parametrize("window", [0, -1, 1.5, "3", None, True])
def test_E2_a_window_that_is_no_whole_number_fails_the_step(window: Value) -> None:
    spec = ", spec: {mode: parallel, max_in_flight: '{{ ctx.w }}', policy: {exec: local}}"
    going = Going(looping(inner=inner("[1]", spec)), [1], scope=scope(ctx={"w": window}))
    assert going.take() == []
    error = going.loop.end().error
    assert error is not None
    assert "max_in_flight" in error.message


def test_K8_an_inner_in_that_cannot_be_rendered_is_a_template_error() -> None:
    going = Going(looping(inner=inner("'{{ iter.x.no }}'")), [{}])
    going.take()
    error = going.loop.end().error
    assert error is not None
    assert (error.kind, "iter.x.no" in error.message) == ("template", True)


def test_K18_more_iterations_than_max_iterations_are_a_limit() -> None:
    head = "executor: {kind: pool, spec: {policy: {limits: {max_iterations: 3}}}}"
    plan = plan_of(f"loop: {{in: [], iterator: x{inner('[1, 2]')}}}\ntool: {{kind: noop}}", head)
    going = Going(plan, [1, 2, 3])
    order, end = going.run_all()
    assert order == ["0.0", "0.1"]
    assert end.error is not None
    assert end.error.kind == "limit"


def test_H2_lists_and_inner_lists_may_be_references() -> None:
    lists: Value = [[1], [2]]
    held = {str(stored(v)["key"]): v for v in (lists, [9, 9])}
    going = Going(looping(), stored(lists), results=held)
    assert going.take() == ["0"]
    assert going.open["0"].iter["total"] == 2
    nested = Going(
        looping(inner=inner("'{{ ctx.l }}'")),
        [1],
        scope=scope(ctx={"l": stored([9, 9])}),
        results=held,
    )
    assert nested.run_all()[0] == ["0.0", "0.1"]


def test_B5_items_of_the_control_plane_are_data_and_no_templates() -> None:
    going = Going(looping(), ["{{ ctx.secret }}"])
    going.take()
    assert going.open["0"].iter["x"] == "{{ ctx.secret }}"


def test_K22_stopping_from_outside_cuts_off_what_runs() -> None:
    late = TaskError(kind=ErrorKind.TIMEOUT, code="STEP_TIMEOUT", message="late")
    going = Going(looping(step=BEST_EFFORT), [1, 2])
    going.take()
    going.loop.stop(late)
    assert going.finish("0", late) is None
    assert going.loop.end() == RunEnd(status=EndStatus.ERROR, error=late)


def test_cancelling_from_outside_is_a_cancelled_end() -> None:
    going = Going(looping(), [1, 2])
    going.take()
    going.loop.stop(CANCELLED)
    going.finish("0", CANCELLED)
    assert going.loop.end().status is EndStatus.CANCELLED


WRITING = """
loop: {in: [], iterator: x, spec: {policy: {reducers: {total: sum, all: append}}}}
tool:
  kind: noop
  result: "{{ ctx.seen | default([]) }}"
  spec:
    policy:
      rules:
        - else:
            then:
              do: continue
              set_ctx: {total: "{{ iter.x }}", seen: "{{ ctx.seen | default([]) + [iter.x] }}"}
"""


def run_writing(items: list[Value], ctx: dict[str, Value]) -> tuple[Driver, list[PipelineEnd]]:
    plan, run = plan_of(WRITING), scope(ctx=ctx)
    driver = Driver(plan, scope=run)
    loop = LocalLoop(plan, run, items, 1)
    ends: list[PipelineEnd] = []
    while not loop.is_over:
        for one in driver.drive(loop.take()):
            ends.append(driver.drive(pipeline(plan, run, one)))
            loop.ended(one.path, ends[-1])
    return driver, ends


def test_K28_the_next_iteration_sees_ctx_of_the_one_before() -> None:
    _, ends = run_writing([1, 2, 3], {})
    assert [end.result for end in ends] == [[], [1], [1, 2]]


def test_K29_reduced_keys_are_deferred_not_visible_and_leave_with_the_iteration() -> None:
    driver, ends = run_writing([1, 2], {"total": 10})
    assert [end.writes for end in ends] == [{"total": 1}, {"total": 2}]
    assert driver.scope.ctx.value == {"total": 10, "seen": [1, 2]}
    patched = driver.payloads("ctx.patched")[0]
    assert patched["set"] == {"total": 1, "seen": [1]}
    assert patched["deferred"] == ["total"]


@pytest.mark.parametrize(("value", "ctx"), [("five", {}), (True, {}), (1, {"total": "ten"})])
def test_K29_sum_takes_numbers_and_the_write_says_so(value: Value, ctx: dict[str, Value]) -> None:
    _, ends = run_writing([value], ctx)
    error = ends[0].error
    assert error is not None
    assert error.kind == "ctx_conflict"
    assert "`sum`" in error.message


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=5),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 2**32),
)
def test_E2_K27_every_iteration_runs_once_and_no_window_is_overrun(
    lists: list[list[int]], outer: int, inside: int, seed: int
) -> None:
    spec = f", spec: {{mode: parallel, max_in_flight: {inside}, policy: {{exec: local}}}}"
    going = Going(looping(PARALLEL, inner("'{{ iter.x }}'", spec)), lists, window=outer)  # type: ignore[arg-type]
    random, seen = Random(seed), list[str]()
    while not going.loop.is_over:
        seen += going.take(random.randint(1, 9))
        heads = [path.split(".")[0] for path in going.open]
        assert len(set(heads)) <= outer
        assert all(heads.count(head) <= inside for head in heads)
        if going.open:
            going.finish(random.choice(sorted(going.open)))
    assert sorted(seen) == sorted(
        f"{i}.{j}" for i, one in enumerate(lists) for j in range(len(one))
    )


def test_memory_does_not_grow_with_the_iterations_that_ended() -> None:
    plan, run = looping(), scope()
    items: list[Value] = list(range(60_000))
    loop = LocalLoop(plan, run, items, 1)

    def through(count: int) -> None:
        for _ in range(count):
            for one in _silent(loop):
                loop.ended(one.path, PipelineEnd(result=one.path))

    through(10_000)
    tracemalloc.start()
    through(1_000)
    before, _ = tracemalloc.get_traced_memory()
    through(20_000)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 20_000


def _silent(loop: LocalLoop) -> list[Iteration]:
    generator = loop.take()
    while True:
        try:
            generator.send(None)
        except StopIteration as stop:
            taken: list[Iteration] = stop.value
            return taken
