"""A bounded store of compiled templates by their text.

Two generations instead of a queue: what is used moves to the young one, and when that is full it
becomes the old one. A hit costs one look-up, and no lock is needed.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Cache(Generic[T]):
    """Keeps what was used last, up to about `capacity` characters of keys."""

    def __init__(self, capacity: int) -> None:
        self._half = capacity // 2
        self._young: dict[str, T] = {}
        self._old: dict[str, T] = {}
        self._size = 0

    def get(self, key: str) -> T | None:
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: str, value: T) -> None:
        # A compiled template weighs more than its text, even when that is short.
        weight = len(key) + 30
        if weight > self._half:
            return
        if self._size + weight > self._half:
            self._old, self._young, self._size = self._young, {}, 0
        self._young[key] = value
        self._size += weight
