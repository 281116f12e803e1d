"""One attempt: what each failure is called, what Retry-After says, and what never leaves the client."""

import asyncio
import contextlib
import email.utils
import html
import json
import re
import socket
import threading
import time
import urllib.parse

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openai import Omit

from deep.exceptions import InputError
from deep.llm import CallError, Client, Redactor, check_base_url, public_url, read_reply
from deep.llm._client import _ssl_context, reply_error, retry_after
from tests.fault_server import FaultServer
from tests.llm.calls import KEY

BODY = b'{"model": "tiny", "messages": [{"role": "user", "content": "?"}]}'


def send(url, *, timeout=300, key=KEY):
    """Send one request, and return the reply; what waits for the timeout gives a busy machine the time to send."""

    async def once():
        client = Client(url, key, timeout=timeout)
        try:
            return await client.send(BODY)
        finally:
            await client.close()

    return asyncio.run(once())


def test_the_reply_comes_back_as_it_was_sent():
    """The client adds nothing and takes nothing away."""
    with FaultServer(reply=lambda _: "VERDICT: SUPPORTED") as server:
        assert read_reply(send(server.url)).text == "VERDICT: SUPPORTED"


@pytest.mark.parametrize(
    ("fault", "kind", "status"),
    [
        ("rate_limited", "rate_limited", 429),
        ("server_error", "server_error", 500),
        ("unauthorized", "fatal", 401),
        ("no_credit", "fatal", 429),
        ("filtered", "refused", 400),
        ("dropped", "dropped", None),
        ("broken_http", "dropped", None),
        ("cut", "dropped", None),
        ("hang", "timeout", None),
    ],
)
def test_every_failure_has_a_name(fault, kind, status):
    """One attempt is one request, whatever happens to it, and the failure is of our own kinds."""
    with FaultServer(script=[fault]) as server, pytest.raises(CallError) as caught:
        send(server.url, timeout=3 if fault == "hang" else 300)
    assert (caught.value.kind, caught.value.status) == (kind, status)
    assert caught.value.reached
    assert server.count == 1
    assert KEY not in str(caught.value)
    assert KEY not in (caught.value.body or "")


def test_a_server_that_is_not_there_was_not_reached():
    """A refused connection cannot have cost anything."""
    with FaultServer() as server:
        url = server.url
    with pytest.raises(CallError, match="unreachable") as caught:
        send(url)
    assert not caught.value.reached


def test_a_reply_that_drips_is_cut_off():
    """The timeout is for the whole attempt, not for each piece of the reply."""
    with FaultServer(script=["drip"]) as server, pytest.raises(CallError, match="timeout"):
        send(server.url, timeout=1)  # the whole reply takes 50 seconds, and then is no JSON


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "1"}, 1.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "130"}, 130.0),
        ({"retry-after": "86400"}, 86400.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "30x"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after-ms": "500", "retry-after": "9"}, 0.5),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_retry_after_is_read(headers, seconds):
    """Seconds of any length, milliseconds, dates; anything else is as if it were not there."""
    assert retry_after(headers) == seconds


def test_retry_after_may_be_a_date():
    """A date in an hour is about an hour."""
    date = email.utils.formatdate(time.time() + 3600, usegmt=True)
    assert retry_after({"retry-after": date}) == pytest.approx(3600, abs=5)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"error": {"message": "two\\nlines"}}', "two lines"),
        ('{"error": {"message": "red \\u001b[31m, half \\ud800"}}', "red \\x1b[31m, half \\ud800"),
        ('{"error": "plain"}', "plain"),
        ('{"detail": "from FastAPI"}', "from FastAPI"),
        ('{"message": "flat"}', "flat"),
        ('[{"error": {"message": "a list"}}]', "a list"),
        ("<html>oops</html>", "<html>oops</html>"),
        ("", "HTTP 418"),
        ("null", "null"),
        ("[]", "[]"),
    ],
)
def test_error_bodies_of_all_sorts_are_read(body, message):
    """Each server has its own layout; the message is found, and is one line."""
    error = reply_error(418, body)
    assert (error.kind, error.message) == ("rejected", message)


@given(st.text())
def test_any_reply_is_a_completion_or_broken(raw):
    """No body makes the reader raise anything else."""
    with contextlib.suppress(CallError):
        assert isinstance(read_reply(raw).text, str)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, json_values, json_values)
def test_any_part_of_a_completion_may_be_odd(content, usage, logprobs):
    """Whatever stands where text, usage and log-probabilities should, the reader copes."""
    import json

    choice = {"message": {"content": content, "refusal": usage}, "finish_reason": usage, "logprobs": logprobs}
    reply = read_reply(json.dumps({"choices": [choice], "usage": usage, "model": logprobs}))
    assert isinstance(reply.text, str)
    assert all(isinstance(n, int) and n >= 0 for n in reply.tokens.values())


@pytest.mark.parametrize(
    "raw", ["", "{", "[]", "{}", '{"choices": []}', '{"choices": [{}]}', '{"error": {"message": "x"}}', "[" * 10**5]
)
def test_what_is_no_completion_is_broken(raw):
    """Among it are errors that come with HTTP 200."""
    with pytest.raises(CallError, match="broken"):
        read_reply(raw)


def test_the_parts_of_a_content_list_are_joined():
    """Some servers send text in parts."""
    raw = '{"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"type": "x"}, {"text": "b"}]}}]}'
    assert read_reply(raw).text == "ab"


def test_a_placeholder_is_no_secret():
    """Short keys that local servers ask for are not cut out of every reply."""
    assert Redactor("none", None)("none of it") == "none of it"
    assert Redactor("sk-12345678").line("a\n  sk-12345678 b") == "a [key] b"


def _json(c):
    return json.dumps(c)[1:-1]


SPELLINGS = [
    lambda c: c,
    _json,
    lambda c: _json(_json(c)),
    lambda c: c.replace("/", "\\/"),
    lambda c: f"\\u{ord(c):04x}",
    lambda c: f"\\u{ord(c):04X}",
    lambda c: f"\\\\u{ord(c):04x}",
    lambda c: urllib.parse.quote(c, safe=""),
    lambda c: f"%{ord(c):02x}",
    lambda c: f"%25{ord(c):02X}",
    html.escape,
    lambda c: html.escape(html.escape(c)),
    lambda c: f"&#{ord(c)};",
    lambda c: f"&#x{ord(c):x};",
    lambda c: f"&#X00{ord(c):X};",
]
keys = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40)


@given(keys, st.lists(st.sampled_from(SPELLINGS), min_size=1, max_size=4), st.text(max_size=5), st.text(max_size=5))
@example("sk-ab/cd0123456", [lambda c: c.replace("/", "\\/")], "{", "}")
@example('sk"ab\\cd0123456', [_json], '{"', '"}')
@example("00000000", [lambda c: f"\\u{ord(c):04x}"], "0", "")
@example("sk+ab&cd0123456", [lambda c: f"\\u{ord(c):04x}"], "", "")
def test_a_key_is_found_in_every_spelling(key, ways, before, after):
    """As JSON, URLs and HTML spell it, once or twice over, and some characters this way and some that."""
    characters = [ways[i % len(ways)](c) for i, c in enumerate(key)]
    spelled = "".join(characters)
    redacted = Redactor(key)(f"{before}{spelled}{after}")
    assert "[key]" in redacted
    # A character that happens to stand before the key may be taken for its first, and then its last is left.
    assert len(redacted) <= len("[key]") + max(map(len, characters)) * len(before + after)


@pytest.mark.parametrize("part", ["?x=s3cret-word", "#s3cret-word", "?s3cret-word", "#"])
def test_a_base_url_has_neither_query_nor_fragment(part):
    """No path could be put behind them, and a secret in them would be written down."""
    with pytest.raises(InputError, match="`base_url` must hold no user, password, query or fragment") as caught:
        check_base_url(f"http://h/v1{part}")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("part", ["sk-live-abc", "SECRET", "3fa9c1d2e4b5a6978899", "my-token", "hunter2xyz", "a%2fb"])
def test_what_may_be_a_key_in_a_path_is_not_written(part):
    """In its place stands a hash, so that two such addresses are not taken for one; and replies are searched for it."""
    shown = public_url(f"http://h/{part}/v1")
    assert re.fullmatch(r"http://h/\[[0-9a-f]{8}\]/v1", shown)
    assert public_url(f"http://h/{part}x/v1") != shown


@pytest.mark.parametrize(
    "path", ["v1", "v1beta/openai", "api/v3/llama-3.1-8b-instruct", "openai/deployments/gpt-4o-mini-2024-07-18", ""]
)
def test_an_ordinary_path_is_written_as_it_is(path):
    """Names of endpoints in the ledgers of today stay."""
    assert public_url(f"http://127.0.0.1:8000/{path}") == f"http://127.0.0.1:8000/{path}"


@pytest.mark.parametrize(("backlog", "reached"), [(16, True), (None, False)])
def test_what_was_never_sent_was_not_reached(backlog, reached):
    """A server that closes before it reads may have seen the request; where nobody listens nobody has."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if backlog is not None:
            server.listen(backlog)
            threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        with pytest.raises(CallError, match="dropped" if reached else "unreachable") as caught:
            send(f"http://127.0.0.1:{server.getsockname()[1]}/v1")
    assert caught.value.reached is reached


def test_a_timeout_before_anything_was_sent_costs_nothing():
    """A connection that is never made: the backlog is full, so that no request can have left this machine."""
    with socket.socket() as server, contextlib.ExitStack() as waiting:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            other = waiting.enter_context(socket.socket())
            other.setblocking(False)
            other.connect_ex(server.getsockname())
        with pytest.raises(CallError, match="unreachable") as caught:
            send(f"http://127.0.0.1:{server.getsockname()[1]}/v1", timeout=0.3)
    assert not caught.value.reached


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://host/v1",
        "http://",
        "http://host:port/v1",
        "http://[/v1",
        "http://h/v1\n",
        "http://h/\0",
    ],
)
def test_a_base_url_is_a_url(url):
    """Anything else is refused without being repeated."""
    with pytest.raises(InputError, match=r"`base_url` must be an http\(s\) URL"):
        check_base_url(url)


def test_certificates_that_cannot_be_read_are_named(monkeypatch):
    """Not as an output for which there is no room."""
    monkeypatch.setenv("SSL_CERT_FILE", "no-such.pem")
    _ssl_context.cache_clear()
    with pytest.raises(InputError, match="`SSL_CERT_FILE` and `SSL_CERT_DIR` must name certificates"):
        _ssl_context()


@pytest.mark.parametrize("name", ["OPENAI_ORG_ID", "OPENAI_PROJECT_ID"])
def test_a_named_provider_is_not_told_the_organization(monkeypatch, name):
    """Only the endpoint itself is; and what no header can hold is refused before anything is asked."""
    header = {"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}[name]
    monkeypatch.setenv(name, " acme\n")
    own, other = Client("http://localhost:1/v1"), Client("http://localhost:2/v1", named=True)
    assert own.openai.default_headers[header] == "acme"
    assert isinstance(other.openai.default_headers[header], Omit)
    monkeypatch.setenv(name, "ac\nme")
    with pytest.raises(InputError, match=f"`{name}` must be printable ASCII on one line"):
        Client("http://localhost:1/v1")


@pytest.mark.parametrize("url", ["http://me:s3cret@h/v1", "http://h/v1?api_key=s3cret", "http://h/v1?sig=s3cret"])
def test_a_base_url_holds_no_secret(url):
    """Keys come from the environment only."""
    with pytest.raises(InputError, match="keys come from the environment only") as caught:
        check_base_url(url)
    assert "s3cret" not in str(caught.value)
