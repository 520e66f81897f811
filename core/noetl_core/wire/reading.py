"""Reading JSON of the other side: what is missing or of a wrong type is named, the rest is free.

    WireError           a message that cannot be taken, with a code the sender can act on
    ├── Malformed       something is missing, or of a wrong type
    ├── TooMuch         more than one message may hold
    └── WrongProtocol   the other side speaks another version

Keys that are not known here are those of a newer peer and are passed over. Data of playbooks inside
messages is not looked at, so that reading costs nothing for its size.
"""

from __future__ import annotations

from typing import ClassVar, TypeVar, overload

from noetl_core.values import Value, type_name

PROTOCOL = 1
"""The version of the protocol: the number in every path and in every first message."""
MAX_TEXT = 1024
"""Characters of a name, an id or another text of the protocol itself."""
MAX_NUMBER = 1e12
"""No length of time of the protocol is as long; not even a count is."""
MAX_ITEMS = 10_000
"""Items of a list of the protocol itself."""

T = TypeVar("T")


class WireError(ValueError):
    """A message that cannot be taken."""

    code: ClassVar[str] = "bad_message"
    status: ClassVar[int] = 400


class Malformed(WireError):
    """Something is missing, or of a wrong type; the message says what and where."""

    code: ClassVar[str] = "malformed"


class TooMuch(WireError):
    """More than one message may hold."""

    code: ClassVar[str] = "too_much"
    status: ClassVar[int] = 413


class WrongProtocol(WireError):
    """The other side speaks another version of the protocol."""

    code: ClassVar[str] = "wrong_protocol"
    status: ClassVar[int] = 426


def check_protocol(spoken: Value, whose: str) -> None:
    """Refuse a peer of another version, in words that say what to do."""
    if spoken != PROTOCOL or isinstance(spoken, bool):
        raise WrongProtocol(
            f"{whose} speaks protocol {spoken!r}, this side speaks {PROTOCOL}: "
            "use images of one release for the operator and its workers"
        )


class Reader:
    """One JSON object of a message."""

    __slots__ = ("_data", "_where")

    def __init__(self, data: Value, where: str) -> None:
        if not isinstance(data, dict):
            raise Malformed(f"{where}: expected an object, got {type_name(data)}")
        self._data = data
        self._where = where

    @property
    def where(self) -> str:
        return self._where

    def value(self, key: str) -> Value:
        """Data of a playbook, whatever it is."""
        return self._data.get(key)

    def text(self, key: str) -> str:
        found = self.text_or_none(key)
        if found is None:
            raise self.missing(key, "text")
        return found

    def text_or_none(self, key: str) -> str | None:
        found = self._data.get(key)
        if found is None:
            return None
        if not isinstance(found, str):
            raise self.wrong(key, "text", found)
        if len(found) > MAX_TEXT:
            raise TooMuch(f"{self._where}.{key}: longer than {MAX_TEXT:,} characters")
        return found

    def said_or_null(self, key: str) -> str | None:
        """A text or null, but said: where null means something, silence is a mistake."""
        if key not in self._data:
            raise self.missing(key, "text or null")
        return self.text_or_none(key)

    def words_or_none(self, key: str) -> str | None:
        """A text for people: it may be long."""
        found = self._data.get(key)
        if found is None or isinstance(found, str):
            return found
        raise self.wrong(key, "text", found)

    @overload
    def whole(self, key: str) -> int: ...
    @overload
    def whole(self, key: str, default: int) -> int: ...
    def whole(self, key: str, default: int | None = None) -> int:
        found = self._data.get(key)
        if found is None:
            if default is None:
                raise self.missing(key, "a whole number")
            return default
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < MAX_NUMBER:
            raise self.wrong(key, "a whole number from 0 on", found)
        return found

    def number_or_none(self, key: str) -> float | None:
        found = self._data.get(key)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self.wrong(key, "a number", found)
        if not -MAX_NUMBER < found < MAX_NUMBER:
            raise Malformed(f"{self._where}.{key}: not a number that means anything here")
        return float(found)

    def number(self, key: str) -> float:
        found = self.number_or_none(key)
        if found is None:
            raise self.missing(key, "a number")
        return found

    def flag(self, key: str, default: bool = False) -> bool:
        found = self._data.get(key)
        if found is None:
            return default
        if not isinstance(found, bool):
            raise self.wrong(key, "true or false", found)
        return found

    def mapping(self, key: str) -> dict[str, Value]:
        """An object; where it is missing, an empty one."""
        found = self._data.get(key)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise self.wrong(key, "an object", found)
        return found

    def mapping_or_none(self, key: str) -> dict[str, Value] | None:
        return None if self._data.get(key) is None else self.mapping(key)

    def items(self, key: str, most: int = MAX_ITEMS) -> list[Value]:
        """A list; where it is missing, an empty one."""
        found = self._data.get(key)
        if found is None:
            return []
        if not isinstance(found, list):
            raise self.wrong(key, "a list", found)
        if len(found) > most:
            raise TooMuch(f"{self._where}.{key}: more than {most:,} items")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.items(key)
        for item in found:
            if not isinstance(item, str) or len(item) > MAX_TEXT:
                raise self.wrong(key, "a list of short texts", item)
        return tuple(str(item) for item in found)

    def each(self, key: str) -> list[Reader]:
        """A list of objects."""
        found = self.items(key)
        return [Reader(item, f"{self._where}.{key}[{at}]") for at, item in enumerate(found)]

    def inner(self, key: str) -> Reader | None:
        """An object of the protocol inside of this one, or None."""
        found = self._data.get(key)
        return None if found is None else Reader(found, f"{self._where}.{key}")

    def missing(self, key: str, what: str) -> Malformed:
        return Malformed(f"{self._where}.{key}: missing ({what})")

    def wrong(self, key: str, what: str, found: Value) -> Malformed:
        return Malformed(f"{self._where}.{key}: expected {what}, got {type_name(found)}")


def without_nothing(data: dict[str, Value]) -> dict[str, Value]:
    """A message without what is not said: nulls and empty lists and objects."""
    return {
        key: value
        for key, value in data.items()
        if value is not None and value != [] and value != {}
    }
