"""What is to be done about an Execution, by what is seen of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from noetl_core.engine.state import Ending, Phase, Reason, State
from noetl_core.engine.triggers import Cancel, CancelMode, Patch, Resume, Suspend
from noetl_core.execution import load_spec
from noetl_operator.kube.plan import Abandon, Begin, Plan, Remove, Seen, Tell, decide, spec_key
from noetl_operator.store.objects import Link, View

NOW = "2026-11-18T10:00:10.000000Z"
ENDED = "2026-11-18T10:00:00.000000Z"
LINK = Link(uid="u1", execution_id="e1", namespace="n", name="x", spec_key="k")
META: dict[str, object] = {"name": "x", "namespace": "n", "uid": "u1", "generation": 1}


def obj(**spec: object) -> dict[str, object]:
    return {"metadata": dict(META), "spec": {"playbookRef": {"name": "p"}, **spec}}


def state(**fields: object) -> State:
    given: dict[str, object] = {"execution_id": "e1", "seq": 3, "phase": Phase.RUNNING}
    return State(**{**given, **fields})  # type: ignore[arg-type]


def seen(now: State | None = None, link: Link | None = LINK, **spec: object) -> Seen:
    found = obj(**spec)
    read = load_spec(found["spec"])  # type: ignore[arg-type]
    view = View(
        execution_id="e1",
        namespace="n",
        name="x",
        playbook="p",
        digest="d",
        problems=(),
        state=now or state(),
    )
    return Seen(
        object=found,
        spec=read.spec,
        problems=read.problems,
        link=link,
        view=view if link else None,
        now=NOW,
    )


def told(plan: Plan) -> list[object]:
    return [act.trigger for act in plan.acts if isinstance(act, Tell)]


def test_a_new_one_begins() -> None:
    assert decide(seen(link=None)).acts == (Begin(),)


def test_one_that_was_registered_and_not_started_begins() -> None:
    assert decide(seen(state(seq=0))).acts == (Begin(),)
    assert decide(replace(seen(), view=None)).acts == (Begin(),)


def test_a_new_one_that_is_suspended_is_held() -> None:
    plan = decide(seen(link=None, suspend=True))
    assert plan.acts == ()
    assert plan.idle is not None
    assert plan.idle.phase is Phase.SUSPENDED


def test_one_that_runs_as_it_should_is_left_alone() -> None:
    assert decide(seen()) == Plan()


def test_patches_are_told_once_each_and_in_order() -> None:
    patches = [{"id": str(i), "set": {"k": i}, "by": "me"} for i in range(3)]
    plan = decide(seen(state(patches=("1",)), ctxPatches=patches))
    assert [one.id for one in told(plan) if isinstance(one, Patch)] == ["0", "2"]


def test_a_patch_that_was_refused_is_not_tried_again() -> None:
    patches = [{"id": "big", "set": {"k": 1}}]
    assert decide(replace(seen(ctxPatches=patches), refused=frozenset({"big"}))) == Plan()


@pytest.mark.parametrize(
    ("spec", "now", "wanted"),
    [
        ({"suspend": True}, {}, Suspend),
        ({"suspend": True}, {"suspended": True}, None),
        ({"suspend": False}, {"suspended": True}, Resume),
        ({}, {"suspended": True}, Resume),
        ({"suspend": True}, {"ending": Ending(Phase.FAILED, Reason.STEP_FAILED, "")}, None),
        ({"cancel": "Graceful"}, {}, Cancel),
        ({"cancel": "Graceful"}, {"suspended": True}, Cancel),
        ({"cancel": "Graceful", "suspend": True}, {}, Cancel),
        ({"cancel": "Graceful"}, {"ending": Ending(Phase.CANCELLED, Reason.CANCELLED, "")}, None),
        ({"cancel": "Now"}, {"ending": Ending(Phase.CANCELLED, Reason.CANCELLED, "")}, Cancel),
        ({"cancel": "Now"}, {"phase": Phase.CANCELLED, "finished_at": ENDED}, None),
        ({"suspend": True}, {"phase": Phase.SUCCEEDED, "finished_at": ENDED}, None),
    ],
)
def test_wishes(spec: dict[str, object], now: dict[str, object], wanted: type | None) -> None:
    wishes = told(decide(seen(state(**now), **spec)))
    assert [type(one) for one in wishes] == ([wanted] if wanted else [])


def test_now_and_graceful_are_told_apart() -> None:
    for word, mode in (("Now", CancelMode.NOW), ("Graceful", CancelMode.GRACEFUL)):
        (wish,) = told(decide(seen(cancel=word)))
        assert isinstance(wish, Cancel)
        assert wish.mode is mode


def test_a_finished_one_is_removed_when_its_time_is_over() -> None:
    ended = state(phase=Phase.SUCCEEDED, finished_at=ENDED)
    assert decide(seen(ended)) == Plan()
    assert decide(seen(ended, ttlSecondsAfterFinished=10)).acts == (Remove(),)
    assert decide(seen(ended, ttlSecondsAfterFinished=0)).acts == (Remove(),)
    assert decide(seen(ended, ttlSecondsAfterFinished=60)) == Plan(again_s=50.0)


def test_one_that_git_made_again_stays() -> None:
    ended = state(phase=Phase.SUCCEEDED, finished_at=ENDED)
    again = replace(LINK, adopted=True)
    assert decide(seen(ended, again, ttlSecondsAfterFinished=0)) == Plan()


def test_a_removal_that_was_cut_off_goes_on() -> None:
    ended = state(phase=Phase.SUCCEEDED, finished_at=ENDED)
    assert decide(seen(ended, replace(LINK, removed=True))).acts == (Remove(),)


def test_one_whose_log_is_gone_is_left_alone() -> None:
    assert decide(replace(seen(), link=replace(LINK, forgotten=True), view=None)) == Plan()


def test_what_is_gone_is_abandoned_unless_the_operator_removed_it() -> None:
    gone = Seen(object=None, others=(LINK, replace(LINK, uid="u0", removed=True)), now=NOW)
    assert decide(gone).acts == (Abandon(LINK),)


def test_one_of_the_same_name_takes_the_place_of_the_one_before() -> None:
    old = replace(LINK, uid="u0")
    assert decide(replace(seen(link=None), others=(old,))).acts == (Abandon(old), Begin())


def test_one_that_is_being_deleted_ends_and_does_not_begin() -> None:
    found = obj()
    found["metadata"] = {**META, "deletionTimestamp": NOW}
    assert decide(replace(seen(), object=found)).acts == (Abandon(LINK),)
    assert decide(replace(seen(link=None), object=found)) == Plan()


def test_a_spec_that_cannot_be_read_is_refused() -> None:
    plan = decide(seen(link=None, playbook={"workflow": []}))
    assert plan.acts == ()
    assert plan.idle is not None
    assert plan.idle.phase is Phase.FAILED
    assert plan.idle.why.reason == "InvalidSpec"


def test_the_key_of_a_spec_is_what_never_changes_in_it() -> None:
    same = [obj(), obj(suspend=True, cancel="Now", ttlSecondsAfterFinished=5, ctxPatches=[])]
    assert len({spec_key(one) for one in same}) == 1
    assert spec_key(obj(workload={"a": 1})) != spec_key(obj())
