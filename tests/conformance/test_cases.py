"""Every case of the files beside this: a playbook, run for real, and what the rules say of it.

A case has a `name` that begins with its rules; `do` (a playbook without metadata, or its workflow)
or `seed` (an example of the language's source documents, with texts to `fill` in and steps
`before` it); optionally `workload`, `children` (other playbooks), `ask` (asked when the execution
waits); and `expect`: `phase` (Succeeded unless said), `reason`, `message` (a part of it), `result`
(the value), `shown` (a part of what the document shows), `ctx`, `steps`, `failures` (each a part
of the real one), `events` (in this order, others may stand between; each a part of the real one),
`counts` of events by name, `logs` (lines) and `secret` (texts that stand nowhere).
In what is expected, a text `~…` is a regular expression and `<…>` a type.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeGuard

import pytest
import yaml

from tests.support import seeds
from tests.support.plane import Plane, Ran, loaded

HERE = Path(__file__).parent
Json = dict[str, Any]


def _cases() -> list[Json]:
    found = [c for path in sorted(HERE.glob("*.yaml")) for c in yaml.safe_load(path.read_text())]
    names = Counter(case["name"] for case in found)
    assert not [name for name, times in names.items() if times > 1]
    return found


CASES = {case["name"]: case for case in _cases()}
SECRETS = {
    "site": {"token": b"s3cret-token-value"},
    "door": {"username": b"ann", "password": b"pass-word-9"},
    "key": {"api_key": b"k-123456789"},
    "tiny": {"pin": b"123"},
    "plain": {"alpha": b"first-secret", "beta": b"second-secret"},
}


def _document(name: str, do: Any, **more: str) -> Json:
    sections = do if isinstance(do, dict) else {"workflow": do}
    return {"metadata": {"name": name.lower().replace("_", "-"), **more}, **sections}


def _seeded(case: Json) -> Any:
    """An example of the language's source documents as it stands there, its gaps filled."""
    text = seeds.playbook_around(seeds.example(*case["seed"]))
    text = text.replace(
        "kind: postgres_credential", "kind: postgres_credential, secretRef: {name: pg}"
    )
    for old, new in case["fill"].items():
        assert old in text
        text = text.replace(old, new)
    found = yaml.safe_load(text)
    before = case.get("before", [])
    return {
        **{k: v for k, v in found.items() if k != "metadata"},
        "workflow": before + found["workflow"],
    }


def _children() -> list[Json]:
    return [
        _document(child["name"], child["do"], **child.get("metadata", {}))
        for case in CASES.values()
        for child in case.get("children", [])
    ]


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Ran]]]:
    """All cases that were chosen, under way at once."""
    chosen = [str(i.callspec.params["name"]) for i in request.session.items if _is_case(i)]
    with tempfile.TemporaryDirectory(prefix="noetl-c-") as folder:
        playbooks = [loaded(child) for child in _children()]
        with Plane(Path(folder), playbooks, SECRETS).running() as plane:
            yield {name: plane.begin(_run(plane, CASES[name])) for name in chosen}


def _is_case(item: pytest.Item) -> TypeGuard[pytest.Function]:
    return isinstance(item, pytest.Function) and item.originalname == "test_case"


async def _run(plane: Plane, case: Json) -> Ran:
    playbook = loaded(_document(case["name"], case["do"] if "do" in case else _seeded(case)))
    return await plane.run(playbook, case.get("workload", {}), case.get("ask", []))


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, runs: dict[str, Future[Ran]]) -> None:
    ran, expect = runs[name].result(120), CASES[name]["expect"]
    told = json.dumps({"document": ran.document, "log": _short(ran.events)}, indent=1)
    wrong = list(_differences(ran, expect))
    assert not wrong, "\n".join([*wrong, told])


def _short(events: list[Json]) -> list[str]:
    keys = ("seq", "name", "step", "task", "iteration", "attempt", "payload")
    return [json.dumps({k: e[k] for k in keys if e[k] is not None})[:600] for e in events]


def _differences(ran: Ran, expect: Json) -> Iterator[str]:
    document = ran.document
    phase = expect.get("phase", "Succeeded")
    if document["phase"] != phase:
        yield f"phase: {document['phase']} ({document['reason']}), not {phase}"
    if "message" in expect and expect["message"] not in (document["message"] or ""):
        yield f"message: {document['message']!r} without {expect['message']!r}"
    for key in ("reason", "ctx", "steps"):
        if key in expect and not _fits(document[key], expect[key], whole=key != "steps"):
            yield f"{key}: {document[key]!r}, not {expect[key]!r}"
    if "result" in expect and not _fits(ran.value, expect["result"]):
        yield f"result: {ran.value!r}, not {expect['result']!r}"
    if "shown" in expect and not _fits(document["result"], expect["shown"], whole=False):
        yield f"the result is shown as {document['result']!r}, not {expect['shown']!r}"
    yield from _failures(document["failures"], expect.get("failures"))
    yield from _events(ran.events, expect)
    for line in expect.get("logs", []):
        if line not in ran.logs:
            yield f"logs: {line!r} is not in {ran.logs}"
    everything = json.dumps([document, ran.events, ran.logs, ran.value])
    yield from (f"{text!r} can be read" for text in expect.get("secret", []) if text in everything)


def _failures(found: list[Json], expected: list[Json] | None) -> Iterator[str]:
    if expected is None:
        return
    fits = all(_fits(f, e, whole=False) for f, e in zip(found, expected, strict=False))
    if len(found) != len(expected) or not fits:
        yield f"failures: {found!r}, not {expected!r}"


def _events(events: list[Json], expect: Json) -> Iterator[str]:
    if [e["seq"] for e in events] != list(range(1, len(events) + 1)):
        yield "seq has gaps"
    rest = iter(events)
    for wanted in expect.get("events", []):
        part = {"name": wanted} if isinstance(wanted, str) else wanted
        if not any(_fits(event, part, whole=False) for event in rest):
            yield f"events: nothing (more) like {part!r}"
            break
    counts = Counter(event["name"] for event in events)
    for name, times in expect.get("counts", {}).items():
        if counts[name] != times:
            yield f"{name}: {counts[name]} times, not {times}"


def _fits(found: Any, wanted: Any, *, whole: bool = True) -> bool:
    """Whether a value is what is wanted: all of it, or at least what is named."""
    if isinstance(wanted, str) and wanted.startswith("~"):
        return isinstance(found, str) and re.search(wanted[1:], found) is not None
    if isinstance(wanted, str) and re.fullmatch("<[a-z]+>", wanted):
        return type(found).__name__ == wanted[1:-1]
    if isinstance(wanted, dict) and isinstance(found, dict):
        if whole and wanted.keys() != found.keys():
            return False
        return all(k in found and _fits(found[k], v, whole=whole) for k, v in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            return False
        return all(_fits(f, w, whole=whole) for f, w in zip(found, wanted, strict=True))
    return type(found) is type(wanted) and bool(found == wanted)
