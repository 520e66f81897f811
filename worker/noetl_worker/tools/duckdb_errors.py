"""What goes wrong in DuckDB, as errors of a task."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from noetl_core.outcomes import ErrorKind, TaskError
from noetl_worker.keychain import Credential

_KINDS = {
    **dict.fromkeys(
        [
            "ParserException",
            "SyntaxException",
            "BinderException",
            "CatalogException",
            "ConversionException",
            "InvalidInputException",
            "InvalidTypeException",
            "TypeMismatchException",
            "OutOfRangeException",
            "ProgrammingError",
            "DataError",
        ],
        ErrorKind.SCHEMA,
    ),
    "ConstraintException": ErrorKind.DB_CONSTRAINT,
    "OutOfMemoryException": ErrorKind.LIMIT,
    "MemoryError": ErrorKind.LIMIT,
    "InterruptException": ErrorKind.DB_TIMEOUT,
    "AttachFailed": ErrorKind.DB_CONNECTION,
}
_OF_POSTGRES = re.compile(r"ERROR:\s+([^\n]+)")
_NO_CONNECTION = re.compile(
    r"Unable to connect to Postgres|server closed the connection|connection to server"
    r"|terminating connection"
)
_OPTIONS = re.compile(r' at "[^"]*"(?=:)')
_VIOLATED = re.compile(r"violates \S+(?:-\S+)* constraint|violates not-null constraint")
_CONFLICT = re.compile(r"deadlock detected|could not serialize access")


def classified(name: str, message: str) -> TaskError:
    """The error of an exception of DuckDB's, by its name."""
    kind = _KINDS.get(name, ErrorKind.UNKNOWN)
    message = message or "there is not enough memory" * (name == "MemoryError") or name
    server = _OF_POSTGRES.search(message)
    if server is not None:
        # What the server said, without its DETAIL and without the statement that DuckDB repeats.
        kind, message = _of_server(server[1], kind), f"Postgres: {server[1]}"
    elif _NO_CONNECTION.search(message):
        # The options of the connection say nothing to anybody.
        kind, message = ErrorKind.DB_CONNECTION, _OPTIONS.sub("", message)
    code = "DUCKDB_" + name.removesuffix("Exception").upper()
    return TaskError(kind=kind, message=message, code=code, source="duckdb")


def _of_server(message: str, kind: ErrorKind) -> ErrorKind:
    if _VIOLATED.search(message):
        return ErrorKind.DB_CONSTRAINT
    if _CONFLICT.search(message):
        return ErrorKind.DB_DEADLOCK
    return kind


def masked(error: TaskError, credentials: Iterable[Credential]) -> TaskError:
    """The error with nothing in it that a credential holds."""
    message = error.message
    for credential in credentials:
        for secret in credential.secrets():
            if secret:
                message = message.replace(secret, "***")
    return replace(error, message=message)
