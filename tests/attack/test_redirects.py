"""Redirects: documents and keys go to the address that was given; whatever it says of another one is a failure."""

import asyncio
import json
import socket
import ssl
import threading
from contextlib import contextmanager

import pytest
from aiohttp import web

from deep.llm import EndpointError
from tests.attack.certificate import write_certificate
from tests.fault_server import FaultServer
from tests.llm.calls import KEY, outcomes, questions, rows, run

SECRET = "cats sat"


@contextmanager
def listening(host, context=None):
    """Yield an address on a second host, and all bytes that arrive there."""
    got = bytearray()
    done = threading.Event()
    with socket.create_server((host, 0)) as server:
        server.settimeout(0.05)

        def serve():
            while not done.is_set():
                try:
                    connection, _ = server.accept()
                    with context.wrap_socket(connection, server_side=True) if context else connection as peer:
                        got.extend(peer.recv(1 << 20))
                        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                except OSError:
                    continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"{host}:{server.getsockname()[1]}", got
        done.set()
        thread.join(300)


def redirecting(status, location):
    """Return the pieces of a redirect."""
    head = f"HTTP/1.1 {status} Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    return [head.encode()]


STATUSES = (301, 302, 303, 307, 308)
PLACES = {
    "another host": "http://{other}/v1/chat/completions",
    "without a scheme": "//{other}/v1/chat/completions",
    "relative": "/elsewhere",
    "itself": "/v1/chat/completions",
    "a key in it": "http://" + KEY + "@{other}/v1?key=" + KEY,
    "no HTTP": "file:///etc/passwd",
}


@pytest.mark.parametrize(
    ("status", "place"),
    [
        *((status, "another host") for status in STATUSES),
        *((307, place) for place in PLACES if place != "another host"),
    ],
)
def test_no_redirect_is_followed(status, place, tmp_path):
    """Before the first answer it ends the run, after it the request: one request is one attempt, and none is again."""
    with listening("127.0.0.2") as (other, got):
        target = PLACES[place].format(other=other)
        for first, folder in (("odd", "first"), ("good", "later")):
            ledger = tmp_path / folder
            fresh = iter([first == "good"] * 1)
            with FaultServer(
                raw=lambda _, fresh=fresh: None if next(fresh, False) else redirecting(status, target)
            ) as server:
                if first == "odd":
                    with pytest.raises(
                        EndpointError, match=r"refuses every request: the host redirects to .*--base-url"
                    ):
                        run(server.url, ledger, questions(4), workers=1)
                else:
                    ran = run(server.url, ledger, questions(4), workers=1)
                    assert (ran.tally.answered, ran.tally.failed) == (1, 3)
                assert server.count == sum(outcomes(ledger).values())
            assert outcomes(ledger)["redirected"] == (1 if first == "odd" else 3)
            message = json.dumps(rows(ledger, "SELECT message FROM attempts WHERE outcome = 'redirected'"))
            assert KEY not in message
            assert "?" not in message
        assert bytes(got) == b""


CALLS = {
    "upload": "_upload",
    "create": "_create_batch",
    "list": "_list_batches",
    "look": "_get_batch",
    "download": "_download",
}


@pytest.mark.parametrize("call", CALLS)
def test_nor_by_a_call_about_a_batch(call, tmp_path, monkeypatch):
    """Files, batches and their lists: one request, one line, and nothing at the second host."""
    calls = []
    with listening("127.0.0.2") as (other, got):

        async def redirect(*_):
            calls.append(1)
            raise web.HTTPTemporaryRedirect(f"http://{other}/v1/files")

        monkeypatch.setattr(FaultServer, CALLS[call], redirect)
        script = ["dropped"] if call == "list" else []  # a batch whose making is in doubt is looked for
        with (
            FaultServer(script=script) as server,
            pytest.raises(EndpointError, match="the host redirects to http://127"),
        ):
            run(server.url, tmp_path / "l", questions(3), batch=True)
        assert bytes(got) == b""
        assert calls == [1]


def test_https_to_http_and_back(tmp_path, monkeypatch):
    """A certificate that is trusted changes nothing."""
    certificate, key = write_certificate(tmp_path, "127.0.0.1", "127.0.0.2")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=str(certificate))
    trusting.verify_flags &= ~ssl.VERIFY_X509_STRICT
    monkeypatch.setattr("deep.llm._client._ssl_context", lambda: trusting)
    with listening("127.0.0.2") as (plain, got), listening("127.0.0.2", context) as (secure, got_secure):
        with FaultServer(raw=lambda _: redirecting(307, f"http://{plain}/")) as server:
            address = asyncio.run(_through_tls(server.port, context, tmp_path / "l"))
            assert address == 1
        with FaultServer(raw=lambda _: redirecting(308, f"https://{secure}/")) as server:
            with pytest.raises(EndpointError, match=r"redirects to https://127\.0\.0\.2"):
                run(server.url, tmp_path / "m", questions(2))
            assert server.count == 1
        assert bytes(got) + bytes(got_secure) == b""


async def _through_tls(port, context, ledger):
    """Run against a server behind TLS, and return how many requests it got."""
    n = 0

    async def copy(reader, writer):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def pipe(reader, writer):
        nonlocal n
        n += 1
        inner, outer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, outer), copy(inner, writer), return_exceptions=True)
        writer.close()
        outer.close()

    server = await asyncio.start_server(pipe, "127.0.0.1", 0, ssl=context)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        with pytest.raises(EndpointError, match=r"redirects to http://127\.0\.0\.2"):
            await asyncio.to_thread(run, url, ledger, questions(2))
    return n
