"""Whether `auth` and `attach` name an entry of the keychain that fits (rules A5, I1, I2, K34)."""

from __future__ import annotations

from collections.abc import Iterator

from noetl_core.checks.report import Report, TaskAt
from noetl_core.model import KeychainEntry, KeychainKind
from noetl_core.problems import Path
from noetl_core.values import Value

_SQL_KINDS = ("postgres", "duckdb")


def check(report: Report) -> None:
    entries: dict[str, KeychainEntry] = {}
    for entry in report.playbook.keychain:
        entries.setdefault(entry.name, entry)
    for at in report.tasks:
        for path, name in _named(at):
            if name in entries:
                _fits(report, path, at.resolved.kind, entries[name])
            else:
                _unknown(report, path, name, entries)


def _named(at: TaskAt) -> Iterator[tuple[Path, str]]:
    """Every entry a task names as plain text; a template is judged when it runs (rule K6)."""
    if _is_name(auth := at.task.inputs.get("auth")):
        yield (*at.path, "auth"), str(auth)
    attached = at.task.inputs.get("attach") if at.resolved.kind == "duckdb" else None
    if _is_name(attached):
        yield (*at.path, "attach"), str(attached)
    elif isinstance(attached, list):
        for index, item in enumerate(attached):
            if _is_name(item):
                yield (*at.path, "attach", index), str(item)


def _is_name(value: Value) -> bool:
    return isinstance(value, str) and "{{" not in value


def _unknown(report: Report, path: Path, name: str, entries: dict[str, KeychainEntry]) -> None:
    attach = "attach" in path
    message = f"`{name}` is no entry of the keychain"
    hint = report.did_you_mean(name, entries)
    if hint is None:
        kind = "postgres_credential" if attach else "…"
        hint = f"declare it: keychain: [{{name: {name or '…'}, kind: {kind}}}]"
    report.error("I2.unknown-entry" if attach else "A5.unknown-auth", path, message, hint)


def _fits(report: Report, path: Path, kind: str, entry: KeychainEntry) -> None:
    is_postgres = entry.kind is KeychainKind.POSTGRES
    if kind in _SQL_KINDS and not is_postgres:
        message = (
            f"`{entry.name}` is of kind `{entry.kind}`; a database takes `postgres_credential`"
        )
        code = "I1.auth-kind" if kind == "postgres" else "I2.auth-kind"
        # A plain secret may hold a connection's fields; the other kinds can't.
        tell = report.warning if entry.kind is KeychainKind.SECRET else report.error
        tell(code, path, message, f"declare `{entry.name}` with kind: postgres_credential")
    elif kind == "http" and entry.kind is KeychainKind.SECRET:
        message = f"`{entry.name}` is a plain secret: it does not say how a request carries it"
        header = f'headers: {{Authorization: "Bearer {{{{ keychain.{entry.name}.<key> }}}}"}}'
        report.error("K34.auth-secret", path, message, f"write the header yourself: {header}")
    elif kind == "http" and is_postgres:
        message = f"`{entry.name}` is a database credential, not one for http"
        hint = "use an entry of kind bearer, basic, api_key or oauth2_client_credentials"
        report.error("K34.auth-kind", path, message, hint)
