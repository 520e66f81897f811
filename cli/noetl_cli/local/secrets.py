"""Secrets for the workers of a local run: one private folder `secret/key`, as Pods have them.

They come from a YAML file or a folder, plus the credential of a scratch database. No message here
ever quotes what such a file holds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from noetl_cli import files
from noetl_cli.errors import UsageError
from noetl_core.model import KeychainEntry
from noetl_core.nodes import plain_value
from noetl_core.problems import Severity
from noetl_core.source import parse
from noetl_core.values import Value

_NAME = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9_.]{0,252}")
_FORM = "a secrets file is {secret-name: {key: value}}"
_ALIASES = {
    "host": ("host", "db_host"),
    "port": ("port", "db_port"),
    "user": ("user", "username", "db_user"),
    "password": ("password", "db_password"),
    "dbname": ("dbname", "database", "db_name"),
    "uri": ("uri", "dsn"),
}
"""Fields that the map of a Postgres entry may ask for, by what they mean (rule G2)."""

Secrets = dict[str, dict[str, bytes]]


def read(path: str | None) -> Secrets:
    """The secrets that the user gives."""
    if path is None:
        return {}
    return _of_folder(Path(path)) if Path(path).is_dir() else _of_file(path)


def _of_file(path: str) -> Secrets:
    source = files.read(path)
    documents = parse(source.data)
    root = documents[0].root
    wrong = [p for d in documents for p in d.problems if p.severity is Severity.ERROR]
    if wrong:
        place = f"{source.label}:{wrong[0].line}:{wrong[0].column}"
        raise UsageError(f"{place}: the secrets can't be read as YAML", _FORM)
    value = None if root is None else plain_value(root)
    if len(documents) != 1 or not isinstance(value, dict):
        raise UsageError(f"{source.label}: the secrets are no mapping", _FORM)
    return {
        _name(source.label, secret): _keys(source.label, secret, keys)
        for secret, keys in value.items()
    }


def _keys(label: str, secret: str, keys: Value) -> dict[str, bytes]:
    if not isinstance(keys, dict):
        raise UsageError(f"{label}: {secret}: the secret is no mapping of keys", _FORM)
    return {_name(label, key): _content(label, secret, key, v) for key, v in keys.items()}


def _content(label: str, secret: str, key: str, value: Value) -> bytes:
    match value:
        case None:
            return b""
        case bool():
            return b"true" if value else b"false"
        case dict() | list():
            raise UsageError(f"{label}: {secret}.{key}: the value is no text", _FORM)
    return str(value).encode("utf-8", "surrogatepass")


def _name(label: str, name: str) -> str:
    if not _NAME.fullmatch(name) or ".." in name:
        raise UsageError(f"{label}: `{name[:60]}` can't be the name of a secret or a key")
    return name


def _of_folder(folder: Path) -> Secrets:
    # Mounted Secrets hold hidden folders (`..data`) beside their keys.
    found: Secrets = {}
    try:
        for secret in sorted(folder.iterdir()):
            if secret.is_dir() and not secret.name.startswith("."):
                keys = [key for key in sorted(secret.iterdir()) if not key.name.startswith("..")]
                found[secret.name] = {key.name: key.read_bytes() for key in keys if key.is_file()}
    except OSError as error:
        raise UsageError(f"{folder}: the secrets can't be read: {error.strerror}") from None
    return found


def write(folder: Path, secrets: Secrets) -> None:
    """Lay the secrets out for the workers; nobody else may look."""
    folder.mkdir(mode=0o700)
    for secret, keys in secrets.items():
        (folder / secret).mkdir(mode=0o700)
        for key, content in keys.items():
            handle = os.open(folder / secret / key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(content)


def with_credential(secrets: Secrets, entry: KeychainEntry, fields: Mapping[str, str]) -> Secrets:
    """The secrets with a Postgres credential where an entry looks for it."""
    changed = {name: dict(keys) for name, keys in secrets.items()}
    if not entry.map:
        changed[entry.secret_name] = {key: value.encode() for key, value in fields.items()}
        return changed
    for field, key in entry.map.items():
        meant = next((name for name, words in _ALIASES.items() if field in words), None)
        if meant is not None:
            secret, _, name = key.rpartition("/")
            keys = changed.setdefault(secret or entry.secret_name, {})
            keys[name] = fields[meant].encode()
    return changed
