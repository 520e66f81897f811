"""Tokens of `oauth2_client_credentials` entries: fetched, kept while good, fetched again (rule G2).

One `OAuthTokens` per worker: step-runs that use the same credential share its token. A token is
fetched anew shortly before it expires, when the Secret changed, and when a server rejected it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from noetl_core.outcomes import ErrorKind, TaskError
from noetl_core.values import Value
from noetl_worker.keychain import Credential, NoToken

EARLY_S = 30.0
"""A token is not used any more so long before it expires (or a tenth of its life before)."""
LIFE_S = 300.0
"""How long a token is taken to be good where the server does not say."""
MAX_KEPT = 1_000
"""Credentials whose tokens are kept."""


@dataclass(frozen=True, slots=True)
class Posted:
    """The answer to a form that was posted."""

    status: int
    data: Value = None
    error: TaskError | None = None
    """Set where there was no answer."""


Post = Callable[[str, Mapping[str, str], tuple[str, str] | None], Awaitable[Posted]]
"""Posts a form to an address, with a Basic header where user and password are given."""


@dataclass(slots=True)
class _Kept:
    token: str
    until: float


class OAuthTokens:
    """The tokens of this worker."""

    def __init__(self, post: Post, clock: Callable[[], float] = time.monotonic) -> None:
        self._post, self._clock = post, clock
        self._kept: dict[tuple[str, ...], _Kept] = {}
        self._locks: dict[tuple[str, ...], asyncio.Lock] = {}

    async def get(self, credential: Credential, rejected: str | None = None) -> str:
        """A good token, another than `rejected`; raises `NoToken`."""
        names = ("token_url", "client_id", "client_secret", "scope")
        key = tuple(credential.fields.get(name, "") for name in names)
        if len(self._kept) > MAX_KEPT:
            self._kept.clear()
            self._locks = {one: lock for one, lock in self._locks.items() if lock.locked()}
        async with self._locks.setdefault(key, asyncio.Lock()):
            kept = self._kept.get(key)
            if kept is not None and kept.token != rejected and self._clock() < kept.until:
                return kept.token
            self._kept.pop(key, None)
            self._kept[key] = await self._fetch(credential)
            return self._kept[key].token

    async def _fetch(self, credential: Credential) -> _Kept:
        """Ask with a Basic header, which every server must take, then with fields of the form,
        which some want instead."""
        fields = credential.fields
        form = {"grant_type": "client_credentials"}
        if fields.get("scope"):
            form["scope"] = fields["scope"]
        client = {"client_id": fields["client_id"], "client_secret": fields["client_secret"]}
        url = fields["token_url"]
        asked_at = self._clock()
        answer = await self._post(url, form, (client["client_id"], client["client_secret"]))
        if answer.status in (400, 401):
            answer = await self._post(url, {**form, **client}, None)
        return _read(credential, answer, asked_at)


def _read(credential: Credential, answer: Posted, asked_at: float) -> _Kept:
    who = f"keychain entry {credential.name}: no token from {credential.fields['token_url']}"
    if answer.error is not None:
        retryable = answer.error.kind.retryable
        raise NoToken(f"{who}: {answer.error.message}", retryable=retryable)
    data = answer.data if isinstance(answer.data, dict) else {}
    if answer.status >= 400:
        said = data.get("error_description") or data.get("error")
        message = f"{who}: HTTP {answer.status}" + (f", {said}" if said else "")
        raise NoToken(message, retryable=answer.status >= 500 or answer.status == 429)
    token = data.get("access_token")
    if not isinstance(token, str) or not token:
        raise NoToken(f"{who}: the answer has no access_token")
    life = _seconds(data.get("expires_in"))
    return _Kept(token, asked_at + life - min(EARLY_S, life / 10))


def _seconds(value: Value) -> float:
    """`expires_in`, which some servers send as text."""
    try:
        seconds = float(value) if isinstance(value, int | float | str) else LIFE_S
    except ValueError:
        return LIFE_S
    return seconds if seconds > 0 else LIFE_S


def token_error(error: NoToken) -> TaskError:
    """What a task fails with that could not get a token."""
    kind = ErrorKind.CONNECTION if error.retryable else ErrorKind.AUTH
    return TaskError(kind=kind, code="OAUTH_TOKEN", message=str(error))
