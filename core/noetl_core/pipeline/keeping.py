"""Which values travel inside events, and which are stored and referred to (H1–H3, K25, K33)."""

from __future__ import annotations

from collections.abc import Collection, Generator

from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.pipeline.plan import CompiledTask
from noetl_core.pipeline.references import RefCache
from noetl_core.pipeline.requests import Answer, Emit, Fetch, Keep, Request
from noetl_core.pipeline.telling import Teller
from noetl_core.results import canonical, is_ref, reference, select
from noetl_core.values import Value

SMALL_TEXT = 64
"""Characters of a text that fits into any event, so that its size need not be taken."""
ENVELOPE_BYTES = 4 * 1024
"""What an event holds besides the one large value it may carry."""


class NotKept(Exception):
    """A value that can neither travel nor be stored; `error` says why."""

    def __init__(self, error: TaskError) -> None:
        super().__init__(error.message)
        self.error = error


def keep_result(
    value: Value, task: CompiledTask, tell: Teller, max_payload: int, cache: RefCache
) -> Generator[Request, Answer, Value]:
    """A task's result as events carry it; raises `NotKept`."""
    chosen = task.select
    always = chosen is not None or task.reference_first
    if is_ref(value):
        return value if chosen is None else (yield from _chosen(value, chosen))
    if not always and _is_small(value, task.inline_max):
        return value
    content = _content(value, f"the result of {task.label}")
    if not always and len(content) <= task.inline_max:
        if len(content) > max_payload - ENVELOPE_BYTES:
            raise NotKept(_too_large(len(content), max_payload))
        return value
    selected = None if chosen is None else select(value, chosen)
    size = 0 if selected is None else len(canonical(selected))
    if size > max_payload - ENVELOPE_BYTES:
        raise NotKept(_too_large(size, max_payload))
    return (yield from _store(value, content, selected, tell, cache))


def _chosen(ref: dict[str, Value], fields: dict[str, str]) -> Generator[Request, Answer, Value]:
    """A reference that a child execution gave, with the chosen fields of what it stands for."""
    answer = yield Fetch(ref)
    if isinstance(answer, TaskError):
        raise NotKept(answer)
    value: Value = answer  # type: ignore[assignment]  # what `Fetch` is answered with
    return {**ref, "selected": select(value, fields)}


def keep_entries(
    entries: dict[str, Value],
    inline_max: int,
    tell: Teller,
    max_payload: int,
    cache: RefCache,
    inline: Collection[str] | None = None,
) -> Generator[Request, Answer, dict[str, Value]]:
    """Writes to `ctx` or `iter` as events carry them: large values are stored; raises `NotKept`.

    All of them share one event. Where they do not fit together, those of `iter` are stored one by
    one, because only the event shows them so; those of `ctx` are refused. `inline` is given for
    `ctx`: keys that are never stored, because a reducer works on their values.
    """
    written = {
        key: _content(value, f"the value of `{key}`")
        for key, value in entries.items()
        if not _is_small(value, inline_max) and not is_ref(value)
    }
    room = max_payload - ENVELOPE_BYTES
    small = {k: len(c) for k, c in written.items() if len(c) <= inline_max or k in (inline or ())}
    if sum(small.values()) > room:
        if inline is not None:
            raise NotKept(_too_large(sum(small.values()), max_payload, "set_ctx"))
        small = {key: size for key, size in small.items() if size <= room // len(entries)}
    kept = entries
    for key, content in written.items():
        if key not in small:
            ref = yield from _store(entries[key], content, None, tell, cache)
            kept = {**kept, key: ref}
    return kept


def _store(
    value: Value,
    content: bytes,
    selected: dict[str, Value] | None,
    tell: Teller,
    cache: RefCache,
) -> Generator[Request, Answer, dict[str, Value]]:
    ref = reference(content, value, selected=selected)
    answer = yield Keep(ref, content)
    if isinstance(answer, TaskError):
        raise NotKept(answer)
    cache.put(ref, value)
    yield Emit(tell.stored(ref))
    return ref


def _is_small(value: Value, limit: int) -> bool:
    """Certainly within the limit, without writing it out."""
    if isinstance(value, str):
        # A character takes at most six bytes of JSON.
        return len(value) <= SMALL_TEXT and 6 * len(value) + 2 <= limit
    return (value is None or isinstance(value, bool | float)) and limit >= 32


def _content(value: Value, what: str) -> bytes:
    try:
        return canonical(value)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"{what} is not JSON: {error}"
        raise NotKept(TaskError(kind=ErrorKind.SCHEMA, message=message, source="results")) from None


def _too_large(size: int, limit: int, what: str = "the result") -> TaskError:
    return TaskError(
        kind=ErrorKind.LIMIT,
        code="PAYLOAD_TOO_LARGE",
        message=f"{what} would put {size:,} bytes into an event, which may have {limit:,} "
        "(limits.max_payload_bytes): lower result.inline_max_bytes, or select less",
        source="results",
    )
