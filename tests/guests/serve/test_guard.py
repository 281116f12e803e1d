"""The guard and the server: what is refused, how, and that the server goes on."""

import socket
import threading
import time

import h11
import pytest

from deep.exceptions import InputError
from deep.integrations.serve import Access, ServerOptions, WebError, check_free, create_app, read_json, serving
from deep.integrations.serve._protocol import JoinedConnection, TimedProtocol
from tests.guests.serve.served import lexical_model
from tests.guests.serve.serving_case import ask, code_of, connected, raw, until_closed

TOKEN = "0123456789abcdef-right"


async def echo(scope, receive, send):
    """Answer with the length of the body; /broken raises, /page is HTML."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/broken":
        raise ValueError("a secret text")
    size, more = 0, scope["method"] == "POST"
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    kind = b"text/html" if scope["path"] == "/page" else b"application/json"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    await send({"type": "http.response.body", "body": b'{"size": %d}' % size})


@pytest.fixture(scope="module")
def address():
    """Return the address of a server that waits little."""
    with serving(echo, ServerOptions(port=0, read_timeout=1.0, largest_body=100_000, most_connections=60)) as result:
        yield result


@pytest.fixture
def goes_on(address):
    """Check that a server answers once the test is over."""
    yield
    assert ask(address, body={})[0] == 200


@pytest.mark.usefixtures("goes_on")
class TestStrangers:
    """Requests that no program of ours makes; each gets a clear answer."""

    def test_another_host_or_origin_is_refused(self, address):
        """A name that was rebound to loopback is not ours; own names are, at every port, for it may be forwarded."""
        for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "10.0.0.7"):
            assert code_of(ask(address, body={}, Host=host)) == (421, "wrong_host")
        for host in ("localhost:1", "127.0.0.1", "[::1]:80", "LOCALHOST"):
            assert ask(address, body={}, Host=host)[0] == 200
        for origin in ("http://evil.example", "null", "http://localhost:1"):  # another site, a file, another port
            assert code_of(ask(address, body={}, Origin=origin)) == (403, "cross_site")

    @pytest.mark.parametrize("site", ["cross-site", "same-site"])
    def test_pages_of_other_sites_are_refused(self, address, site):
        """By what the browser says; but a link to a page may be followed."""
        assert code_of(ask(address, body={}, Sec_Fetch_Site=site)) == (403, "cross_site")
        visit = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": "navigate"}
        assert ask(address, "/x", Sec_Fetch_Dest="document", **visit)[0] == 200
        assert code_of(ask(address, "/x", Sec_Fetch_Dest="iframe", **visit)) == (403, "cross_site")
        assert code_of(ask(address, body={}, Sec_Fetch_Dest="document", **visit)) == (403, "cross_site")

    def test_a_form_is_refused(self, address):
        """What a page of another site can send without asking first; and JSON that is said not to be UTF-8."""
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            assert code_of(ask(address, body={}, Content_Type=kind)) == (415, "media_type")
        for charset, status in {"utf-8": 200, '"UTF8"': 200, "utf-16": 415, "utf8-x": 415, "": 415}.items():
            assert ask(address, body={}, Content_Type=f"application/json; Charset ={charset}")[0] == status

    def test_a_large_body_is_refused(self, address):
        """By its length, before it is read; and in pieces, as soon as it is too large."""
        assert code_of(ask(address, body=b" " * 100_001)) == (413, "too_large")
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        piece = b"ffff\r\n" + b" " * 0xFFFF + b"\r\n"
        result = raw(address, head + b"Transfer-Encoding: chunked\r\n\r\n" + 2 * piece)
        assert b" 413 " in result.split(b"\r\n")[0]

    def test_half_a_request_ends(self, address):
        """With 408, wherever it stops."""
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        rests = (b"Content-Length: 9\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", b"X: ")
        for begun in (b"", b"POST /v1/check HTT", *(head + rest for rest in rests)):
            result = raw(address, begun)
            assert result.startswith(b"HTTP/1.1 408 ")
            assert b'{"error":{"code":"slow"' in result

    def test_a_slow_loris_ends(self, address):
        """A byte now and then does not begin the time anew."""
        with connected(address) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
            with pytest.raises(ConnectionError):
                for _ in range(600):  # a server that waits on would take them all
                    client.sendall(b"X: y\r\n")
                    time.sleep(0.05)

    def test_many_connections(self, address):
        """Beyond the most that may be open each is told so; once they end there is room again."""
        clients = [connected(address) for _ in range(200)]
        last = until_closed(clients[-1])
        assert last.startswith(b"HTTP/1.1 503 ")
        assert b'"code":"busy"' in last
        for client in clients:
            client.close()
        for _ in range(100):
            if ask(address, body={})[0] == 200:
                break
            time.sleep(0.05)

    def test_no_http(self, address):
        """Is told so in the same shape."""
        result = raw(address, b"\x16\x03\x01 what\r\n\r\n")
        assert result.startswith(b"HTTP/1.1 400 ")
        assert b'{"error":{"code":"bad_http"' in result

    def test_requests_in_a_row(self, address):
        """Several that are sent at once are answered in order."""
        one = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s"
        close = b"Connection: close\r\n"
        sent = b"".join(one % (n, close if n == 5 else b"", b" " * n) for n in range(1, 6))
        sizes = [part.split(b"}")[0] for part in raw(address, sent).split(b'{"size": ')[1:]]
        assert sizes == [b"1", b"2", b"3", b"4", b"5"]

    def test_a_broken_application_tells_nothing(self, address, capsys):
        """The client gets 500; the terminal the place and the kind of the error, and not its text."""
        assert code_of(ask(address, "/broken")) == (500, "broken")
        message = capsys.readouterr().err
        assert "ValueError at " in message
        assert "secret" not in message


def test_the_token_is_asked_for():
    """Of every path but the one of health; a wrong one is refused; the cookie of a ticket is as good."""
    with serving(echo, ServerOptions(port=0, token=TOKEN)) as address:
        assert code_of(ask(address, body={})) == (401, "unauthorized")
        assert code_of(ask(address, body={}, Authorization="Bearer wrong")) == (401, "unauthorized")
        assert code_of(ask(address, body={}, Authorization="Basic " + TOKEN)) == (401, "unauthorized")
        assert code_of(ask(address, f"/?token={TOKEN}")) == (401, "used")
        assert ask(address, body={}, Authorization=f"Bearer {TOKEN}")[0] == 200
        assert ask(address, "/healthz")[0] == 200


def test_a_ticket_opens_one_browser():
    """It is changed for a cookie that no script and no other site sees, and is then worth nothing."""
    access = Access(TOKEN)
    first = access.ticket
    cookie = access.redeem(first)
    assert cookie.endswith("; HttpOnly; SameSite=Strict; Path=/")
    assert access.redeem(first) is None
    assert access.allows({"cookie": f"a=b; {cookie.partition(';')[0]}"})
    assert not access.allows({"cookie": f"{access.cookie}=guessed"})
    assert TOKEN not in cookie


def test_pages_have_a_policy(address):
    """With a nonce; JSON has one that allows nothing."""
    policy = raw(address, b"GET /page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").decode()
    assert "\r\ncontent-security-policy: " in policy
    assert "script-src 'self' 'nonce-" in policy
    assert "frame-ancestors 'none'" in policy
    assert ask(address, "/x")[2]["content-security-policy"].startswith("default-src 'none'; frame-ancestors")


def test_a_request_may_name_the_whole_address():
    """As RFC 9112 has it; the name must be that of the Host header, which the guard holds to its own."""
    with serving(create_app(lexical_model())) as address:
        for target, status in {
            "HTTP://LOCALHOST/healthz?a=1": b"200",
            "http://localhost": b"200",
            "http://localhost/v1/nothing": b"404",
            "http://evil.example/healthz": b"400",
            "http://localhost:1/healthz": b"400",
            "http:///healthz": b"400",
        }.items():
            result = raw(address, f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            assert result.split(b" ")[1] == status, target
        other = raw(address, b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    assert other.split(b" ")[1] == b"421"


def test_too_many_a_second():
    """Are told when to come again."""
    with serving(echo, ServerOptions(port=0, rate=1.0)) as address:
        answers = [ask(address, body={}) for _ in range(3)]
    assert [status for status, _, _ in answers] == [200, 200, 429]
    assert answers[-1][2]["retry-after"] == "1"


def test_a_client_that_never_reads_does_not_keep_a_server(monkeypatch):
    """The few bytes that it left unread are on the clock: the server ends."""
    made, sent, begin = [], threading.Event(), TimedProtocol.connection_made

    def connection_made(protocol, transport):
        begin(protocol, transport)
        made.append(transport)

    async def flood(scope, _, send):
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
            while not made[-1].get_write_buffer_size():
                await send({"type": "http.response.body", "body": b" " * 4096, "more_body": True})
            sent.set()
            await send({"type": "http.response.body", "body": b""})

    monkeypatch.setattr(TimedProtocol, "connection_made", connection_made)
    server = serving(flood, ServerOptions(port=0, read_timeout=1.0))
    with connected(server.__enter__()) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert sent.wait(300)
        ending = threading.Thread(target=server.__exit__, args=(None, None, None), daemon=True)
        ending.start()
        ending.join(60)
        assert not ending.is_alive()


def test_options_are_checked():
    """Before anything listens; a host that no name service can be asked for is refused as any other."""
    for options, message in (
        ({"host": "0.0.0.0"}, "`token` must be given where others can reach"),
        ({"port": 70_000}, "`port` must be from 0 to 65535. Got 70000"),
        ({"read_timeout": 0}, "`read_timeout` must be above 0"),
        ({"rate": -1.0}, "`rate` must be above 0"),
    ):
        with pytest.raises(InputError, match=message):
            ServerOptions(**options)
    with pytest.raises(InputError, match="`token` must have at least 16 printable ASCII characters"):
        Access("short")
    for host in ("x" * 300, "\udcff", "a\0b"):
        with pytest.raises(InputError, match="`port` must be free at an address of this machine"):
            check_free(ServerOptions(host=host, port=0, token=TOKEN))


def test_a_port_in_use_is_one_line():
    """With the address and a remedy."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"Got {port} at '127.0.0.1'"), serving(echo, ServerOptions(port=port)):
            pass


def test_json_of_strangers():
    """Is refused with a clear word; brackets in texts are no brackets."""
    for body, message in (
        (b"\xff{}", "must be UTF-8. Got byte 0xff at 0"),
        (b"[" * 100_000, "at most 32 nested brackets"),
        (b'{"a":' * 100_000, "at most 32 nested brackets"),
        (b"[1e999]", "a number that is too large"),
        (b"[-Infinity]", "is not a JSON number"),
        (b'{"a":1,"a":2}', "each key once"),
        (b"[" + b"9" * 5000 + b"]", "unreadable text"),
        (b"", "error at character 0"),
    ):
        with pytest.raises(WebError, match=message):
            read_json(body)
    assert read_json(b'["' + rb"[{\"\\" * 1000 + b'"]') == ['[{"\\' * 1000]


def test_an_answer_is_written_at_once():
    """The head waits for the body."""
    connection = JoinedConnection(h11.SERVER)
    connection.receive_data(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert isinstance(connection.next_event(), h11.Request)
    assert connection.send(h11.Response(status_code=200, headers=[("content-length", "2")])) == b""
    sent = connection.send(h11.Data(data=b"{}"))
    assert sent.startswith(b"HTTP/1.1 200")
    assert sent.endswith(b"\r\n\r\n{}")
    assert connection.send(h11.EndOfMessage()) == b""
