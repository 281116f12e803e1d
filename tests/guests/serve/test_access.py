"""Who may ask, from where: tokens, tickets and bindings as strangers try them; `deep label` has the same guard."""

import hmac
import socket
from types import SimpleNamespace

import pytest

from deep.exceptions import InputError
from deep.integrations.labeling import label_app
from deep.integrations.serve import Access, Guard, ServerOptions, find_token, serving
from tests.guests.serve.serving_case import ask, code_of, until_closed
from tests.guests.serve.test_guard import TOKEN, echo

RIGHT = f"Authorization: Bearer {TOKEN}"


def answer(port, *headers, host="localhost", path="/", method="GET", at="127.0.0.1"):
    """Return the status of one raw request and what came with it."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "Connection: close", "", ""]
    with socket.create_connection((at, port), timeout=300) as client:
        client.sendall("\r\n".join(lines).encode("latin-1"))
        result = until_closed(client)
    return int(result.split()[1]), result


def port_of(address):
    """Return the port of an address."""
    return int(address.rpartition(":")[2])


@pytest.fixture(scope="module")
def port():
    """Return the port of a server on all addresses, behind a token."""
    with serving(echo, ServerOptions(host="0.0.0.0", port=0, token=TOKEN)) as address:
        assert address == f"http://127.0.0.1:{port_of(address)}"
        yield port_of(address)


def test_a_wrong_token_is_refused(port):
    """Missing, empty, a part of it, more than it, elsewhere, twice; and the answer does not have it."""
    for headers in (
        [],
        ["Authorization: Bearer "],
        [f"Authorization: {TOKEN}"],
        [f"Authorization: Basic {TOKEN}"],
        [f"Authorization: Bearer {TOKEN[:-1]}"],
        [f"Authorization: Bearer {TOKEN}x"],
        [f"Authorization: Bearer {TOKEN.upper()}"],
        [f"Authorization: Bearer {TOKEN},{TOKEN}"],
        [f'Authorization: Bearer "{TOKEN}"'],
        [f"Authorization: Bearer\t{TOKEN}"],
        [f"X-Authorization: Bearer {TOKEN}"],
        [f"Cookie: deep-00000000={TOKEN}"],
        ["Cookie: ;;=;", "Authorization: Bearer \xff\xfe"],
    ):
        status, result = answer(port, *headers)
        assert status == 401, headers
        assert TOKEN.encode() not in result
        assert b"\r\nwww-authenticate: Bearer\r\n" in result
    for path in (f"/?token={TOKEN}", f"/?token={TOKEN}&token={TOKEN}", "/?token=", "/?token"):
        assert answer(port, path=path)[0] == 401  # addresses stand in logs and histories
    for twice in ([RIGHT, RIGHT], [RIGHT, "Authorization: Bearer wrong"], ["Authorization: x", RIGHT]):
        assert answer(port, *twice)[0] == 400


@pytest.mark.parametrize("header", [RIGHT, RIGHT.replace("Bearer", "bearer"), RIGHT.replace("Bearer ", "Bearer   ")])
def test_the_right_token_is_taken(port, header):
    """However its scheme is spelt."""
    assert answer(port, header)[0] == 200


def test_tokens_are_compared_in_constant_time(monkeypatch):
    """Each by `hmac.compare_digest`, a token, a session and a ticket, also where lengths differ."""
    compared = []

    def compare(given, wanted):
        compared.append(wanted)
        return hmac.compare_digest(given, wanted)

    monkeypatch.setattr("deep.integrations.serve._guard.compare_digest", compare)
    access = Access(TOKEN)
    assert not access.allows({"authorization": "Bearer 0", "cookie": f"{access.cookie}=0"})
    assert access.redeem("0") is None
    assert compared[0] == TOKEN.encode()
    assert compared[2] == access.ticket.encode()
    assert len(set(compared)) == 3


def test_a_name_that_may_be_rebound_is_refused_on_all_addresses(port):
    """Also with the right token: an address cannot be rebound, and the machine's own name must be allowed by option."""
    for host in ("127.0.0.1", "10.1.2.3:8000", "[::1]:1", "[::ffff:127.0.0.1]", "localhost"):
        assert answer(port, RIGHT, host=host)[0] == 200, host
    names = "rebound.example 127.0.0.1.rebound.example 127.0.0.1@rebound.example localhost.rebound.example 2130706433"
    for host in (*names.split(), "0x7f.1", "127.1", "localhost.", "[rebound.example]", "*", ""):
        assert answer(port, RIGHT, host=host)[0] == 421, host


def test_a_page_of_another_place_is_refused(port):
    """Of another address, port or name, whatever token it has got."""
    own = "http://10.1.2.3:8000"
    for origin in (own, "http://10.1.2.3", "http://10.1.2.3:8001", "http://rebound.example:8000", "null", ""):
        status = answer(port, RIGHT, f"Origin: {origin}", host="10.1.2.3:8000")[0]
        assert status == (200 if origin == own else 403), origin


def test_bindings_of_version_6():
    """An address is one in all its spellings."""
    own = {"[::1]:8": 200, "[0:0:0:0:0:0:0:1]:8": 200, "[::2]": 421}
    for listen, hosts in (("::1", own), ("::", {"[fd00::1]:8": 200, "rebound.example": 421})):
        try:
            with serving(echo, ServerOptions(host=listen, port=0, token=TOKEN)) as address:
                for host, status in hosts.items():
                    assert answer(port_of(address), RIGHT, host=host, at="::1")[0] == status
                    assert answer(port_of(address), host=host, at="::1")[0] in (401, 421)
        except InputError as error:
            pytest.skip(str(error))


def test_an_address_of_version_4_is_listened_at_as_such():
    """In the spelling of version 6 it is refused in one line."""
    with (
        pytest.raises(InputError, match="`port` must be free at an address of this machine"),
        serving(echo, ServerOptions(host="::ffff:127.0.0.1", port=0, token=TOKEN)),
    ):
        pass


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "127.0.0.2", "::ffff:127.0.0.1", "0", "LOCALHOST", "localhost.", "example.org", "*"]
)
def test_any_other_binding_demands_a_token(host, monkeypatch):
    """Whatever an address may mean to the system: what is not known as loopback has a token, or is refused."""
    monkeypatch.delenv("DEEP_TOKEN", raising=False)
    message = []
    with pytest.raises(InputError, match="`token` must be given where others can reach the server"):
        ServerOptions(host=host)
    assert len(find_token(None, host, message.append)) >= 32
    assert len(message) == 1


def test_tokens_of_a_file_and_of_the_environment(tmp_path, monkeypatch):
    """An empty file is no token; an empty variable is as none; two new ones differ."""
    (tmp_path / "token").write_text("\n")
    with pytest.raises(InputError, match="`token` must have at least 16 printable ASCII characters"):
        Access(find_token(tmp_path / "token", "127.0.0.1"))
    monkeypatch.setenv("DEEP_TOKEN", "  ")
    assert find_token(None, "127.0.0.1") is None
    assert find_token(None, "::", str) != find_token(None, "::", str)


def test_a_ticket_is_asked_for_by_get_alone(port):
    """Another method does not use it up; health needs none, and no host of strangers."""
    assert answer(port, path="/?token=x", method="HEAD")[0] == 401
    assert answer(port, path="/healthz")[0] == 200
    assert answer(port, path="/healthz", host="rebound.example")[0] == 421
    assert answer(port, path="/healthz/")[0] == 401
    assert answer(port, path="/HEALTHZ")[0] == 401
    assert answer(port, path="/%68ealthz")[0] == 200  # the same path, spelt otherwise


def test_names_are_allowed_as_they_are_spelt():
    """In any case, with brackets or without, no part of them."""
    guard = Guard(echo, ServerOptions(names=("Judge.Example", "[2001:DB8::1]")))
    assert guard._hosts == {"127.0.0.1", "::1", "localhost", "judge.example", "2001:db8::1"}


def test_the_page_of_labels_is_for_its_own_page_alone():
    """It is always on loopback and has no token: the guard is what keeps other sites' pages from answering."""
    desk = SimpleNamespace(start=lambda: {"dataset": "news", "people": []})
    with serving(label_app(desk)) as address:
        assert ask(address, "/start", body={})[0] == 200
        for name, value, found in (
            ("Host", "10.1.2.3", (421, "wrong_host")),
            ("Origin", "http://rebound.example", (403, "cross_site")),
            ("Sec_Fetch_Site", "same-site", (403, "cross_site")),
            ("Content_Type", "text/plain", (415, "media_type")),
        ):
            assert code_of(ask(address, "/start", body={}, **{name: value})) == found
