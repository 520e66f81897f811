"""What the API server refuses, and in which words."""

from __future__ import annotations

import pytest
import yaml

from e2e.cluster import Kubernetes
from e2e.crds.objects import Object, as_resource, playbook, refusal, with_step, with_task
from noetl_core.crds import refusals
from tests.support import seeds

ODD_VALUES: tuple[object, ...] = ("text", ["a", "list"], {"a": "mapping"}, 7, True)


def holder(place: str, name: str, keys: Object) -> Object:
    """A playbook that has the keys at a place of the language."""
    rule = {"when": True, "then": {"do": "continue"}}
    match place:
        case "root":
            return playbook(name, **keys)
        case "step":
            return with_step(name, **keys)
        case "step.spec":
            return with_step(name, spec=keys)
        case "policy":
            return with_step(name, spec={"policy": keys})
        case "admit":
            return with_step(name, spec={"policy": {"admit": keys}})
        case "admit.then":
            rules = [{"when": True, "then": {"allow": True} | keys}]
            return with_step(name, spec={"policy": {"admit": {"rules": rules}}})
        case "loop":
            return with_step(name, loop={"in": [], "iterator": "x"} | keys)
        case "loop.spec":
            return with_step(name, loop={"in": [], "iterator": "x", "spec": keys})
        case "task":
            return with_task(name, **keys)
        case "task.spec":
            return with_task(name, spec=keys)
        case "task.policy":
            return with_task(name, spec={"policy": {"rules": [rule]} | keys})
        case "rule":
            return with_task(name, spec={"policy": {"rules": [rule | keys]}})
        case "then":
            rules = [{"when": True, "then": {"do": "continue"} | keys}]
            return with_task(name, spec={"policy": {"rules": rules}})
        case "next":
            return with_step(name, next={"arcs": [{"step": "start"}]} | keys)
        case "arc":
            return with_step(name, next={"arcs": [{"step": "start"} | keys]})
    raise AssertionError(f"no test knows where {place} is")


@pytest.mark.parametrize("place", sorted(refusals.PLACES))
def test_A5_each_word_that_is_not_part_of_v10_is_refused_with_its_message(
    api: Kubernetes, place: str
) -> None:
    words = refusals.words_of(place)
    assert words
    things = [
        holder(place, f"w{number}-{odd}", {word: value})
        for number, word in enumerate(words)
        for odd, value in enumerate(ODD_VALUES)
    ]
    said = refusal(api, *things)
    for number, (word, message) in enumerate(words.items()):
        for odd in range(len(ODD_VALUES)):
            about = said.partition(f'"w{number}-{odd}" is invalid')[2].partition("The Playbook")[0]
            assert message in about, f"{word}: {about or said}"
            assert f".{word}: " in about


def test_A5_the_examples_from_before_v10_are_refused_with_what_to_write(api: Kubernetes) -> None:
    assert seeds.names("003")
    for name in seeds.names("003"):
        text = seeds.playbook_around(seeds.example("003", name))
        assert "is not part of v10: " in refusal(api, as_resource(yaml.safe_load(text)))


def test_A5_words_are_refused_in_a_lone_task_and_in_the_workbook(api: Kubernetes) -> None:
    old: Object = {"kind": "http", "url": "x", "eval": []}
    for thing in (
        with_step("lone", tool=old),
        playbook("map", workbook={"t": old}),
        playbook("list", workbook=[{"name": "t"} | old]),
    ):
        assert "outcomes are judged by `spec.policy.rules`" in refusal(api, thing)


def test_A5_next_as_a_list_or_a_text_is_refused_with_the_router_written_out(
    api: Kubernetes,
) -> None:
    for old in ([{"step": "end"}], ["end"], "end"):
        said = refusal(api, with_step("next", next=old))
        assert "spec.workflow[0].next" in said
        assert "next: {arcs: [{step: NAME}]}" in said


def test_A5_rules_have_when_or_else(api: Kubernetes) -> None:
    for rule in ({"then": {"allow": True}}, {"when": True}):
        said = refusal(api, holder("admit", "rule", {"rules": [rule]}))
        assert "a rule has `when` and `then`, or it is the last one and has `else`" in said
    said = refusal(api, with_task("rule", spec={"policy": {"rules": [{"then": {"do": "fail"}}]}}))
    assert "rules[0].when: Required value" in said


@pytest.mark.parametrize(
    ("place", "keys", "words"),
    [
        ("root", {"workflow": []}, "should have at least 1 items"),
        ("step", {"step": "no blanks"}, "spec.workflow[0].step: Invalid value"),
        ("step", {"tool": None}, "a step has `tool`, `next` or both"),
        ("step.spec", {"join": "some"}, "spec.workflow[0].spec.join"),
        ("step", {"loop": {"iterator": "x"}}, 'missing required field "in"'),
        ("loop.spec", {"mode": "paralell"}, 'supported values: "sequential", "parallel"'),
        ("then", {"do": "stop"}, 'supported values: "continue", "retry", "jump", "break", "fail"'),
        ("task.spec", {"timeout": {"read": 0}}, "should be greater than 0"),
        ("root", {"executor": {"kind": "vm"}}, 'supported values: "pool", "pod", "job"'),
    ],
)
def test_K3_what_is_wrong_is_named_with_its_place(
    api: Kubernetes, place: str, keys: Object, words: str
) -> None:
    assert words in refusal(api, holder(place, "wrong", keys))


@pytest.mark.parametrize("place", ["root", "step", "step.spec", "loop", "task.spec", "then", "arc"])
def test_A4_unknown_keys_are_refused(api: Kubernetes, place: str) -> None:
    said = refusal(api, holder(place, "unknown", {"ulr": 1}))
    assert "unknown field" in said
    assert 'ulr"' in said
