"""Where the keychain's entries come from: names of Secrets and of their keys (rule G1)."""

from __future__ import annotations

import re

from noetl_core.checks.report import Report
from noetl_core.model import KeychainEntry
from noetl_core.problems import Path
from noetl_core.shape import KUBERNETES_NAME

_SECRET_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}", re.ASCII)


def check(report: Report) -> None:
    for index, entry in enumerate(report.playbook.keychain):
        _default_secret(report, ("keychain", index), entry)
        for field, source in entry.map.items():
            _source(report, ("keychain", index, "map", field), source)


def _default_secret(report: Report, path: Path, entry: KeychainEntry) -> None:
    """The name that follows from the entry's own must be one a Secret can have."""
    elsewhere = bool(entry.map) and all("/" in source for source in entry.map.values())
    if entry.secretRef is not None or elsewhere or not entry.name:
        return
    if not KUBERNETES_NAME.fullmatch(entry.secret_name):
        message = (
            f"the entry's Secret would be `{entry.secret_name}`, which no Secret can be called"
        )
        hint = "say which Secret: secretRef: {name: …}"
        report.warning("G1.secret-name", (*path, "name"), message, hint)


def _source(report: Report, path: Path, source: str) -> None:
    secret, slash, key = source.rpartition("/")
    if slash and not KUBERNETES_NAME.fullmatch(secret):
        message = f"`{secret}` is not the name of a Secret"
        report.error("G1.map", path, message, "write `key` or `secret-name/key`")
    elif not _SECRET_KEY.fullmatch(key):
        message = f"`{key}` is not a key of a Secret: letters, digits, `-`, `_` and `.`"
        report.error("G1.map", path, message, "write `key` or `secret-name/key`")
