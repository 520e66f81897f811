"""Errors, ends of runs and verdicts as JSON."""

from __future__ import annotations

from noetl_core.engine.triggers import EndStatus, RunEnd, Verdict
from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.values import Value
from noetl_core.wire.reading import Malformed, Reader, without_nothing

_KINDS = frozenset(ErrorKind)
_STATUSES = frozenset(EndStatus)
_VERDICTS = frozenset(Verdict)


def error_json(error: TaskError) -> dict[str, Value]:
    return without_nothing(error.as_json())


def read_error(reader: Reader) -> TaskError:
    """An error; a kind that only a newer worker knows is `unknown`."""
    kind = reader.text("kind")
    message = reader.words_or_none("message")
    if message is None:
        raise reader.missing("message", "text")
    status = reader.value("http_status")
    return TaskError(
        kind=ErrorKind(kind) if kind in _KINDS else ErrorKind.UNKNOWN,
        message=message,
        code=reader.text_or_none("code"),
        source=reader.text_or_none("source"),
        http_status=None if status is None else reader.whole("http_status"),
        retry_after=reader.number_or_none("retry_after"),
        pg_code=reader.text_or_none("pg_code"),
        exception_type=reader.text_or_none("exception_type"),
    )


def end_json(end: RunEnd) -> dict[str, Value]:
    found: dict[str, Value] = {"status": end.status.value}
    if end.result is not None:
        found["result"] = end.result
    if end.error is not None:
        found["error"] = error_json(end.error)
    if end.task is not None:
        found["task"] = end.task
    if end.iteration is not None:
        found["iteration"] = end.iteration
    if end.writes is not None:
        found["writes"] = end.writes
    return found


def read_end(reader: Reader) -> RunEnd:
    status = reader.text("status")
    if status not in _STATUSES:
        known = ", ".join(EndStatus)
        raise Malformed(f"{reader.where}.status: `{status}` is none of {known}")
    error = reader.inner("error")
    if status == EndStatus.ERROR and error is None:
        raise reader.missing("error", "the error it ended with")
    return RunEnd(
        status=EndStatus(status),
        result=reader.value("result"),
        error=read_error(error) if error else None,
        task=reader.text_or_none("task"),
        iteration=reader.text_or_none("iteration"),
        writes=reader.mapping_or_none("writes"),
    )


def read_verdict(reader: Reader) -> Verdict:
    verdict = reader.text("verdict")
    if verdict not in _VERDICTS:
        raise Malformed(f"{reader.where}.verdict: `{verdict}` is none of {', '.join(Verdict)}")
    return Verdict(verdict)
