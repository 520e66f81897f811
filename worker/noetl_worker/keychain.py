"""Credentials from the folder where Secrets are mounted, `<secret>/<key>`, a file each (section G).

The operator never sees any of this. Files are read when a step-run begins, so a Secret that changed
is seen by the next one. Everything that must not leave the worker is known here, for `redact`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from noetl_core.model import KeychainEntry, KeychainKind

_OPEN = frozenset(
    ["host", "port", "dbname", "user", "username", "header", "token_url", "client_id", "scope"]
)
"""Fields that are no secrets, except in entries of kind `secret` (rules K32, K45)."""

_FIELDS: dict[KeychainKind, tuple[tuple[str, ...], ...]] = {
    KeychainKind.SECRET: (),
    KeychainKind.BEARER: (("token", "access_token"),),
    KeychainKind.BASIC: (("username",), ("password",)),
    KeychainKind.API_KEY: (("api_key",),),
    KeychainKind.OAUTH2: (("token_url",), ("client_id",), ("client_secret",)),
    KeychainKind.POSTGRES: (),
}
"""What each kind must have: one of each group (rule K30)."""

_POSTGRES: dict[str, tuple[str, ...]] = {
    "host": ("host", "db_host"),
    "port": ("port", "db_port"),
    "user": ("user", "username", "db_user"),
    "password": ("password", "db_password"),
    "dbname": ("dbname", "database", "db_name"),
    "uri": ("uri", "dsn", "fqdn-uri"),
}
"""Names by which people and CloudNativePG call the parts of a Postgres credential (rule G2)."""


class KeychainError(Exception):
    """An entry cannot be resolved; the text names entry, Secret and key (rule G3)."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A resolved keychain entry. Prints as `***`."""

    name: str
    kind: KeychainKind
    fields: Mapping[str, str] = field(repr=False)

    def __str__(self) -> str:
        return "***"

    def secrets(self) -> list[str]:
        """The values that must never be shown."""
        is_open = _OPEN if self.kind is not KeychainKind.SECRET else frozenset[str]()
        found = [value for name, value in self.fields.items() if name not in is_open]
        uri = self.fields.get("uri")
        if uri is not None and (password := _password_of(uri)):
            found += [password, quote(password, safe="")]
        return found


def _password_of(uri: str) -> str | None:
    try:
        password = urlsplit(uri).password
    except ValueError:
        return None
    return unquote(password) if password else None


def resolve(entries: tuple[KeychainEntry, ...], folder: Path) -> dict[str, Credential]:
    """Every entry of a playbook; the first that is not complete raises `KeychainError`."""
    return {entry.name: resolve_entry(entry, folder) for entry in entries}


def resolve_entry(entry: KeychainEntry, folder: Path) -> Credential:
    if entry.map:
        fields = {name: _read_key(entry, folder, key) for name, key in entry.map.items()}
    else:
        fields = _read_secret(entry, folder / entry.secret_name)
    if entry.kind is KeychainKind.POSTGRES:
        fields = _postgres(entry, fields)
    for names in _FIELDS[entry.kind]:
        if not any(name in fields for name in names):
            raise _missing(entry, entry.secret_name, " or ".join(names))
    if entry.kind is KeychainKind.BEARER and "token" not in fields:
        fields["token"] = fields["access_token"]
    return Credential(entry.name, entry.kind, fields)


def _missing(entry: KeychainEntry, secret: str, key: str) -> KeychainError:
    return KeychainError(f"keychain entry {entry.name}: the Secret {secret} has no key {key}")


def _read_key(entry: KeychainEntry, folder: Path, key: str) -> str:
    """One mapped field: a key of the entry's own Secret, or `secret/key`."""
    secret, _, name = key.rpartition("/")
    secret = secret or entry.secret_name
    if not (folder / secret).is_dir():
        raise KeychainError(f"keychain entry {entry.name}: there is no Secret {secret}")
    path = folder / secret / name
    if not path.is_file():
        raise _missing(entry, secret, name)
    return _text(path)


def _read_secret(entry: KeychainEntry, folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise KeychainError(f"keychain entry {entry.name}: there is no Secret {folder.name}")
    # Mounted Secrets hold hidden folders (`..data`) beside their keys.
    files = [path for path in folder.iterdir() if not path.name.startswith("..")]
    return {path.name: _text(path) for path in sorted(files) if path.is_file()}


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace").removesuffix("\n")


def _postgres(entry: KeychainEntry, given: dict[str, str]) -> dict[str, str]:
    fields = dict(given)
    for name, aliases in _POSTGRES.items():
        found = next((given[alias] for alias in aliases if alias in given), None)
        if found is not None:
            fields[name] = found
    if "uri" not in fields:
        for name in ("host", "user", "dbname"):
            if name not in fields:
                raise _missing(entry, entry.secret_name, f"{name} (or uri)")
    return fields
