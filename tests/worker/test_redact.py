"""Rules G3, K32, K45: secrets are masked however they are encoded, wrapped or cut."""

import base64
import json
import textwrap
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_worker.needles import parts
from noetl_worker.plain import plain, traced
from noetl_worker.redact import MASK, Redactor
from noetl_worker.redact_stream import StreamRedactor, redact_file

SECRET = 's3cr3t/p@ss+word é"&x'
ALPHABET = st.characters(codec="utf-8", exclude_characters="\0")
SECRETS = st.one_of(
    st.text(ALPHABET, min_size=4, max_size=40),
    st.text("ab%4\\nr*+ =/&\n\"'u0", min_size=4, max_size=20),
    st.text("abcXYZ019-_", min_size=8, max_size=64),
)


def _upper_hex(text: str) -> str:
    return quote(text, safe="")


def _lower_hex(text: str) -> str:
    quoted = quote(text, safe="").split("%")
    return "%".join([quoted[0], *(part[:2].lower() + part[2:] for part in quoted[1:])])


FORMS = {
    "as it is": lambda s: s,
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "base64 without padding": lambda s: base64.b64encode(s.encode()).decode().rstrip("="),
    "url-safe base64": lambda s: base64.urlsafe_b64encode(s.encode()).decode(),
    "base64 one in": lambda s: base64.b64encode(b"x" + s.encode() + b"yz").decode(),
    "base64 two in": lambda s: base64.urlsafe_b64encode(b"xy" + s.encode() + b"z").decode(),
    "base64 three in": lambda s: base64.b64encode(b"user:" + s.encode() + b"\n").decode(),
    "a Basic header": lambda s: "Basic " + base64.b64encode(f"me:{s}".encode()).decode(),
    "wrapped base64": lambda s: base64.encodebytes(b"a" * 50 + s.encode() * 3).decode(),
    "URL-encoded": _upper_hex,
    "URL-encoded in lower case": _lower_hex,
    "URL-encoded but slashes": quote,
    "form-encoded": quote_plus,
    "URL-encoded twice": lambda s: quote(quote(s, safe=""), safe=""),
    "in JSON": json.dumps,
    "in JSON with its letters": lambda s: json.dumps(s, ensure_ascii=False),
    "in JSON in JSON": lambda s: json.dumps(json.dumps({"a": s})),
    "as Python shows it": repr,
    "as Python shows its bytes": lambda s: repr(s.encode()),
    "over lines": lambda s: "\n".join(s),
    "over lines with blanks": lambda s: s[:3] + "\r\n    " + s[3:],
    "over escaped lines": lambda s: s[:3] + "\\n" + s[3:],
    "base64 over lines": lambda s: "\n ".join(
        textwrap.wrap(base64.b64encode(s.encode()).decode(), 3)
    ),
    "hex": lambda s: s.encode().hex(),
    "HTML": lambda s: s.replace("&", "&amp;").replace('"', "&quot;").replace("'", "&#39;"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", [SECRET, "abcd", "hunter22", "-----BEGIN KEY-----\nAbC1\nxY=="])
def test_K32_a_secret_is_masked_in_every_form(form: str, secret: str) -> None:
    text = f"before {FORMS[form](secret)} after"
    masked = Redactor([secret]).text(text)
    assert MASK in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")
    assert plain(secret) not in plain(masked)
    bare = FORMS[form](secret).strip("\"'=")
    assert bare not in masked
    if "\n" not in secret and form in ("base64", "URL-encoded", "as it is", "over lines", "hex"):
        assert masked == f"before {MASK} after" or masked == f"before {MASK}= after"


def test_K32_values_under_four_characters_stay() -> None:
    assert Redactor(["abc", ""]).text("abc") == "abc"
    assert Redactor(["abc"]).is_idle


def test_K32_lines_of_a_secret_are_masked_one_by_one() -> None:
    redactor = Redactor(["first-line\n  second-line\nxyz"])
    assert redactor.text("it was first-line") == "it was ***"
    assert redactor.text("it was second-line") == "it was ***"
    assert redactor.text("first-line\nsecond-line\nxyz!") == "***!"


def test_K32_the_edges_of_base64_are_masked_too() -> None:
    encoded = base64.b64encode(b"u:" + b"hunter2").decode()
    masked = Redactor(["hunter2"]).text(encoded)
    assert masked == encoded[:2] + MASK


def test_K32_a_phrase_that_was_wrapped_is_masked() -> None:
    redactor = Redactor(["correct horse battery staple"])
    assert redactor.text("say correct horse\nbattery\n  staple!") == "say ***!"
    stream = StreamRedactor(redactor)
    assert stream.feed("say correct\n") + stream.feed("horse battery\n") == "say "
    assert stream.feed("staple\n") == "***\n"


def test_K32_a_secret_at_an_escape_is_still_found() -> None:
    assert Redactor(["nabcdef"]).text("C:\\nabcdef") == "C:\\***"
    assert Redactor(["abcdef\\"]).text("abcdef\\nothing") == "***nothing"
    assert Redactor(["41secret"]).text("%41secret") == "%***"


def test_K32_trees_are_masked_in_values_and_keys() -> None:
    redactor = Redactor(["tops3cret", "24681357"])
    tree = {
        "tops3cret": [1, "x tops3cret y", {"n": 24681357, "deep": {"a": None, "b": True}}],
        "TopS": base64.b64encode(b"tops3cret").decode(),
        "topS3cret%": "fine",
    }
    masked = redactor.value(tree)
    assert masked == {
        "***": [1, "x *** y", {"n": "***", "deep": {"a": None, "b": True}}],
        "TopS": "***",
        "topS3cret%": "fine",
    }
    assert redactor.value(masked) is masked


def test_K32_masked_keys_stay_apart() -> None:
    masked = Redactor(["aaaa", "bbbb"]).value({"aaaa": 1, "bbbb": 2})
    assert masked == {"***": 1, "*** (2)": 2}


def test_K32_an_outcome_is_masked_in_every_field() -> None:
    redactor = Redactor(["canary-1"])
    outcome = Outcome(
        result={"a": ["canary-1"]},
        error=TaskError(
            kind=ErrorKind.UNKNOWN,
            message="it is canary-1",
            code="PY_canary-1",
            exception_type="canary-1",
        ),
        helpers={"http": {"status": 200, "headers": {"x": "canary-1"}}},
    )
    masked = redactor.record(outcome)
    assert "canary" not in repr(masked)
    assert masked.error is not None
    assert masked.error.kind is ErrorKind.UNKNOWN
    clean = Outcome(result={"a": 1}, error=outcome.error and None)
    assert redactor.record(clean) is clean


def test_K32_secrets_can_be_added() -> None:
    redactor = Redactor()
    assert redactor.text("later-one") == "later-one"
    redactor.add(["later-one"])
    assert redactor.text("later-one") == MASK
    assert "later" not in repr(redactor)


def test_K32_content_that_is_no_text_stays_whole() -> None:
    redactor = Redactor(["canary-1"])
    assert redactor.content(b"\xff\x00canary-1\xfe") == b"\xff\x00***\xfe"
    content = bytes(range(256)) * 4
    assert redactor.content(content) is content


def test_K32_asterisks_do_not_make_secrets_again() -> None:
    redactor = Redactor(["****", "a***b"])
    for text in ("*****", "a****b", "x" + "*" * 100, "a*" * 30):
        masked = redactor.text(text)
        assert "****" not in masked
        assert redactor.text(masked) == masked


def _shows(text: str, secret: str) -> bool:
    return plain(secret.strip()) in plain(text)


@given(SECRETS, st.sampled_from(sorted(FORMS)), st.text(ALPHABET, max_size=20))
def test_K32_no_form_of_any_secret_is_left(secret: str, form: str, around: str) -> None:
    assume(len(plain(secret.strip())) >= 4)
    redactor = Redactor([secret])
    text = f"{around} {FORMS[form](secret)} {around}"
    masked = redactor.text(text)
    assert not redactor.spans(masked)
    assert not _shows(masked, secret)
    assert redactor.text(masked) == masked


@given(SECRETS)
def test_K32_what_stands_as_it_is_goes_whatever_it_holds(secret: str) -> None:
    masked = Redactor([secret]).text(f"<{secret}>")
    assert secret not in masked


@given(
    st.lists(SECRETS, min_size=1, max_size=3),
    st.lists(st.text(ALPHABET, max_size=12), max_size=6),
    st.sampled_from(sorted(FORMS)),
    st.data(),
)
def test_K32_a_stream_in_pieces_shows_what_the_whole_shows(
    secrets: list[str], between: list[str], form: str, data: st.DataObject
) -> None:
    assume(all(len(plain(part.strip())) >= 4 for s in secrets for part in parts(s)))
    redactor = Redactor(secrets)
    whole = "".join(f"{b}{FORMS[form](data.draw(st.sampled_from(secrets)))}" for b in between)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    stream, shown, at = StreamRedactor(redactor), "", 0
    for cut in [*cuts, len(whole)]:
        shown += stream.feed(whole[at:cut])
        at = cut
    shown += stream.end()
    for secret in secrets:
        assert not _shows(shown, secret)


def test_K32_a_stream_holds_back_only_what_it_must() -> None:
    stream = StreamRedactor(Redactor(["password1"]))
    assert stream.feed("hello wörld\n") == "hello wörld\n"
    assert stream.feed("the pass") == "the "
    assert stream.feed("ed\n") == "passed\n"
    assert stream.feed("pass\n") == ""
    assert stream.feed("word1 it is\n") == "*** it is\n"
    assert stream.feed("pass") + stream.end() == "pass"


def test_K32_a_stream_of_newlines_is_not_held_for_ever() -> None:
    stream = StreamRedactor(Redactor(["password1"]))
    shown = stream.feed("pass" + "\n" * 1_000_000)
    assert len(shown) > 900_000


def test_K32_a_file_is_masked_piece_by_piece(tmp_path) -> None:
    path = tmp_path / "body"
    path.write_bytes(b"\xff" * (1024 * 1024 - 3) + b"canary-1" + b"rest")
    assert redact_file(path, Redactor(["canary-1"]))
    assert path.read_bytes() == b"\xff" * (1024 * 1024 - 3) + b"***rest"
    assert not redact_file(path, Redactor(["canary-1"]))
    assert [p.name for p in tmp_path.iterdir()] == ["body"]


def test_K32_the_common_path_is_fast() -> None:
    redactor = Redactor([f"secret-number-{n}-of-many" for n in range(20)])
    event = {"step": "fetch", "result": {"rows": [{"id": n, "name": f"row {n}"} for n in range(5)]}}
    started = time.perf_counter()
    for _ in range(2_000):
        assert redactor.value(event) is event
    assert time.perf_counter() - started < 2.0


@given(st.text(" \t\r\nab\\n%4&;", max_size=60))
def test_the_quick_and_the_traced_plain_form_are_the_same(text: str) -> None:
    way = traced(text)
    assert way.text == plain(text)
    for at in range(len(way.text)):
        start, end = way.span(at, at + 1)
        assert 0 <= start < end <= len(text)


@pytest.mark.parametrize(
    "piece", [" ", "\\", "%25", "\n", "&", "%", "\\u", " \n", "s", "s\n", "\t\\"]
)
def test_hostile_text_takes_no_more_time_than_other_text(piece: str) -> None:
    redactor = Redactor(["secret-1", "s" * 50])
    started = time.perf_counter()
    redactor.text(piece * 100_000)
    stream = StreamRedactor(redactor)
    stream.feed(piece * 100_000)
    stream.end()
    assert time.perf_counter() - started < 10
