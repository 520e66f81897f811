"""What goes wrong in Postgres, as errors of a task (rule K35).

Only the server's message is told, and the name of a constraint: DETAIL quotes rows. Texts of the
driver's own exceptions may hold values and are never shown.
"""

from __future__ import annotations

import asyncio
import socket

from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.values import Value

SOURCE = "postgres"

_STATES = {
    "40001": ErrorKind.DB_DEADLOCK,
    "40P01": ErrorKind.DB_DEADLOCK,
    "57014": ErrorKind.DB_TIMEOUT,
}
_CLASSES = {
    "23": ErrorKind.DB_CONSTRAINT,
    "08": ErrorKind.DB_CONNECTION,
    "53": ErrorKind.DB_CONNECTION,
    "22": ErrorKind.SCHEMA,
    "42": ErrorKind.SCHEMA,
}


def kind_of(sqlstate: str) -> ErrorKind:
    if sqlstate in _STATES:
        return _STATES[sqlstate]
    if sqlstate.startswith("57P"):
        return ErrorKind.DB_CONNECTION
    return _CLASSES.get(sqlstate[:2], ErrorKind.UNKNOWN)


def of_server(error: Exception, where: str = "") -> TaskError:
    """An error that the server reported, or that the driver words in the server's terms."""
    sqlstate = str(getattr(error, "sqlstate", None) or "XX000")
    message = str(getattr(error, "message", None) or (error.args[0] if error.args else ""))
    if getattr(error, "severity", None) is None and sqlstate[:2] == "22":
        # The driver's own words quote the value.
        message = "a value cannot be written as the type that the statement wants"
    hint, constraint = getattr(error, "hint", None), getattr(error, "constraint_name", None)
    if constraint and str(constraint) not in message:
        message = f"{message} (constraint {constraint})"
    if hint and sqlstate[:2] == "42":
        message = f"{message}. {hint}"
    return TaskError(
        kind=kind_of(sqlstate),
        message=where + message,
        code=f"PG_{sqlstate}",
        source=SOURCE,
        pg_code=sqlstate,
    )


def of_connecting(error: BaseException) -> TaskError:
    """Why there is no connection."""
    if getattr(error, "sqlstate", None):
        return of_server(error if isinstance(error, Exception) else Exception())
    match error:
        case ConnectionRefusedError():
            code, message = "CONN_REFUSED", "the database refuses connections"
        case socket.gaierror():
            code, message = "DNS_ERROR", "the database's host name cannot be resolved"
        case TimeoutError() | asyncio.TimeoutError():
            code, message = "CONN_TIMEOUT", "the database did not answer in time"
        case ConnectionResetError() | BrokenPipeError() | EOFError():
            code, message = "CONN_RESET", "the database closed the connection"
        case FileNotFoundError():
            code, message = "CONN_REFUSED", "there is no database at this socket"
        case OSError():
            code, message = "CONN_RESET", f"the database cannot be reached: {error.strerror}"
        case _:
            code, message = "CONN_RESET", f"the connection is gone: {type(error).__name__}"
    return TaskError(kind=ErrorKind.DB_CONNECTION, message=message, code=code, source=SOURCE)


def schema(message: str, code: str | None = None) -> TaskError:
    """Something the author can put right."""
    pg_code = code.removeprefix("PG_") if code else None
    return TaskError(
        kind=ErrorKind.SCHEMA, message=message, code=code, source=SOURCE, pg_code=pg_code
    )


def outcome(error: TaskError) -> Outcome:
    """An error outcome with the helper `pg` (rule D6)."""
    helpers: dict[str, Value] = {}
    if error.pg_code:
        helpers["pg"] = {"code": error.pg_code, "sqlstate": error.pg_code}
    return Outcome(error=error, helpers=helpers)
