"""Credentials from the folder where Secrets are mounted, `<secret>/<key>`, a file each (section G).

The operator never sees any of this. Files are read when a step-run begins, so a Secret that changed
is seen by the next one. Everything that must not leave the worker is known here, for `redact`; a
`StepKeychain` is what one step-run has of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from noetl_core.model import KeychainEntry, KeychainKind
from noetl_core.values import Value
from noetl_worker.redact import Redactor

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

_OPEN_ALIASES = {alias for name in ("host", "port", "user", "dbname") for alias in _POSTGRES[name]}


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""Names of Secrets and of their keys: a path that leads elsewhere is none."""


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
        found = [value for name, value in self.fields.items() if not self._is_open(name)]
        found += [password for value in found if (password := _password_of(value))]
        for user, password in (("username", "password"), ("client_id", "client_secret")):
            # As a Basic header has them, so that it is masked as a whole.
            if user in self.fields and password in self.fields:
                found.append(f"{self.fields[user]}:{self.fields[password]}")
        return found

    def _is_open(self, name: str) -> bool:
        if self.kind is KeychainKind.SECRET:
            return False
        is_alias = self.kind is KeychainKind.POSTGRES and name in _OPEN_ALIASES
        return name in _OPEN or is_alias


def _password_of(uri: str) -> str | None:
    """The password inside an address, whatever the field that holds it is called."""
    if "://" not in uri:
        return None
    try:
        password = urlsplit(uri).password
    except ValueError:
        return None
    return unquote(password) if password else None


class NoToken(Exception):
    """A token cannot be had; `retryable` says whether trying again may help."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class Tokens(Protocol):
    """Fetches tokens of `oauth2_client_credentials` entries and keeps them while they are good."""

    async def get(self, credential: Credential, rejected: str | None = None) -> str:
        """A token, another than `rejected`; raises `NoToken`."""


class StepKeychain:
    """The keychain of one step-run."""

    def __init__(
        self,
        entries: tuple[KeychainEntry, ...],
        folder: Path,
        tokens: Tokens,
        redactor: Redactor,
    ) -> None:
        """Reads every entry; raises `KeychainError`."""
        self._entries = {entry.name: entry for entry in entries}
        self._folder, self._tokens, self._redactor = folder, tokens, redactor
        self._credentials: dict[str, Credential] = {}
        self.scope: dict[str, Value] = {}
        """What templates see as `keychain`; an entry that is refreshed is replaced in it."""
        for credential in resolve(entries, folder).values():
            self._take(credential)

    def _take(self, credential: Credential) -> None:
        self._redactor.add(credential.secrets())
        self._credentials[credential.name] = credential
        self.scope[credential.name] = dict(credential.fields)

    def entry(self, name: str) -> Credential | None:
        """The credential of this name, as it is now."""
        return self._credentials.get(name)

    async def token(self, name: str, rejected: str | None = None) -> str:
        """A good token of an `oauth2_client_credentials` entry; raises `NoToken`."""
        token = await self._tokens.get(self._credentials[name], rejected)
        self._redactor.add([token])
        return token

    async def refresh(self, name: str) -> Credential | None:
        """Read an entry again (rule I6); raises `KeychainError`, and then the old one stays."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        self._take(resolve_entry(entry, self._folder))
        return self._credentials[name]


def resolve(entries: tuple[KeychainEntry, ...], folder: Path) -> dict[str, Credential]:
    """Every entry of a playbook; the first that is not complete raises `KeychainError`."""
    return {entry.name: resolve_entry(entry, folder) for entry in entries}


def resolve_entry(entry: KeychainEntry, folder: Path) -> Credential:
    if entry.map:
        fields = {name: _read_key(entry, folder, key) for name, key in entry.map.items()}
    else:
        _check_name(entry, entry.secret_name)
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


def _no_secret(entry: KeychainEntry, secret: str, key: str) -> KeychainError:
    wanted = f", whose key {key} is needed" if key else ""
    return KeychainError(f"keychain entry {entry.name}: there is no Secret {secret}{wanted}")


def _read_key(entry: KeychainEntry, folder: Path, key: str) -> str:
    """One mapped field: a key of the entry's own Secret, or `secret/key`."""
    secret, _, name = key.rpartition("/")
    secret = secret or entry.secret_name
    _check_name(entry, secret)
    _check_name(entry, name)
    keys = _keys(folder / secret)
    if not keys:
        raise _no_secret(entry, secret, name)
    if name not in keys:
        raise _missing(entry, secret, name)
    return _text(keys[name])


def _check_name(entry: KeychainEntry, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise KeychainError(
            f"keychain entry {entry.name}: `{name}` is no name of a Secret or of a key in one"
        )


def _read_secret(entry: KeychainEntry, folder: Path) -> dict[str, str]:
    keys = _keys(folder)
    if not keys:
        needed = [" or ".join(names) for names in _FIELDS[entry.kind]]
        raise _no_secret(entry, folder.name, ", ".join(needed))
    return {name: _text(path) for name, path in keys.items()}


def _keys(folder: Path) -> dict[str, Path]:
    """The files of a mounted Secret. One that is not there is an empty folder in a Pod."""
    if not folder.is_dir():
        return {}
    # Hidden folders (`..data`) stand beside the keys.
    files = [path for path in folder.iterdir() if not path.name.startswith("..")]
    return {path.name: path for path in sorted(files) if path.is_file()}


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
