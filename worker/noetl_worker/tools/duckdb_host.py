"""The process in which DuckDB runs: `python -P -m noetl_worker.tools.duckdb_host`.

The tool talks to it over its standard input and output, one request at a time, in frames of eight
bytes of length and JSON. A process of its own can be killed in any state, has the step-run's folder
as its working directory, and takes nothing of the worker with it when it crashes. After a request
it is as new: the database is closed, and nothing is kept.

The answer is `{columns}`, `{rows}` as often as needed, and `{end: …}` or `{error: …}`.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import json
import os
import resource
import signal
import struct
import sys
import types
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import IO, Any

from noetl_worker.tools import duckdb_values

CHUNK_ROWS = 1_000
ADDRESS_SPACE = 4 * 1024**3
"""What a host may use at most; DuckDB's own limit does not count what becomes of its values."""
_PR_SET_PDEATHSIG = 1
_LENGTH = struct.Struct("!Q")
_CHANGES = frozenset(["INSERT", "UPDATE", "DELETE", "COPY", "CREATE", "MERGE_INTO"])
"""Statements whose only column is how many rows they touched."""


_HARMLESS = (
    "TimeZone",
    "default_null_order",
    "default_order",
    "ieee_floating_point_ops",
    "integer_division",
    "preserve_insertion_order",
    "schema",
    "search_path",
)
"""Settings that a statement may change."""


class AttachFailed(Exception):
    """A database of the keychain cannot be attached."""


def read_frame(stream: IO[bytes]) -> Any:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    return json.loads(stream.read(_LENGTH.unpack(head)[0]))


def write_frame(stream: IO[bytes], message: object) -> None:
    content = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode()
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


class _Utc(tzinfo):
    """UTC as `pytz` would give it."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta()

    def dst(self, moment: datetime | None) -> timedelta:
        return timedelta()

    def tzname(self, moment: datetime | None) -> str:
        return "UTC"

    def localize(self, moment: datetime) -> datetime:
        return moment.replace(tzinfo=self)


def stand_in_for_pytz() -> None:
    """DuckDB makes times with a zone by `pytz`; it needs no more of it than this."""
    module = types.ModuleType("pytz")
    vars(module).update(timezone=lambda name: _Utc(), utc=_Utc())
    sys.modules.setdefault("pytz", module)


def end_with_parent() -> None:
    """A worker that is killed takes its hosts with it, in the middle of a statement too."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    stand_in_for_pytz()
    end_with_parent()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    # Ready before there is something to do.
    importlib.import_module("duckdb")
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever prints must not get into the frames.
    os.dup2(2, 1)
    while (request := read_frame(sys.stdin.buffer)) is not None:
        os.chdir(request["folder"])
        try:
            write_frame(answers, {"end": Run(request, answers).done()})
        except Exception as error:
            write_frame(answers, {"error": described(error)})
        os.chdir("/")


def described(error: Exception) -> dict[str, str]:
    """What went wrong, by the name of the exception that the tool classifies."""
    kind = "AttachFailed" if isinstance(error, AttachFailed) else type(error).__name__
    message = str(error)
    if isinstance(error, RuntimeError) and "Unable to cast Python instance" in message:
        kind, message = "ConversionException", "a text is not valid Unicode"
    # What follows repeats the statement, or gives advice that nobody here can follow.
    return {"kind": kind, "message": message.partition("\n\n")[0].strip()}


class Run:
    """One request."""

    def __init__(self, request: dict[str, Any], answers: IO[bytes]) -> None:
        import duckdb

        self._duckdb = duckdb
        self._request, self._answers = request, answers
        self._exact = request["numeric"] == "text"

    def done(self) -> dict[str, int]:
        connection = self._connected()
        try:
            self._attach(connection)
            self._restrict(connection)
            return self._all(connection)
        finally:
            connection.close()

    def _connected(self) -> Any:
        config = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "allow_persistent_secrets": "false",
            "python_enable_replacements": "false",
            "temp_directory": str(Path(self._request["folder"]) / ".duckdb-temp"),
            **self._request["settings"],
        }
        connection = self._duckdb.connect(self._request["database"], config=config)
        connection.execute("SET TimeZone = 'UTC'")
        return connection

    def _attach(self, connection: Any) -> None:
        for entry in self._request["attach"]:
            try:
                load_postgres(connection)
                self._attach_one(connection, entry)
            except self._duckdb.Error as error:
                message = f"`{entry['name']}` cannot be attached: {error}"
                raise AttachFailed(message) from None

    def _attach_one(self, connection: Any, entry: dict[str, Any]) -> None:
        given = ", ".join(f"{key} {_text(value)}" for key, value in entry["secret"].items())
        secret = _name(f"noetl_{entry['name']}")
        connection.execute(f"CREATE TEMPORARY SECRET {secret} (TYPE postgres, {given})")
        connection.execute(
            f"ATTACH {_text(entry['options'])} AS {_name(entry['name'])}"
            f" (TYPE postgres, SECRET {secret})"
        )

    def _restrict(self, connection: Any) -> None:
        """From here on only the step-run's folder is there, and no setting opens it again."""
        connection.execute(f"SET allowed_directories = [{_text(self._request['folder'])}]")
        connection.execute("SET enable_external_access = false")
        connection.execute(f"SET allowed_configs = [{', '.join(map(_text, _HARMLESS))}]")
        connection.execute("SET lock_configuration = true")

    def _all(self, connection: Any) -> dict[str, int]:
        """All statements in one transaction, as far as DuckDB can."""
        statements = self._request["statements"]
        if len(statements) < 2 or any(self._kind(one) == "TRANSACTION" for one in statements):
            return self._each(connection)
        connection.execute("BEGIN")
        try:
            found = self._each(connection)
            connection.execute("COMMIT")
        except self._duckdb.TransactionException as error:
            self._undo(connection)
            if "single attached database" not in str(error):
                raise
            # A transaction of DuckDB writes to one database only.
            return self._each(connection)
        except Exception:
            self._undo(connection)
            raise
        return found

    def _undo(self, connection: Any) -> None:
        try:
            connection.execute("ROLLBACK")
        except self._duckdb.Error:
            # It was over already.
            return

    def _each(self, connection: Any) -> dict[str, int]:
        *before, last = self._request["statements"]
        for index, statement in enumerate(before):
            try:
                self._execute(connection, statement["text"], statement["values"])
            except self._duckdb.Error as error:
                where = f"statement {index + 1} of {len(before) + 1}: "
                raise type(error)(where + str(error)) from None
        return self._last(connection, last)

    def _execute(self, connection: Any, text: str, values: list[Any]) -> Any:
        return connection.execute(text, values) if values else connection.execute(text)

    def _kind(self, statement: dict[str, Any]) -> str:
        found = self._duckdb.extract_statements(statement["text"])
        return str(found[0].type.name) if found else ""

    def _last(self, connection: Any, statement: dict[str, Any]) -> dict[str, int]:
        kind = self._kind(statement)
        text, types = statement["text"], None
        if kind == "SELECT":
            text, types = self._readable(connection, text, statement["values"])
        self._execute(connection, text, statement["values"])
        columns = connection.description or []
        if _returns_nothing(kind, columns):
            rows = connection.fetchall()
            return {"affected": int(rows[0][0]) if rows and rows[0] else 0}
        types = types or columns
        write_frame(self._answers, {"columns": [column[0] for column in types]})
        convert = [duckdb_values.converter(column[1], exact=self._exact) for column in types]
        left = {"all": sys.maxsize, "one": 1}.get(self._request["fetch"], 0)
        count = 0
        while rows := connection.fetchmany(CHUNK_ROWS):
            count += len(rows)
            kept = rows[:left]
            left -= len(kept)
            if kept:
                converted = [[one(v) for one, v in zip(convert, row, strict=True)] for row in kept]
                write_frame(self._answers, {"rows": converted})
        return {"count": count}

    def _readable(self, connection: Any, text: str, values: list[Any]) -> tuple[str, Any]:
        """The query with the columns as text that Python could not hold, and its own columns."""
        try:
            self._execute(connection, f"SELECT * FROM ({text}\n) AS t LIMIT 0", values)
        except self._duckdb.Error:
            # Not every query can stand inside another one; then it says itself what is wrong.
            return text, None
        return self._cast(text, connection.description)

    def _cast(self, text: str, columns: Any) -> tuple[str, Any]:
        kinds = [duckdb_values.as_text(column[1]) for column in columns]
        if not any(kinds):
            return text, None
        numbered = [f"c{index}" for index in range(len(kinds))]
        chosen = [
            name if kind is None else f"CAST({name} AS {kind}) AS {name}"
            for name, kind in zip(numbered, kinds, strict=True)
        ]
        wrapped = f"SELECT {', '.join(chosen)} FROM ({text}\n) AS t({', '.join(numbered)})"
        return wrapped, columns


def _returns_nothing(kind: str, columns: Any) -> bool:
    names = [column[0] for column in columns]
    return not names or names == ["Success"] or (names == ["Count"] and kind in _CHANGES)


def load_postgres(connection: Any) -> None:
    """The extension as its wheel brings it: nothing is downloaded, nothing is installed."""
    found = importlib.util.find_spec("duckdb_extension_postgres_scanner")
    if found is None or found.origin is None:
        raise AttachFailed("the extension for Postgres is not installed")
    version = connection.execute("PRAGMA version").fetchone()[0]
    folder = Path(found.origin).parent / "extensions" / version
    connection.execute(f"LOAD {_text(str(folder / 'postgres_scanner.duckdb_extension'))}")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


if __name__ == "__main__":
    main()
