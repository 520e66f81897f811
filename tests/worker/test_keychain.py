"""Section G, rules K30, K32, K45: credentials from mounted Secrets, and tokens got with them."""

import base64
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from aiohttp import web

from noetl_core.model import KeychainEntry, KeychainKind
from noetl_core.model.sections import SecretRef
from noetl_worker.keychain import (
    Credential,
    KeychainError,
    NoToken,
    StepKeychain,
    resolve,
    resolve_entry,
)
from noetl_worker.oauth import OAuthTokens, Posted, token_error
from noetl_worker.pools import Pools
from noetl_worker.redact import Redactor
from noetl_worker.tools.base import ToolSettings
from noetl_worker.tools.http import form_post
from tests.support.http_server import serving


def secret(folder: Path, name: str, **keys: str) -> None:
    (folder / name).mkdir(exist_ok=True)
    for key, value in keys.items():
        (folder / name / key.replace("__", "-")).write_text(value)


def entry(name: str, kind: KeychainKind, ref: str | None = None, **fields: str) -> KeychainEntry:
    secret_ref = SecretRef(name=ref) if ref else None
    return KeychainEntry(name=name, kind=kind, secretRef=secret_ref, map=fields)


def test_G1_the_secret_has_the_name_of_the_entry_with_dashes(tmp_path: Path) -> None:
    secret(tmp_path, "my-api", token="t0ken\n")
    (tmp_path / "my-api" / "..data").mkdir()
    found = resolve((entry("my_api", KeychainKind.BEARER),), tmp_path)
    assert found["my_api"].fields == {"token": "t0ken"}


def test_G1_map_takes_fields_from_keys_and_other_secrets(tmp_path: Path) -> None:
    secret(tmp_path, "one", a="1", b="2")
    secret(tmp_path, "two", c="3")
    found = resolve_entry(entry("x", KeychainKind.SECRET, "one", f="a", g="two/c"), tmp_path)
    assert found.fields == {"f": "1", "g": "3"}


def test_G3_a_secret_that_is_not_there_is_an_empty_folder_in_a_pod(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "..data").mkdir()
    with pytest.raises(KeychainError, match=r"^keychain entry x: there is no Secret gone$"):
        resolve_entry(entry("x", KeychainKind.SECRET, "gone"), tmp_path)
    with pytest.raises(KeychainError, match="no Secret gone, whose key token or access_token is"):
        resolve_entry(entry("x", KeychainKind.BEARER, "gone"), tmp_path)
    with pytest.raises(KeychainError, match="no Secret gone, whose key a is needed"):
        resolve_entry(entry("x", KeychainKind.SECRET, "gone", f="a"), tmp_path)


@pytest.mark.parametrize("key", ["../outside", "../../etc/passwd", "one/..", "one/../../x", ".."])
def test_G1_a_map_leads_nowhere_else(tmp_path: Path, key: str) -> None:
    folder = tmp_path / "keychain"
    folder.mkdir()
    (tmp_path / "outside").write_text("canary")
    secret(folder, "one", a="1")
    with pytest.raises(KeychainError, match="entry x"):
        resolve_entry(entry("x", KeychainKind.SECRET, "one", f=key), folder)
    with pytest.raises(KeychainError):
        resolve_entry(entry("x", KeychainKind.SECRET, ".."), folder)


@pytest.mark.parametrize(
    ("kind", "keys", "said"),
    [
        (KeychainKind.BEARER, {"x": "1"}, "no key token or access_token"),
        (KeychainKind.BASIC, {"username": "1"}, "no key password"),
        (KeychainKind.API_KEY, {"x": "1"}, "no key api_key"),
        (KeychainKind.OAUTH2, {"client_id": "1", "client_secret": "2"}, "no key token_url"),
        (KeychainKind.POSTGRES, {"host": "h", "user": "u"}, r"no key dbname \(or uri\)"),
    ],
)
def test_G3_a_missing_key_names_entry_secret_and_key(
    tmp_path: Path, kind: KeychainKind, keys: dict[str, str], said: str
) -> None:
    secret(tmp_path, "box", **keys)
    with pytest.raises(KeychainError, match=f"entry x: the Secret box has {said}"):
        resolve_entry(entry("x", kind, "box"), tmp_path)
    with pytest.raises(KeychainError, match="entry x: there is no Secret gone"):
        resolve_entry(entry("x", kind, "gone"), tmp_path)


@pytest.mark.parametrize(
    "keys",
    [
        {"host": "h", "port": "1", "user": "u", "password": "p", "dbname": "d"},
        {"db_host": "h", "db_port": "1", "db_user": "u", "db_password": "p", "db_name": "d"},
        {"host": "h", "port": "1", "username": "u", "password": "p", "dbname": "d"},
    ],
)
def test_G2_postgres_credentials_by_any_name(tmp_path: Path, keys: dict[str, str]) -> None:
    secret(tmp_path, "pg", **keys)
    fields = resolve_entry(entry("pg", KeychainKind.POSTGRES), tmp_path).fields
    names = ("host", "port", "user", "password", "dbname")
    assert [fields[name] for name in names] == ["h", "1", "u", "p", "d"]


def test_K32_open_fields_are_no_secrets() -> None:
    fields = {"host": "db.example", "port": "5432", "user": "alice", "password": "hunter22"}
    known = Credential("pg", KeychainKind.POSTGRES, {**fields, "db_host": "db.example"})
    assert known.secrets() == ["hunter22"]
    assert Credential("x", KeychainKind.SECRET, {"host": "h-secret"}).secrets() == ["h-secret"]
    assert "hunter22" not in f"{known!r} {known}"


def test_K45_a_uri_is_masked_as_a_whole_and_by_its_password() -> None:
    uri = "postgresql://alice:p%40ssw0rd@db.example/x"
    redactor = Redactor(Credential("pg", KeychainKind.POSTGRES, {"uri": uri}).secrets())
    assert redactor.text(f"cannot reach {uri}!") == "cannot reach ***!"
    assert redactor.text("wrong: p@ssw0rd") == "wrong: ***"
    assert redactor.text("db.example alice") == "db.example alice"


def test_K32_a_basic_header_is_masked_as_a_whole() -> None:
    known = Credential("b", KeychainKind.BASIC, {"username": "me", "password": "hunter22"})
    header = "Basic " + base64.b64encode(b"me:hunter22").decode()
    assert Redactor(known.secrets()).text(header) == "Basic ***"


async def test_I6_refreshing_reads_the_secret_again(tmp_path: Path) -> None:
    secret(tmp_path, "api", token="first-token")
    redactor = Redactor()
    keychain = StepKeychain(
        (entry("api", KeychainKind.BEARER),), tmp_path, OAuthTokens(_never), redactor
    )
    assert keychain.scope == {"api": {"token": "first-token"}}
    secret(tmp_path, "api", token="second-token")
    found = await keychain.refresh("api")
    assert found is not None
    assert keychain.entry("api") == found
    assert keychain.scope == {"api": {"token": "second-token"}}
    assert redactor.text("first-token second-token") == "*** ***"
    assert await keychain.refresh("other") is None
    secret(tmp_path, "api", other="x")
    (tmp_path / "api" / "token").unlink()
    with pytest.raises(KeychainError, match="the Secret api has no key token"):
        await keychain.refresh("api")


async def _never(*_: object) -> Posted:
    raise AssertionError("no token was asked for")


def client(url: str, **more: str) -> Credential:
    fields = {"token_url": url, "client_id": "me", "client_secret": "s3cret-s3cret", **more}
    return Credential("api", KeychainKind.OAUTH2, fields)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("wants", ["basic", "form"])
async def test_G2_tokens_are_fetched_kept_and_fetched_again(wants: str) -> None:
    asked: list[dict[str, list[str]]] = []

    async def handler(request: web.Request) -> web.Response:
        form = parse_qs((await request.read()).decode())
        header = "Basic " + base64.b64encode(b"me:s3cret-s3cret").decode()
        good = request.headers.get("Authorization") == header
        if wants == "form":
            good = form.get("client_secret") == ["s3cret-s3cret"]
        if not good:
            return web.json_response({"error": "invalid_client"}, status=401)
        asked.append(form)
        return web.json_response({"access_token": f"token-{len(asked)}", "expires_in": 100})

    pools, clock = Pools(), Clock()
    tokens = OAuthTokens(form_post(pools, ToolSettings()), clock)
    async with serving(handler) as url:
        known = client(url, scope="read write")
        assert [await tokens.get(known) for _ in range(3)] == ["token-1"] * 3
        assert await tokens.get(known, rejected="token-1") == "token-2"
        assert await tokens.get(known, rejected="token-1") == "token-2"
        clock.now += 91
        assert await tokens.get(known) == "token-3"
        changed = client(url, scope="read")
        assert await tokens.get(changed) == "token-4"
        await pools.close()
    assert asked[0]["grant_type"] == ["client_credentials"]
    assert asked[0]["scope"] == ["read write"]


@pytest.mark.parametrize(
    ("status", "body", "said", "kind"),
    [
        (401, {"error": "invalid_client"}, "HTTP 401, invalid_client", "auth"),
        (503, {}, "HTTP 503", "connection"),
        (200, {"token": "x"}, "no access_token", "auth"),
    ],
)
async def test_G2_why_there_is_no_token(status: int, body: dict, said: str, kind: str) -> None:
    async def post(*_: object) -> Posted:
        return Posted(status, body)

    with pytest.raises(NoToken, match=said) as raised:
        await OAuthTokens(post).get(client("http://x/token"))
    assert "entry api" in str(raised.value)
    assert token_error(raised.value).kind == kind


async def test_G2_a_token_server_that_is_away_can_be_tried_again() -> None:
    pools = Pools()
    tokens = OAuthTokens(form_post(pools, ToolSettings()))
    with pytest.raises(NoToken) as raised:
        await tokens.get(client("http://127.0.0.1:1/token"))
    assert raised.value.retryable
    with pytest.raises(NoToken, match="metadata addresses are refused"):
        await tokens.get(client("http://169.254.169.254/token"))
    await pools.close()


async def test_things_in_a_pool_are_shared_and_closed() -> None:
    pools, made, closed = Pools(idle_s=0.0), [], []

    async def make() -> int:
        made.append(len(made))
        return made[-1]

    async def close(thing: int) -> None:
        closed.append(thing)

    async with pools.use("a", make, close) as first, pools.use("a", make, close) as second:
        assert first == second
        await pools.close_idle()
        await pools.drop("a")
        assert closed == []
        async with pools.use("a", make, close) as third:
            assert third == 1
    assert closed == [0]
    await pools.close()
    assert closed == [0, 1]
