"""Objects that would break whoever reads them, made harmless where they come in.

The API server takes objects that nest ten thousand levels deep; Python's parsers and everything
that walks data by recursion do not. One such object must not end the watch of all the others. It
is parsed in a thread with a large stack and kept without its spec: its status says why.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import orjson

from noetl_core.compose import MAX_DEPTH
from noetl_core.problems import Problem, Severity
from noetl_operator.kube.port import Object

TOO_DEEP = "noetl.io/too-deep"
"""The only key of a spec that was left out."""
STACK_BYTES = 64 * 1024 * 1024
"""Of a thread that parses anything: address space, not memory."""
RECURSION = 60_000
"""Well above what the API server lets through, for Python counts the levels of C code as well."""

T = TypeVar("T")


def parsed(data: bytes) -> Object:
    """An answer of the API server, with all its objects tamed."""
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return in_deep_thread(lambda: _tamed_answer(json.loads(data)))
    return _tamed_answer(found)


def _tamed_answer(answer: Object) -> Object:
    if isinstance(answer.get("items"), list):
        return {**answer, "items": [tamed(item) for item in answer["items"]]}
    return tamed(answer)


def tamed(obj: Mapping[str, Any]) -> Object:
    """An object as it is, or without what nests too deep."""
    made = dict(obj)
    if is_deep(obj.get("spec")):
        made["spec"] = {TOO_DEEP: True}
    if is_deep(obj.get("status")):
        made["status"] = None
    return made


def is_deep(value: Any) -> bool:
    """Whether it nests deeper than any playbook may; looks level by level."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below += [x for x in one.values() if isinstance(x, dict | list)]
            elif isinstance(one, list):
                below += [x for x in one if isinstance(x, dict | list)]
        if not below:
            return False
        level = below
    return True


def depth_problem(spec: Any) -> Problem | None:
    """What is wrong with a spec that was left out."""
    if not isinstance(spec, dict) or TOO_DEEP not in spec:
        return None
    message = f"values are nested more than {MAX_DEPTH} deep"
    return Problem("A1.yaml", Severity.ERROR, "spec", 0, 0, message)


def deep_thread(work: Callable[[], None], name: str) -> threading.Thread:
    """Start a thread in which anything can be parsed."""
    sys.setrecursionlimit(max(RECURSION, sys.getrecursionlimit()))
    thread = threading.Thread(target=work, name=name, daemon=True)
    before = threading.stack_size(STACK_BYTES)
    try:
        thread.start()
    finally:
        threading.stack_size(before)
    return thread


def in_deep_thread(work: Callable[[], T]) -> T:
    """What some work gives that needs a large stack."""
    found: list[T] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:
            failed.append(error)

    thread = deep_thread(run, "parse")
    thread.join()
    if failed:
        raise failed[0]
    return found[0]
