"""Rules D7, K24, K34, K42, K44: `http` against real servers on loopback."""

import asyncio
import base64
import email.utils
import json
import socket
import time
from dataclasses import replace

import pytest
from aiohttp import web

from noetl_core.model import KeychainKind
from noetl_core.outcomes import ErrorKind, Outcome
from noetl_worker.tools import http_guard
from tests.support.http_server import (
    certificate,
    raw_server,
    server_context,
    serving,
    talk_http2,
)
from tests.support.tools import Bench


def failure(outcome: Outcome) -> tuple[ErrorKind, str | None]:
    assert outcome.error is not None, outcome.result
    assert outcome.error.source == "http"
    return outcome.error.kind, outcome.error.code


async def echo(request: web.Request) -> web.Response:
    """Says what it was asked."""
    body = await request.read()
    return web.json_response(
        {
            "method": request.method,
            "path": request.path,
            "query": [[k, v] for k, v in request.query.items()],
            "headers": {k.lower(): v for k, v in request.headers.items()},
            "body": body.decode("utf-8", "replace"),
        }
    )


async def asked(bench: Bench, **inputs: object) -> dict:
    async with serving(echo) as url:
        path = inputs.pop("path", "/x")
        outcome = await bench.run("http", url=f"{url}{path}", **inputs)
    assert outcome.error is None, outcome.error
    return outcome.result["data"]


async def test_D7_a_result_has_status_headers_data_url_elapsed(bench: Bench) -> None:
    async with serving(echo) as url:
        outcome = await bench.run("http", url=f"{url}/a?b=1")
    assert outcome.error is None
    result = outcome.result
    assert set(result) == {"status", "headers", "data", "url", "elapsed_ms"}
    assert (result["status"], result["url"]) == (200, f"{url}/a?b=1")
    assert result["headers"]["content-type"] == "application/json; charset=utf-8"
    assert result["data"]["method"] == "GET"
    assert 0 < result["elapsed_ms"] < 10_000
    assert outcome.helpers["http"] == {"status": 200, "headers": result["headers"]}


async def test_K34_params_join_the_query_of_the_url(bench: Bench) -> None:
    params = {"b": [1, 2], "c": "ä &", "d": None, "e": True, "f": 1.5}
    found = await asked(bench, path="/x?a=0", params=params)
    assert found["query"] == [
        ["a", "0"],
        ["b", "1"],
        ["b", "2"],
        ["c", "ä &"],
        ["e", "true"],
        ["f", "1.5"],
    ]


@pytest.mark.parametrize(
    ("inputs", "body", "content_type"),
    [
        ({"json": {"a": [1, "ä"]}}, '{"a":[1,"ä"]}', "application/json"),
        ({"json": "text"}, '"text"', "application/json"),
        ({"form": {"a": [1, 2], "b": "x y"}}, "a=1&a=2&b=x+y", "application/x-www-form-urlencoded"),
        ({"body": "häll"}, "häll", "text/plain; charset=utf-8"),
        ({"body": {"a": 1}}, '{"a":1}', "application/json"),
        ({"body": [1]}, "[1]", "application/json"),
        ({"body": "<a/>", "headers": {"content-type": "text/xml"}}, "<a/>", "text/xml"),
    ],
)
async def test_K34_bodies(bench: Bench, inputs: dict, body: str, content_type: str) -> None:
    found = await asked(bench, method="post", **inputs)
    assert (found["method"], found["body"]) == ("POST", body)
    assert found["headers"]["content-type"] == content_type


async def test_K44_files_are_multipart(bench: Bench) -> None:
    files = {
        "note": "hello",
        "data": {"filename": "a.csv", "content": "x,y\n1,2", "content_type": "text/csv"},
    }
    seen = {}

    async def handler(request: web.Request) -> web.Response:
        async for part in await request.multipart():
            seen[part.name] = (part.filename, part.headers.get("Content-Type"), await part.text())
        return web.Response()

    async with serving(handler) as url:
        assert (await bench.run("http", url=url, method="PUT", files=files)).error is None
    assert seen["note"][2] == "hello"
    assert seen["note"][0] is None
    assert seen["data"] == ("a.csv", "text/csv", "x,y\n1,2")


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"json": {}, "form": {}}, "one body, not `json` and `form`"),
        ({"url": "ftp://x/"}, "must begin with http"),
        ({"url": "/relative"}, "must begin with http"),
        ({"method": "GE T"}, "`method`"),
        ({"headers": {"x": "a\nb"}}, "`headers.x`"),
        ({"headers": {"x": [1]}}, "`headers.x` must be text"),
        ({"params": {"x": {"y": 1}}}, "`params.x` must be text"),
        ({"files": {"x": {"name": "y"}}}, "`files.x` has no use for `name`"),
        ({"verify": "/no/such/file"}, "`verify`"),
        ({"auth": "nobody"}, "no entry `nobody`"),
        ({"ulr": 1}, "`ulr` is no key"),
        ({"headers": "x"}, "`headers` must be a mapping"),
    ],
)
async def test_K34_what_is_wrong_with_a_request_is_said(
    bench: Bench, inputs: dict, said: str
) -> None:
    outcome = await bench.run("http", **{"url": "http://127.0.0.1:9/", **inputs})
    assert outcome.error is not None
    assert outcome.error.kind is ErrorKind.SCHEMA
    assert said in outcome.error.message


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ErrorKind.CLIENT_ERROR),
        (401, ErrorKind.AUTH),
        (403, ErrorKind.AUTH),
        (404, ErrorKind.NOT_FOUND),
        (408, ErrorKind.CLIENT_ERROR),
        (409, ErrorKind.CLIENT_ERROR),
        (422, ErrorKind.CLIENT_ERROR),
        (429, ErrorKind.RATE_LIMIT),
        (500, ErrorKind.SERVER_ERROR),
        (503, ErrorKind.SERVER_ERROR),
        (599, ErrorKind.SERVER_ERROR),
    ],
)
async def test_D7_statuses_by_table(bench: Bench, status: int, kind: ErrorKind) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"message": "sorry"}, status=status, headers={"X-Why": "so"})

    async with serving(handler) as url:
        outcome = await bench.run("http", url=f"{url}/p?secret=1")
    assert failure(outcome) == (kind, f"HTTP_{status}")
    assert outcome.error is not None
    assert outcome.error.http_status == status
    assert "sorry" in outcome.error.message
    assert "secret" not in outcome.error.message
    assert outcome.result["data"] == {"message": "sorry"}
    assert outcome.helpers["http"]["status"] == status
    assert outcome.helpers["http"]["headers"]["x-why"] == "so"


async def test_D6_retry_after_is_seconds_or_a_date(bench: Bench) -> None:
    headers = ["7", email.utils.formatdate(time.time() + 100, usegmt=True), "soon", ""]

    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": headers[int(request.path[1:])]})

    found = []
    async with serving(handler) as url:
        for index in range(4):
            outcome = await bench.run("http", url=f"{url}/{index}")
            assert outcome.error is not None
            found.append(outcome.error.retry_after)
    assert found[0] == 7.0
    assert 90 < found[1] <= 100
    assert found[2:] == [None, None]


@pytest.mark.parametrize(
    ("content", "content_type", "data"),
    [
        (b'{"a": 12345678901234567890123}', "application/json", {"a": 12345678901234567890123}),
        (b'{"a": 1}', "application/problem+json; charset=utf-8", {"a": 1}),
        (b"", "application/json", None),
        ("hé".encode("latin-1"), "text/plain; charset=latin-1", "hé"),
        (b"a,b", "text/csv", "a,b"),
        (b"<a/>", "application/xml", "<a/>"),
    ],
)
async def test_D7_data_by_content_type(
    bench: Bench, content: bytes, content_type: str, data: object
) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=content, headers={"Content-Type": content_type})

    async with serving(handler) as url:
        outcome = await bench.run("http", url=url)
    assert outcome.error is None
    assert outcome.result["data"] == data


@pytest.mark.parametrize("content", [b"{not json", b"[NaN]", b"[" * 100_000])
async def test_K34_broken_JSON_is_kind_parse(bench: Bench, content: bytes) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=content, content_type="application/json")

    async with serving(handler) as url:
        outcome = await bench.run("http", url=url)
    assert failure(outcome) == (ErrorKind.PARSE, "BAD_JSON")
    assert outcome.result["status"] == 200


async def test_D7_binary_becomes_a_reference(bench: Bench) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=b"\x89PNG\xff", content_type="image/png")

    async with serving(handler) as url:
        outcome = await bench.run("http", url=url)
    ref = outcome.result["data"]
    assert (ref["kind"], ref["media_type"], ref["size"]) == ("result_ref", "image/png", 5)
    assert bench.results.stored[ref["key"]] == b"\x89PNG\xff"


async def test_D7_large_bodies_go_through_a_file(bench: Bench) -> None:
    bench.settings = replace(
        bench.settings, http_memory_bytes=10_000, http_value_bytes=50_000, http_max_bytes=200_000
    )
    sizes = {"text": 30_000, "stored": 100_000, "endless": 10_000_000}

    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await answer.prepare(request)
        for _ in range(sizes[request.path[1:]] // 1000):
            await answer.write(b"x" * 1000)
        return answer

    async with serving(handler) as url:
        text = await bench.run("http", url=f"{url}/text")
        stored = await bench.run("http", url=f"{url}/stored")
        endless = await bench.run("http", url=f"{url}/endless")
    assert text.result["data"] == "x" * 30_000
    assert stored.result["data"]["size"] == 100_000
    assert bench.results.files == 1
    assert failure(endless) == (ErrorKind.LIMIT, "BODY_TOO_LARGE")
    assert list(bench.scratch.iterdir()) == []


async def test_K32_what_is_stored_holds_no_secret(bench: Bench) -> None:
    bench.redactor.add(["canary-secret"])
    bench.settings = replace(bench.settings, http_memory_bytes=1000)

    async def handler(request: web.Request) -> web.Response:
        body = b"\xff" * int(request.path[1:]) + b"canary-secret"
        return web.Response(body=body, content_type="application/octet-stream")

    async with serving(handler) as url:
        await bench.run("http", url=f"{url}/5")
        await bench.run("http", url=f"{url}/5000")
    assert len(bench.results.stored) == 2
    for content in bench.results.stored.values():
        assert b"canary" not in content
        assert content.endswith(b"\xff***")


async def hop(request: web.Request) -> web.Response:
    left = int(request.path[1:])
    if left:
        return web.Response(status=302, headers={"Location": f"/{left - 1}"})
    return await echo(request)


async def test_K34_redirects_are_followed_five_times(bench: Bench) -> None:
    async with serving(hop) as url:
        five = await bench.run("http", url=f"{url}/5")
        six = await bench.run("http", url=f"{url}/6")
        ten = await bench.run("http", url=f"{url}/9", follow_redirects=9)
        none = await bench.run("http", url=f"{url}/1", follow_redirects=False)
        zero = await bench.run("http", url=f"{url}/1", follow_redirects=0)
    assert (five.result["status"], five.result["url"]) == (200, f"{url}/0")
    assert failure(six) == (ErrorKind.CLIENT_ERROR, "TOO_MANY_REDIRECTS")
    assert ten.result["status"] == 200
    assert (none.error, none.result["status"]) == (None, 302)
    assert none.result["headers"]["location"] == "/0"
    assert zero.result["status"] == 302


@pytest.mark.parametrize("status", [302, 307])
async def test_K34_credentials_do_not_go_to_another_host(bench: Bench, status: int) -> None:
    bench.credential("key", KeychainKind.API_KEY, api_key="canary-key", header="X-Own")
    bench.credential("other", KeychainKind.SECRET, token="canary-other")
    headers = {"X-Other": "t=canary-other", "X-Open": "open", "Cookie": "a=b"}
    async with serving(echo) as target:

        async def handler(request: web.Request) -> web.Response:
            assert request.headers["X-Own"] == "canary-key"
            return web.Response(status=status, headers={"Location": f"{target}/there"})

        async with serving(handler) as url:
            outcome = await bench.run("http", url=url, headers=headers, auth="key")
            told = await bench.run(
                "http", url=url, method="POST", auth="key", json={"t": "canary-other"}
            )
    data = outcome.result["data"]
    assert data["path"] == "/there"
    assert "canary" not in json.dumps(data)
    assert data["headers"]["x-open"] == "open"
    assert "cookie" not in data["headers"]
    if status == 307:
        assert failure(told) == (ErrorKind.POLICY, "REDIRECT_REFUSED")
    else:
        assert told.result["data"]["method"] == "GET"


async def test_K34_credentials_stay_on_the_same_host(bench: Bench) -> None:
    bench.credential("me", KeychainKind.BEARER, token="canary-key")
    async with serving(hop) as url:
        outcome = await bench.run("http", url=f"{url}/2", auth="me")
    assert outcome.result["data"]["headers"]["authorization"] == "Bearer canary-key"


async def test_K34_auth_by_kind(bench: Bench) -> None:
    bench.credential("bearer", KeychainKind.BEARER, token="tok-1")
    bench.credential("basic", KeychainKind.BASIC, username="me", password="pä:ss")
    bench.credential("key", KeychainKind.API_KEY, api_key="key-1")
    found = {n: (await asked(bench, auth=n))["headers"] for n in ("bearer", "basic", "key")}
    assert found["bearer"]["authorization"] == "Bearer tok-1"
    basic = base64.b64encode("me:pä:ss".encode()).decode()
    assert found["basic"]["authorization"] == f"Basic {basic}"
    assert found["key"]["x-api-key"] == "key-1"


async def test_K34_auth_of_kind_secret_is_an_error_with_a_hint(bench: Bench) -> None:
    bench.credential("raw", KeychainKind.SECRET, token="tok-1")
    outcome = await bench.run("http", url="http://127.0.0.1:9/", auth="raw")
    assert failure(outcome) == (ErrorKind.SCHEMA, "AUTH_KIND")
    assert outcome.error is not None
    assert "keychain.raw.<key>" in outcome.error.message


async def test_G2_a_rejected_token_is_fetched_again_once(bench: Bench) -> None:
    bench.credential("api", KeychainKind.OAUTH2, client_secret="x" * 8)
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        return web.Response(status=200 if seen[-1].endswith(request.path[1:]) else 401)

    async with serving(handler) as url:
        bench.keychain.tokens = ["old", "new", "newer"]
        good = await bench.run("http", url=f"{url}/new", auth="api")
        assert (good.error, seen) == (None, ["Bearer old", "Bearer new"])
        bench.keychain.tokens = ["a", "b", "c"]
        bad = await bench.run("http", url=f"{url}/none", auth="api")
    assert failure(bad) == (ErrorKind.AUTH, "HTTP_401")
    assert seen[2:] == ["Bearer a", "Bearer b"]


async def test_K42_retry_statuses_give_two_tries(bench: Bench) -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.path)
        good = request.path == "/flaky" and len(seen) > 1
        return web.Response(status=200 if good else 503)

    async with serving(handler) as url:
        flaky = await bench.run("http", {"retry_statuses": [503]}, url=f"{url}/flaky")
        assert (flaky.error, len(seen)) == (None, 2)
        seen.clear()
        down = await bench.run("http", {"retry_statuses": [503]}, url=f"{url}/down")
        assert (failure(down)[1], len(seen)) == ("HTTP_503", 2)
        seen.clear()
        await bench.run("http", {"retry_statuses": []}, url=f"{url}/down")
        assert len(seen) == 1


async def test_K34_cookies_are_not_shared_between_tasks(bench: Bench) -> None:
    async def handler(request: web.Request) -> web.Response:
        if request.path == "/set":
            return web.Response(status=302, headers={"Location": "/x", "Set-Cookie": "s=1"})
        return await echo(request)

    async with serving(handler) as url:
        first = await bench.run("http", url=f"{url}/set")
        second = await bench.run("http", url=f"{url}/x")
    assert first.result["data"]["headers"]["cookie"] == "s=1"
    assert "cookie" not in second.result["data"]["headers"]


async def test_K34_connections_are_shared_between_tasks(bench: Bench) -> None:
    peers = set()

    async def handler(request: web.Request) -> web.Response:
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response()

    async with serving(handler) as url:
        for _ in range(5):
            await bench.run("http", url=url)
    assert len(peers) == 1


async def test_K34_verify(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> None:
    pem = certificate(tmp_path_factory.mktemp("tls"))
    async with serving(echo, server_context(pem)) as url:
        trusted = await bench.run("http", url=url, verify=str(pem))
        strict = await bench.run("http", url=url)
        loose = await bench.run("http", url=url, verify=False)
    assert trusted.error is None
    assert failure(strict) == (ErrorKind.CONNECTION, "TLS_ERROR")
    assert loose.error is None


async def test_K34_http2_where_the_server_offers_it(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pem = certificate(tmp_path_factory.mktemp("tls"))
    async with raw_server(talk_http2, server_context(pem, "h2")) as port:
        outcome = await bench.run("http", url=f"https://localhost:{port}/", verify=str(pem))
        await bench.pools.close()
    assert outcome.result["data"] == {"version": 2}


async def test_K34_proxies_of_the_environment(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def proxy(request: web.Request) -> web.Response:
        return web.json_response({"target": str(request.url), "by": "proxy"})

    async with serving(proxy) as url, serving(echo) as direct:
        monkeypatch.setenv("http_proxy", url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        outcome = await bench.run("http", url="http://far.example/x")
        near = await bench.run("http", url=direct)
        refused = await bench.run("http", url="http://169.254.169.254/x")
        await bench.pools.close()
    assert outcome.result["data"] == {"target": "http://far.example/x", "by": "proxy"}
    assert "method" in near.result["data"]
    assert failure(refused) == (ErrorKind.POLICY, "ADDRESS_REFUSED")


def _closed_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


async def test_K24_connection_codes(bench: Bench) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()

    async def cut_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
        await writer.drain()

    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        await writer.drain()

    refused = await bench.run("http", url=f"http://127.0.0.1:{_closed_port()}/")
    assert failure(refused) == (ErrorKind.CONNECTION, "CONN_REFUSED")
    unknown = await bench.run("http", url="http://no-such-host.invalid/")
    assert failure(unknown) == (ErrorKind.CONNECTION, "DNS_ERROR")
    for talk in (hang_up, cut_off, babble):
        async with raw_server(talk) as port:
            reset = await bench.run("http", url=f"http://127.0.0.1:{port}/")
        assert failure(reset) == (ErrorKind.CONNECTION, "CONN_RESET")


async def test_K42_timeouts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"timeout": {"connect": 0.2, "read": 0.2}}

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.02)

    async def slow_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.02)

    for talk in (silent, dripping, slow_headers):
        started = time.monotonic()
        async with raw_server(talk) as port:
            outcome = await bench.run("http", spec, url=f"http://127.0.0.1:{port}/")
        assert failure(outcome) == (ErrorKind.TIMEOUT, "READ_TIMEOUT")
        assert time.monotonic() - started < 3

    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(http_guard, "_addresses", never)
    outcome = await bench.run("http", spec, url="http://slow.example/")
    assert failure(outcome) == (ErrorKind.TIMEOUT, "CONN_TIMEOUT")


async def test_D9_a_cancelled_request_lets_go(bench: Bench) -> None:
    gone = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.read()
        gone.set()

    async with raw_server(silent) as port:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await bench.run("http", {"timeout": 0.2}, url=f"http://127.0.0.1:{port}/", body="x")
        await asyncio.wait_for(gone.wait(), 5)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
        "2852039166",
        "0xA9FEA9FE",
        "[fd00:ec2::254]",
        "metadata.google.internal",
        "METADATA.google.internal.",
    ],
)
async def test_link_local_addresses_are_refused(bench: Bench, host: str) -> None:
    outcome = await bench.run("http", {"timeout": 2}, url=f"http://{host}/latest/meta-data")
    assert failure(outcome) == (ErrorKind.POLICY, "ADDRESS_REFUSED")


async def test_link_local_addresses_are_refused_behind_names_and_redirects(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "http://169.254.169.254/"})

    async with serving(handler) as url:
        redirected = await bench.run("http", url=url)
    assert failure(redirected) == (ErrorKind.POLICY, "ADDRESS_REFUSED")

    async def rebound(host: str, port: int) -> list[str]:
        return ["127.0.0.1", "169.254.169.254"]

    monkeypatch.setattr(http_guard, "_addresses", rebound)
    named = await bench.run("http", url="http://harmless.example/")
    assert failure(named) == (ErrorKind.POLICY, "ADDRESS_REFUSED")


async def test_link_local_addresses_can_be_allowed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.settings = replace(bench.settings, allow_link_local=True)
    async with serving(echo) as url:
        port = url.rpartition(":")[2]

        async def mapped(host: str, port: int) -> list[str]:
            return ["127.0.0.1"] if host == "169.254.169.254" else [host]

        monkeypatch.setattr(http_guard, "_addresses", mapped)
        outcome = await bench.run("http", url=f"http://169.254.169.254:{port}/")
    assert outcome.error is None


async def test_K32_secrets_show_in_no_outcome(bench: Bench) -> None:
    """Echoes, errors, redirects and addresses, in every field that can hold a secret."""
    secret = "canary/S3cret+x"
    bench.credential("basic", KeychainKind.BASIC, username="me", password=secret)
    bench.credential("raw", KeychainKind.SECRET, value=secret)
    forms = {
        secret,
        json.dumps(secret)[1:-1],
        "canary%2FS3cret%2Bx",
        base64.b64encode(secret.encode()).decode(),
        base64.b64encode(f"me:{secret}".encode()).decode(),
    }

    async def handler(request: web.Request) -> web.Response:
        answer = await echo(request)
        status = int(request.query.get("status", "200"))
        return web.Response(
            body=answer.body,
            status=status,
            content_type=request.query.get("type", "application/json"),
            headers={"X-Echo": request.headers.get("Authorization", secret)},
        )

    async with serving(handler) as url:
        outcomes = [
            await bench.run("http", **inputs)
            for status in ("200", "401", "500")
            for kind in ("application/json", "text/plain", "image/png")
            for inputs in (
                {
                    "url": url,
                    "params": {"status": status, "type": kind, "s": secret},
                    "auth": "basic",
                },
                {
                    "url": f"{url}/{secret}?status={status}",
                    "method": "POST",
                    "json": {secret: secret},
                    "headers": {"X-Secret": secret},
                },
                {"url": url, "method": "POST", "form": {"a": secret}},
                {"url": url, "method": "POST", "files": {"a": {"content": secret}}},
            )
        ]
    outcomes.append(await bench.run("http", url=f"http://127.0.0.1:9/{secret}"))
    outcomes.append(await bench.run("http", url=secret))
    outcomes.append(await bench.run("http", url="http://127.0.0.1:9/", method=secret))
    outcomes.append(
        await bench.run("http", url="http://127.0.0.1:9/", headers={"a": {"b": secret}})
    )
    outcomes.append(await bench.run("http", url=[secret], method={"a": secret}))
    raw = repr(outcomes)
    assert secret in raw
    shown = json.dumps([bench.redactor.record(o).as_json(1) for o in outcomes])
    for form in forms:
        assert form not in shown
    for content in bench.results.stored.values():
        assert secret.encode() not in content


async def test_K34_user_and_password_of_the_url_are_sent_not_shown(bench: Bench) -> None:
    async with serving(echo) as url:
        outcome = await bench.run("http", url=url.replace("//", "//me:pass@"))
    expected = "Basic " + base64.b64encode(b"me:pass").decode()
    assert outcome.result["data"]["headers"]["authorization"] == expected
    assert outcome.result["url"].rstrip("/") == url
