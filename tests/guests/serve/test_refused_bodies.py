"""What is refused although a body comes with it: the answer arrives, and nothing behind it is taken for a request."""

import socket

import pytest

from deep.integrations.serve import ServerOptions, serving
from tests.guests.serve.serving_case import ask, code_of, connected, raw, until_closed
from tests.guests.serve.test_guard import TOKEN, echo

LARGE = b" " * 6_000_000
HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def address():
    """Return the address of a server that takes little."""
    with serving(echo, ServerOptions(port=0, largest_body=100_000, read_timeout=5.0, most_connections=20)) as result:
        yield result


def test_too_large_is_heard_by_a_client_that_sends_all_first(address):
    """As urllib does, which asks for the end of the connection: 15 times of 15."""
    assert [code_of(ask(address, body=LARGE)) for _ in range(15)] == [(413, "too_large")] * 15


def test_every_refusal_is_heard(address):
    """Whatever the reason, however large the body."""
    for name, value, found in (
        ("Host", "evil.example", (421, "wrong_host")),
        ("Origin", "http://evil.example", (403, "cross_site")),
        ("Content_Type", "text/plain", (415, "media_type")),
    ):
        assert [code_of(ask(address, body=LARGE, **{name: value})) for _ in range(3)] == [found] * 3
    with serving(echo, ServerOptions(port=0, token=TOKEN)) as other:
        assert [code_of(ask(other, body=LARGE)) for _ in range(3)] == [(401, "unauthorized")] * 3


def test_what_is_dropped_has_a_bound(address, monkeypatch):
    """Behind it the connection is closed, and the server goes on."""
    monkeypatch.setattr("deep.integrations.serve._exchange.MOST_DROPPED", 1000)
    with connected(address) as client:
        client.sendall(HEAD + b"Content-Length: 1000000000\r\n\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 413 ")
        with pytest.raises(OSError):  # noqa: PT011  a reset or a broken pipe, as the system has it
            for _ in range(1000):
                client.sendall(LARGE)
    assert ask(address, body={})[0] == 200


def test_one_connection_too_many_is_heard(address):
    """Also by a client that has sent its request before."""
    held = [connected(address) for _ in range(20)]
    with connected(address) as client:
        client.sendall(HEAD + b"Content-Length: 90000\r\n\r\n" + b" " * 90_000)
        assert until_closed(client).startswith(b"HTTP/1.1 503 ")
    for one in held:
        one.close()


@pytest.mark.parametrize("method", [b"POST", b"GET"])
def test_a_body_of_two_lengths_is_refused(address, method):
    """And the connection is closed, whatever stands behind it (RFC 9112, 6.3)."""
    head = HEAD.replace(b"POST", method) + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    result = raw(address, head + b"1\r\nZ\r\n0\r\n\r\n" + NEXT)
    assert result.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nconnection: close\r\n" in result
    assert result.count(b"HTTP/1.1 ") == 1


def test_a_header_that_decides_is_given_once(address):
    """Of two, a proxy may have looked at the other one."""
    for twice in (
        b"Origin: http://localhost\r\nOrigin: http://evil.example\r\n",
        b"Host: evil.example\r\n",
        b"Content-Type: text/plain\r\n",
        b"Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n",
        b"Content-Length: 5\r\n",
    ):
        result = raw(address, HEAD + twice + b"Content-Length: 0\r\nConnection: close\r\n\r\n")
        assert result.startswith(b"HTTP/1.1 400 ")


def test_a_client_that_stops_sending_is_not_waited_for_long(address):
    """The answer is there at once, and the connection ends with the time for a request."""
    with connected(address) as client:
        client.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n{")
        client.shutdown(socket.SHUT_WR)
        assert until_closed(client).startswith(b"HTTP/1.1 413 ")
