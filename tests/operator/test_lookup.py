"""Stored results that decisions read: what is gone or broken is an answer, not a crash."""

from __future__ import annotations

import hashlib

import pytest

from noetl_core.engine.triggers import Needed, Unreadable
from noetl_operator.lookup import StoreLookup
from noetl_operator.store.memory import MemoryStore
from noetl_operator.store.port import Corrupt


class OneResult(MemoryStore):
    """A store whose results are what a test says."""

    content: bytes | None = None

    async def get_result(self, key: str) -> bytes | None:
        if self.content == b"corrupt":
            raise Corrupt("it does not match its checksum")
        return self.content


async def looked_up(content: bytes | None) -> object:
    store = OneResult()
    store.content = content
    lookup = StoreLookup(store)
    key = hashlib.sha256(b"any").hexdigest()
    assert lookup.result(key) is None
    await lookup.fetch("e", Needed(result=key))
    return lookup.result(key)


async def test_H2_content_is_read_as_json() -> None:
    assert await looked_up(b"[1]") == [1]


@pytest.mark.parametrize("content", [None, b"corrupt", b"\xff", b"null"])
async def test_H2_what_cannot_be_read_is_said_and_not_asked_again(
    content: bytes | None,
) -> None:
    assert isinstance(await looked_up(content), Unreadable)


async def test_H2_a_result_may_be_there_for_the_next_decision() -> None:
    store = OneResult()
    lookup = StoreLookup(store)
    await lookup.fetch("e", Needed(result="k"))
    lookup.forget_loops()
    assert lookup.result("k") is None, "another execution may have stored it since"
