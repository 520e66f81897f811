"""A Postgres credential as DuckDB attaches it (rules I2, K44).

The parts go into a secret of DuckDB's, which it never shows; only what is no secret is in the text
that `duckdb_databases()` and error messages repeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.values import Value
from noetl_worker.keychain import Credential
from noetl_worker.tools.sql_common import SqlFailed

_SECRET = {
    "host": "HOST",
    "port": "PORT",
    "user": "USER",
    "password": "PASSWORD",
    "dbname": "DATABASE",
}


def attachment(credential: Credential, application: str, connect_s: float) -> dict[str, Value]:
    """`{name, secret, options}` for the host."""
    given = parts(credential)
    options = {key: value for key, value in given.items() if key not in _SECRET}
    options |= {"application_name": application, "connect_timeout": str(max(2, int(connect_s)))}
    return {
        "name": credential.name,
        "secret": {_SECRET[key]: value for key, value in given.items() if key in _SECRET},
        "options": " ".join(f"{key}={_quoted(value)}" for key, value in options.items()),
    }


def parts(credential: Credential) -> dict[str, str]:
    """The connection's parameters by libpq's names; raises `SqlFailed`."""
    fields = credential.fields
    if "uri" in fields:
        found = _of_uri(credential.name, fields["uri"])
        return {**found, **_given(fields, ("password",))}
    return _given(fields, (*_SECRET, "sslmode"))


def _given(fields: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: fields[name] for name in names if name in fields}


def _of_uri(name: str, uri: str) -> dict[str, str]:
    try:
        split = urlsplit(uri)
        query = dict(parse_qsl(split.query, keep_blank_values=True))
    except ValueError:
        split, query = urlsplit(""), {}
    if split.scheme not in ("postgres", "postgresql"):
        message = f"the `uri` of `{name}` is no postgresql:// address"
        error = TaskError(kind=ErrorKind.AUTH, message=message, code="KEYCHAIN", source="duckdb")
        raise SqlFailed(error)
    who, _, where = split.netloc.rpartition("@")
    user, _, password = who.partition(":")
    hosts, ports = _places(where)
    found = {"host": hosts, "port": ports, "user": unquote(user), "password": unquote(password)}
    found["dbname"] = unquote(split.path.removeprefix("/"))
    return {key: value for key, value in {**found, **query}.items() if value}


def _places(where: str) -> tuple[str, str]:
    """`a:1,b:2` as the lists of hosts and ports that libpq takes."""
    hosts, ports = [], []
    for place in where.split(",") if where else []:
        host, colon, port = place.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = place, ""
        hosts.append(unquote(host.strip("[]")))
        ports.append(port)
    return ",".join(hosts), ",".join(ports) if any(ports) else ""


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
